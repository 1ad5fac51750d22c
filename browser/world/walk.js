// The walk over one document, the refs it hands out, and the difference between two walks.
const refs = new WeakMap();
const nodes = new Map();
let nextRef = 0; // 0 until the library has said which numbers were never used in this frame
let lastWalk = null;
let lastHosts = [];
let last = { lines: new Map(), counts: {}, version: -1 };
let base = last;
const checkedHosts = new WeakSet();

function refOf(element) {
  let number = refs.get(element);
  if (!number) {
    if (!nextRef) return 0;
    number = nextRef;
    nextRef += 1;
    refs.set(element, number);
    nodes.set(number, new WeakRef(element));
    if (nodes.size >= pruneAt) prune();
  }
  return number;
}

let pruneAt = 20000;

// Numbers of nodes that are gone for good are dropped, so that a page that renders for ever does not grow.
function prune() {
  for (const [number, held] of nodes) if (!held.deref()) nodes.delete(number);
  pruneAt = Math.max(20000, nodes.size * 2);
}

function nodeOf(number) {
  const held = nodes.get(number);
  const node = held && held.deref();
  return node && node.isConnected ? node : null;
}

const CLOSED_ELIGIBLE = /^(ARTICLE|ASIDE|BLOCKQUOTE|DIV|FOOTER|HEADER|MAIN|NAV|P|SECTION|SPAN)$/;

// An element that may hold a closed shadow root: custom, or with a box that its light children do not explain.
function mayHide(element) {
  if (checkedHosts.has(element) || rootOf(element)) return false;
  if (element.tagName.includes('-')) return true;
  if (!CLOSED_ELIGIBLE.test(element.tagName)) return false;
  const first = element.firstElementChild;
  if (first) return !first.getClientRects().length && element.getClientRects().length > 0 && getComputedStyle(first).display !== 'none' &&
    getComputedStyle(first).display !== 'contents';
  return !hasOwnText(element) && element.offsetHeight > 0;
}

// An element without a box in a parent that has one: the parent may have a closed shadow root that shows nothing of it.
function suspect(element, hosts) {
  const parent = element.parentElement;
  if (!parent || hosts.length >= 64 || checkedHosts.has(parent) || rootOf(parent)) return;
  if (!CLOSED_ELIGIBLE.test(parent.tagName) && !parent.tagName.includes('-')) return;
  if (parent.getClientRects().length && getComputedStyle(element).display !== 'none') hosts.push(parent);
}

const TEXTUAL = 1; // mode of a child list inside a line of text: phrasing is part of that line
const NAMED = 2; // mode of a child list inside something named by its content: only controls count
const MANY = 40;
const SURE = 8192; // elements that are looked at however long it takes: on a busy machine time says little about a page

// Every thing to act on or read, in document order. The walk is iterative and, beyond SURE elements, bounded by time. Among many siblings one that lies outside the
// viewport is taken to hold nothing inside it: measuring every box of a long table would cost more than the rest of the walk.
// `wanted(element, role)` leaves out what a query can't match before anything is measured.
function gather(budgetMs, wanted) {
  const began = performance.now();
  const found = [];
  const hosts = [];
  const height = innerHeight;
  const width = innerWidth;
  let steps = 0;
  let cut = false;
  const start = document.body || document.documentElement;
  const lists = start ? [childrenOf(start)] : [];
  const places = [0];
  const sizes = start ? [lists[0].length] : [];
  const modes = [0];
  const fars = [false];
  while (lists.length) {
    const top = lists.length - 1;
    if (places[top] >= sizes[top]) { lists.pop(); places.pop(); sizes.pop(); modes.pop(); fars.pop(); continue; }
    const element = lists[top][places[top]];
    places[top] += 1;
    if (element.nodeType !== 1) continue;
    steps += 1;
    if ((steps & 1023) === 0 && steps > SURE && performance.now() - began > budgetMs) { cut = true; break; }
    const tag = element.tagName;
    if (SKIPPED.has(tag)) continue;
    const mode = modes[top];
    const leaf = element.firstElementChild === null;
    let role = roleOf(element);
    if (role && mode === NAMED && !CONTROL_ROLES.has(role)) role = null;
    const text = !role && mode !== NAMED && element.firstChild !== null && !(mode === TEXTUAL && PHRASING.has(tag)) && hasOwnText(element);
    if (text) role = 'text';
    let far = fars[top];
    const lone = !role && ((leaf && mode === 0 && !hasOwnText(element)) || (mode === 0 && tag.includes('-')));
    if (!far && ((role && !wanted) || lone || (sizes[top] > MANY && !leaf))) {
      const box = element.getBoundingClientRect();
      const near = box.bottom > 0 && box.top < height && box.right > 0 && box.left < width && (box.width > 0 || box.height > 0);
      far = !near && sizes[top] > MANY && box.height > 0;
      if (near && hosts.length < 64 && mayHide(element)) hosts.push(element);
      if (near && (text || (lone && leaf && box.width >= 4)) && getComputedStyle(element).cursor === 'pointer' &&
        (text ? !insideControl(element) : !pointerParent(element))) role = 'clickable';
      if (role && !(wanted && !wanted(element, role))) {
        if (rendered(element)) found.push({ element, role, near, box, control: CONTROL_ROLES.has(role) });
        else if (!element.checkVisibility()) { suspect(element, hosts); continue; }
      }
    } else if (role && !(wanted && !wanted(element, role))) {
      if (rendered(element)) found.push({ element, role, near: false, control: CONTROL_ROLES.has(role) });
      else if (!element.checkVisibility()) continue;
    }
    if (LEAVES.has(tag) || (role === 'textbox' && element.isContentEditable)) continue;
    if (!leaf || rootOf(element)) {
      const children = childrenOf(element);
      lists.push(children);
      places.push(0);
      sizes.push(children.length);
      modes.push(role && NAMED_BY_CONTENT.has(role) ? NAMED : text || (mode === TEXTUAL && PHRASING.has(tag)) ? TEXTUAL : mode === NAMED ? NAMED : 0);
      fars.push(far);
    }
  }
  return { found, hosts, cut, steps, ms: performance.now() - began };
}

