// Checks before an action and the guard that holds a dispatched pointer event to its target.
let armed = null;
// Longer than a dispatch may take: a press that arrives after its sender gave up must not land on another node either.
const GUARD_MS = 10000;

const refusal = (reason, extra) => ({ refused: reason, ...extra });

function shortly(element) {
  if (!element || element.nodeType !== 1) return { role: 'document', name: '' };
  const role = roleOf(element) || element.tagName.toLowerCase();
  const text = nameOf(element, roleOf(element) || 'text')[0];
  return { role, name: text.slice(0, 80), ref: refOf(element) };
}

function related(target, hit) {
  if (!hit) return false;
  if (contains(target, hit)) return true;
  if (target.labels) for (const label of target.labels) if (contains(label, hit)) return true;
  const label = hit.closest && hit.closest('label');
  if (label && label.control && contains(target, label.control)) return true;
  // A control may sit inside the thing that is named, e.g. the checkbox inside its own label.
  return target.tagName === 'LABEL' && target.control === hit;
}

function boxesOf(element) {
  const list = Array.from(element.getClientRects()).filter((box) => box.width > 0 && box.height > 0);
  if (!list.length && element.labels) for (const label of element.labels) list.push(...label.getClientRects());
  if (!list.length) for (const child of element.children) list.push(...child.getClientRects());
  return list.filter((box) => box.width > 0 && box.height > 0);
}

function pointsOf(boxes, position) {
  if (position) {
    const [box] = boxes;
    return [[box.left + position.x, box.top + position.y]];
  }
  const points = [];
  for (const box of boxes.slice(0, 4)) {
    const left = Math.max(box.left, 0);
    const top = Math.max(box.top, 0);
    const right = Math.min(box.right, innerWidth);
    const bottom = Math.min(box.bottom, innerHeight);
    if (right <= left || bottom <= top) continue;
    for (const [fx, fy] of [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.1], [0.9, 0.9]]) {
      points.push([left + (right - left) * fx, top + (bottom - top) * fy]);
    }
  }
  return points;
}

const inView = (boxes) => boxes.some((box) => box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth);

const moving = (element) => {
  for (let at = element; at && at.nodeType === 1; at = parentOf(at)) {
    for (const animation of at.getAnimations()) {
      if (animation.playState !== 'running') continue;
      const frames = animation.effect && animation.effect.getKeyframes ? animation.effect.getKeyframes() : [];
      if (frames.some((frame) => ['transform', 'left', 'top', 'right', 'bottom', 'translate', 'scale', 'rotate', 'width', 'height', 'margin',
        'marginLeft', 'marginTop', 'offsetDistance'].some((name) => name in frame))) return true;
    }
  }
  return false;
};

const nextFrame = () => new Promise((resolve) => {
  const timer = setTimeout(resolve, 100);
  requestAnimationFrame(() => { clearTimeout(timer); resolve(); });
});

async function still(element, deadline) {
  if (!moving(element)) return true;
  let last = element.getBoundingClientRect();
  let calm = 0;
  while (performance.now() < deadline) {
    await nextFrame();
    const box = element.getBoundingClientRect();
    calm = box.left === last.left && box.top === last.top && box.width === last.width ? calm + 1 : 0;
    if (calm >= 2) return true;
    last = box;
  }
  return false;
}

// Attached, visible, enabled, still, in the viewport, uncovered: else the first that fails.
async function prepare(number, options) {
  watch();
  const element = nodeOf(number);
  if (!element) return refusal(number < nextRef ? 'detached' : 'stale_ref');
  const role = roleOf(element);
  let how = '';
  if (options.wants === 'file' ? !(element.tagName === 'INPUT' && element.type === 'file') : role === 'file_input' && options.wants !== 'hover') {
    return refusal(options.wants === 'file' ? 'not_a_file_input' : 'file_input');
  }
  if (options.wants === 'file') return enabledOf(element) ? { label: nameOf(element, role)[0].slice(0, 200), multiple: element.multiple } : refusal('disabled');
  if (options.wants === 'select' && element.tagName !== 'SELECT') return refusal('not_selectable');
  if (options.wants === 'fill' && element.tagName !== 'SELECT') {
    if (element.readOnly) return refusal('read_only');
    if (!editableOf(element)) return refusal('not_editable');
  }
  if (options.text !== undefined) {
    const planned = plan(element, options.text);
    if (planned.refused) return planned;
    how = planned.how;
  }
  if (!rendered(element)) return refusal('hidden');
  if (!enabledOf(element) && options.wants !== 'hover' && options.wants !== 'scroll') return refusal('disabled');
  let boxes = boxesOf(element);
  if (!boxes.length) return refusal('no_box');
  if (!inView(boxes) || options.position || deepestOutside(element, boxes)) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    version += 1;
    boxes = boxesOf(element);
    if (!boxes.length || !inView(boxes)) return refusal('offscreen');
  }
  if (!(await still(element, performance.now() + 800))) return refusal('moving');
  if (!element.isConnected) return refusal('detached');
  boxes = boxesOf(element);
  const points = boxes.length ? pointsOf(boxes, options.position) : [];
  if (!points.length) return refusal('offscreen');
  let cover = null;
  for (const [x, y] of points) {
    const hit = deepestAt(x, y);
    if (related(element, hit)) {
      const already = deepActive() === element;
      mark({ base: options.base, most: options.most });
      arm(number, options.arm || 'free');
      return { x, y, focused: already, checked: checkedOf(element), role, how };
    }
    cover = cover || hit;
  }
  return refusal('covered', { cover: shortly(cover) });
}