const LEAVES = new Set('svg SELECT TEXTAREA IFRAME FRAME OBJECT CANVAS VIDEO AUDIO'.split(' '));

function pointerParent(element) {
  const parent = parentOf(element);
  return Boolean(parent && parent.nodeType === 1 && getComputedStyle(parent).cursor === 'pointer');
}

function insideControl(element) {
  for (let at = parentOf(element), steps = 0; at && at.nodeType === 1 && steps < 6; at = parentOf(at), steps += 1) {
    if (CONTROL_ROLES.has(roleOf(at))) return true;
  }
  return false;
}

const signature = (item) => {
  const { element } = item;
  const parent = element.parentElement;
  return `${item.role} ${element.tagName} ${element.className} ${parent ? `${parent.tagName} ${parent.className}` : ''}`;
};

const REPEATED = 24;

// Viewport first; of what lies outside, controls only, and of long runs of the same kind the first two.
function choose(walk, most) {
  const chosen = [];
  const outside = [];
  for (const item of walk.found) (item.near ? chosen : item.control || item.role === 'heading' ? outside : []).push(item);
  if (chosen.length > most) {
    const controls = chosen.filter((item) => item.control);
    const rest = chosen.filter((item) => !item.control);
    const kept = new Set([...controls, ...rest].slice(0, most));
    return walk.found.filter((item) => kept.has(item));
  }
  const sizes = new Map();
  for (const item of outside) {
    item.kind = signature(item);
    sizes.set(item.kind, (sizes.get(item.kind) || 0) + 1);
  }
  const shown = new Map();
  for (const item of outside) {
    if (chosen.length >= most) break;
    const seen = shown.get(item.kind) || 0;
    if (sizes.get(item.kind) > REPEATED && seen >= 2) continue;
    shown.set(item.kind, seen + 1);
    chosen.push(item);
  }
  return chosen;
}

function countsOf(items) {
  const counts = {};
  for (const item of items) counts[item.role] = (counts[item.role] || 0) + 1;
  return counts;
}

const lineOf = (item) => {
  const line = describe(item.element, item.role, item.box || item.element.getBoundingClientRect());
  const whole = line.n.replace(/[\ud800-\udbff]$/, '');
  line.n = whole.toWellFormed();
  if (line.n !== whole) line.w = 1;
  if (item.role === 'label' && item.element.control && rendered(item.element.control)) line.lf = 1;
  line.k = refOf(item.element);
  if (!item.near) line.o_ = 1;
  return line;
};

function collect(options) {
  watch();
  grounds.clear();
  nextRef = Math.max(nextRef, options.base || 0);
  const walk = gather(options.budgetMs || 250);
  lastWalk = walk;
  lastHosts = walk.hosts;
  const chosen = options.all ? walk.found.slice(0, options.most) : choose(walk, options.most || 200);
  const items = chosen.map(lineOf);
  grounds.clear();
  last = { lines: new Map(items.map((line) => [line.k, line])), counts: countsOf(walk.found), version };
  return {
    items, counts: countsOf(walk.found), total: walk.found.length, cut: walk.cut, next: nextRef, hosts: walk.hosts.length,
    near: walk.found.reduce((sum, item) => sum + (item.near ? 1 : 0), 0), ms: walk.ms, ...where(),
  };
}