// In the window, yet clipped away by a scrolling ancestor: scrolling brings it in.
function deepestOutside(element, boxes) {
  const [box] = boxes;
  for (let at = parentOf(element); at && at.nodeType === 1 && at !== document.body; at = parentOf(at)) {
    const style = getComputedStyle(at);
    if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
    const clip = at.getBoundingClientRect();
    const x = (box.left + box.right) / 2;
    const y = (box.top + box.bottom) / 2;
    if (x < clip.left || x > clip.right || y < clip.top || y > clip.bottom) return true;
  }
  return false;
}

function arm(number, kind) {
  watch();
  const element = number ? nodeOf(number) : null;
  armed = { element, kind, at: performance.now(), seen: [], blocked: null, missed: null, downloads: false, until: performance.now() + GUARD_MS };
  countFrames();
  return armed.at;
}

function disarm() {
  const was = armed;
  armed = null;
  return was ? { seen: was.seen, blocked: was.blocked } : null;
}

const verdict = () => (armed ? { seen: armed.seen, blocked: armed.blocked, missed: armed.missed, downloads: armed.downloads } : { seen: [] });

// After an action's input is acknowledged: the rest, and then the difference since it was armed. The guard is down from here on.
async function finish(options) {
  if (armed) armed.kind = 'free';
  const calm = await rest(options);
  return { ...differ(options), quiet: calm.quiet };
}

const KEYED = new Set('keydown keypress keyup beforeinput'.split(' '));

function guard(event) {
  if (!armed || !event.isTrusted || performance.now() > armed.until || armed.kind === 'free') return;
  const keyed = KEYED.has(event.type);
  if (keyed !== (armed.kind === 'keys')) return;
  if (!armed.blocked && !armed.seen.length) armed.blocked = keyed ? strayKey() : strayPress(event);
  if (armed.blocked) {
    event.stopImmediatePropagation();
    event.preventDefault();
    return;
  }
  if (!armed.seen.includes(event.type)) armed.seen.push(event.type);
  if (armed.kind !== 'pointer') return;
  if (event.type === 'pointerdown') awaitRelease();
  else if (event.type === 'pointerup' && armed.element && armed.element.isConnected) {
    const hit = deepestAt(event.clientX, event.clientY);
    if (!onTarget(event, hit)) armed.missed = shortly(hit);
  }
}

// What the first key or press of an action would land on, where that is not its target. What comes after it may go where the page sends it.
function strayKey() {
  const at = deepActive();
  return armed.element && at && (at === armed.element || contains(armed.element, at)) ? null : shortly(at);
}

function strayPress(event) {
  if (event.type !== 'pointerdown' && event.type !== 'mousedown') return null;
  const hit = deepestAt(event.clientX, event.clientY);
  return onTarget(event, hit) ? null : shortly(hit);
}

const onTarget = (event, hit) => Boolean(armed.element && (related(armed.element, hit) || event.composedPath().includes(armed.element)));

// Press and release are sent together but may arrive apart. What the page's own clocks move in between would turn a click on the target into
// one on whatever lies there then. So the press waits until its release is queued: the engine takes input before any timer or frame.
function awaitRelease() {
  const inputs = navigator.scheduling;
  if (!inputs || !inputs.isInputPending) return;
  const until = performance.now() + 400;
  while (!inputs.isInputPending() && performance.now() < until);
}

// The engine says nothing of a link that downloads until the server answers.
function noteDownload(event) {
  if (!armed || !event.isTrusted || event.defaultPrevented) return;
  armed.downloads = event.composedPath().some((node) => node.tagName === 'A' && node.href && node.hasAttribute('download'));
}
addEventListener('click', noteDownload);

for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu', ...KEYED]) {
  addEventListener(kind, guard, { capture: true, passive: false });
}

// Focus and select everything, so that trusted text replaces the old contents.
function aim(number, how) {
  const element = nodeOf(number);
  if (!element) return refusal('detached');
  element.focus({ preventScroll: true });
  if (deepActive() !== element && !(element.isContentEditable && contains(element, deepActive()))) return refusal('not_focusable');
  if (how === 'replace') {
    if (element.select) element.select();
    else {
      const range = document.createRange();
      range.selectNodeContents(element);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
    }
  }
  return { empty: element.isContentEditable ? !element.textContent : !element.value };
}

function plan(element, text) {
  if (element.tagName === 'SELECT') {
    if (element.options.length > 1000) return refusal('too_many_options');
    const option = optionFor(element, text);
    return option ? { how: 'select' } : refusal('no_such_option', { options: Array.from(element.options).slice(0, 20).map((o) => o.label.slice(0, 60)) });
  }
  if (element.tagName === 'INPUT' && /^(date|time|month|week|datetime-local|color|number|range)$/.test(element.type)) {
    const probe = document.createElement('input');
    probe.type = element.type;
    probe.value = text;
    if (probe.value !== text && !(element.type === 'color' && probe.value === text.toLowerCase())) return refusal('malformed_value');
    return { how: element.type === 'number' ? 'type' : 'set' };
  }
  return { how: 'type' };
}

function optionFor(select, wanted) {
  const usable = Array.from(select.options).filter((option) => !option.disabled && !(option.parentElement.tagName === 'OPTGROUP' && option.parentElement.disabled));
  return usable.find((option) => option.label === wanted) || usable.find((option) => option.value === wanted) ||
    usable.find((option) => option.label.trim() === wanted.trim()) || null;
}

function announce(element) {
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
}

function put(number, text) {
  const element = nodeOf(number);
  if (!element) return refusal('detached');
  element.focus({ preventScroll: true });
  if (element.tagName === 'SELECT') {
    const option = optionFor(element, text);
    if (!option) return refusal('no_such_option');
    option.selected = true;
  } else element.value = text;
  announce(element);
  return {};
}

function canPick(number, wanted) {
  const element = nodeOf(number);
  if (!element) return refusal('detached');
  const options = wanted.map((text) => optionFor(element, text));
  if (options.includes(null)) return refusal('no_such_option', { options: Array.from(element.options).slice(0, 20).map((o) => o.label.slice(0, 60)) });
  if (!element.multiple && options.length !== 1) return refusal('one_option_only');
  return { ok: true };
}

function pick(number, wanted) {
  const element = nodeOf(number);
  if (!element) return refusal('detached');
  const options = new Set(wanted.map((text) => optionFor(element, text)));
  element.focus({ preventScroll: true });
  for (const option of element.options) option.selected = options.has(option);
  announce(element);
  return {};
}

function filled(number, text) {
  const element = nodeOf(number);
  if (!element) return { length: null, equal: null };
  const value = element.isContentEditable ? element.innerText : element.tagName === 'SELECT' ? text : element.value;
  const clean = (string) => string.replace(/\r\n?/g, '\n').replace(/\u00a0/g, ' ').replace(/\n$/, '');
  const wanted = element.tagName === 'INPUT' ? text.replace(/[\r\n]/g, '') : text;
  return { length: privateField(element) ? null : value.length, equal: clean(value) === clean(wanted) };
}

const checkedNow = (number) => { const element = nodeOf(number); return { checked: element ? checkedOf(element) : null }; };

function scrollTarget(number, dx, dy) {
  if (!number) {
    const grid = [0.5, 0.3, 0.7, 0.1, 0.9];
    for (const fy of grid) for (const fx of grid) {
      const at = deepestAt(innerWidth * fx, innerHeight * fy);
      if (at && at.tagName !== 'IFRAME' && !innerScroller(at, dx, dy)) return { x: innerWidth * fx, y: innerHeight * fy };
    }
    return { x: -1, y: -1 };
  }
  const element = nodeOf(number);
  if (!element) return refusal(number < nextRef ? 'detached' : 'stale_ref');
  const box = element.getBoundingClientRect();
  return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
}

function innerScroller(start, dx, dy) {
  for (let at = start; at && at.nodeType === 1 && at !== document.documentElement && at !== document.body; at = parentOf(at)) {
    const style = getComputedStyle(at);
    if (dy && /auto|scroll/.test(style.overflowY) && at.scrollHeight > at.clientHeight) return at;
    if (dx && /auto|scroll/.test(style.overflowX) && at.scrollWidth > at.clientWidth) return at;
  }
  return null;
}

// Resolves with the position once a scroll that began at `before` has come to rest, or when none begins.
async function scrollMoved(number, before) {
  const began = performance.now();
  let at = scrolled(number);
  let calm = 0;
  while (performance.now() - began < 600) {
    await nextFrame();
    const now = scrolled(number);
    calm = now.x === at.x && now.y === at.y ? calm + 1 : 0;
    at = now;
    const moved = at.x !== before.x || at.y !== before.y;
    if (calm >= 2 && (moved || performance.now() - began > 150)) break;
  }
  return at;
}

function scrollDirect(number, dx, dy) {
  const target = number ? nodeOf(number) : document.scrollingElement;
  if (!target) return refusal('detached');
  target.scrollBy({ left: dx, top: dy, behavior: 'instant' });
  return scrolled(number);
}

function scrolled(number) {
  const target = number ? nodeOf(number) : null;
  return target ? { x: target.scrollLeft, y: target.scrollTop } : { x: scrollX, y: scrollY };
}

function boxOf(number) {
  const element = nodeOf(number);
  if (!element) return refusal(number < nextRef ? 'detached' : 'stale_ref');
  if (!rendered(element)) return refusal('hidden');
  const box = element.getBoundingClientRect();
  return { x: box.left, y: box.top, width: box.width, height: box.height, scrollX, scrollY };
}

const viewNow = () => ({ x: innerWidth, y: innerHeight });