const where = () => ({
  url: location.href, title: document.title, ready: document.readyState, width: innerWidth, height: innerHeight, scale: devicePixelRatio,
  scrollX, scrollY, fullHeight: document.documentElement ? document.documentElement.scrollHeight : 0,
});

const comparable = (line) => JSON.stringify({ ...line, k: 0, o_: 0, f: 0 });

// The state before an action; walked again only when something happened since the last look.
function mark(options) {
  if (last.version !== version) collect(options);
  base = last;
}

// What differs from the state before the action, bounded.
function differ(options) {
  const before = base.lines;
  const beforeCounts = base.counts;
  const now = collect(options);
  const most = options.mostChanges || 40;
  const added = [];
  const changed = [];
  const seen = new Set();
  for (const line of now.items) {
    seen.add(line.k);
    const old = before.get(line.k);
    if (!old || (old.o_ && !line.o_)) added.push(line);
    else if (comparable(old) !== comparable(line)) changed.push(line);
  }
  const removed = [];
  for (const [key, line] of before) {
    if (seen.has(key)) continue;
    const node = nodeOf(key);
    if (!node || !rendered(node)) removed.push(line); // what only left the view is still there
  }
  const counts = {};
  for (const role of new Set([...Object.keys(beforeCounts), ...Object.keys(now.counts)])) {
    const delta = (now.counts[role] || 0) - (beforeCounts[role] || 0);
    if (delta) counts[role] = delta;
  }
  const focused = deepActive();
  return {
    ...now, items: [], added: added.slice(0, most), changed: changed.slice(0, most), removed: removed.slice(0, most), delta: counts,
    omitted: Math.max(0, added.length - most) + Math.max(0, changed.length - most) + Math.max(0, removed.length - most),
    focus: focused && focused !== document.body ? refOf(focused) : 0,
  };
}

function deepActive() {
  let at = document.activeElement;
  while (at && rootOf(at) && rootOf(at).activeElement) at = rootOf(at).activeElement;
  return at;
}

const ALIASES = { searchbox: 'textbox', spinbutton: 'textbox', listbox: 'combobox' };

const flat = (text) => text.replace(/\s+/g, ' ').trim().toLowerCase();
const NAME_ATTRIBUTES = ['aria-label', 'aria-labelledby', 'title', 'alt', 'placeholder'];

// Whether an element's name could hold a text: cheap, and never wrongly no.
function mayBeNamed(element, wanted) {
  if (element.hasAttributes()) {
    if (element.id && element.id.toLowerCase() === wanted) return true;
    if (NAME_ATTRIBUTES.some((name) => element.hasAttribute(name))) return true;
  }
  if (NAMED_ELSEWHERE.has(element.tagName) || rootOf(element)) return true;
  if (element.firstElementChild && element.querySelector('img, svg, slot, [aria-label]')) return true;
  const content = element.textContent;
  return content.length < 20000 && (content.toLowerCase().includes(wanted) || (/\s\s/.test(content) && flat(content).includes(wanted)));
}

const NAMED_ELSEWHERE = new Set('INPUT SELECT TEXTAREA IMG AREA'.split(' '));

// Find by text or role over the whole document.
function find(options) {
  watch();
  grounds.clear();
  nextRef = Math.max(nextRef, options.base || 0);
  const wanted = flat(options.text || '');
  const role = options.role ? options.role.toLowerCase() : '';
  const walk = gather(options.budgetMs || 3000, (element, its) =>
    (!role || its === role || ALIASES[role] === its) && (!wanted || mayBeNamed(element, wanted)));
  lastHosts = walk.hosts;
  const began = performance.now();
  const matches = [];
  let total = 0;
  let { cut } = walk;
  for (const item of walk.found) {
    if (performance.now() - began > 1000) { cut = true; break; }
    if (wanted && !(item.element.id && item.element.id.toLowerCase() === wanted)) {
      const name = flat(nameOf(item.element, item.role)[0]);
      if (options.exact ? name !== wanted : !name.includes(wanted)) continue;
    }
    total += 1;
    if (matches.length >= (options.most || 50)) continue;
    const box = item.element.getBoundingClientRect();
    item.near = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    item.box = box;
    matches.push(lineOf(item));
  }
  grounds.clear();
  return { items: matches, total, cut, next: nextRef, counts: {}, near: 0, hosts: walk.hosts.length, ms: walk.ms, ...where() };
}

// The elements that may hide something; each is asked about once.
function hiding() {
  for (const host of lastHosts) checkedHosts.add(host);
  return lastHosts;
}

function adopt(host, root) {
  closedRoots.set(host, root);
  observe(root);
  version += 1;
}

const scaleNow = () => devicePixelRatio;

const windowNow = () => ({ x: scrollX, y: scrollY, width: innerWidth, height: innerHeight, scale: devicePixelRatio });

const whereNow = () => where();
