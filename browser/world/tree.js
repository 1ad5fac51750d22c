// The flat tree as the engine lays it out: slots, open shadow roots, and the closed ones the inspector handed over.
const closedRoots = new WeakMap();
const PHRASING = new Set(('B I EM STRONG SPAN CODE SMALL U MARK SUB SUP FONT BR WBR ABBR CITE TIME S DEL INS KBD Q VAR SAMP ' +
  'BDI BDO DFN DATA').split(' '));
const SKIPPED = new Set('SCRIPT STYLE NOSCRIPT TEMPLATE HEAD META LINK TITLE BASE'.split(' '));

const rootOf = (element) => element.shadowRoot || closedRoots.get(element) || null;

function childrenOf(element) {
  const root = rootOf(element);
  if (root) return root.childNodes;
  if (element.tagName === 'SLOT') {
    const assigned = element.assignedNodes();
    if (assigned.length) return assigned;
  }
  return element.childNodes;
}

function parentOf(node) {
  if (node.assignedSlot) return node.assignedSlot;
  const parent = node.parentNode;
  return parent && parent.nodeType === 11 ? parent.host || null : parent;
}

function contains(ancestor, node) {
  for (let at = node; at; at = parentOf(at)) if (at === ancestor) return true;
  return false;
}

function deepestAt(x, y) {
  let at = document.elementFromPoint(x, y);
  for (let guard = 0; at && guard < 64; guard += 1) {
    const root = rootOf(at);
    const inner = root && root.elementFromPoint(x, y);
    if (!inner || inner === at || inner.getRootNode() !== root) break;
    at = inner;
  }
  return at;
}

function hasOwnText(element) {
  for (let child = element.firstChild; child; child = child.nextSibling) {
    if (child.nodeType === 3 && /\S/.test(child.data)) return true;
  }
  return false;
}

const whole = (_key, value) => (typeof value === 'string' ? value.toWellFormed() : value);

// An answer as JSON. Only lone surrogates are written as \ud…: then, and only then, every string is made whole.
function inText(answer) {
  if (answer instanceof Promise) return answer.then(inText);
  const text = JSON.stringify(answer === undefined ? null : answer);
  return text.includes('\\ud') ? JSON.stringify(answer, whole) : text;
}

const rendered = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: false });

// Text of a subtree in reading order, without what is not rendered and without private or editable contents.
function textOf(element, limit, stopAt) {
  let text = '';
  const stack = [[childrenOf(element), 0]];
  while (stack.length && text.length < limit) {
    const top = stack[stack.length - 1];
    if (top[1] >= top[0].length) {
      stack.pop();
      if (top[2]) text += ' ';
      continue;
    }
    const node = top[0][top[1]];
    top[1] += 1;
    if (node.nodeType === 3) text += node.data;
    else if (node.nodeType === 1) {
      if (SKIPPED.has(node.tagName) || node.getAttribute('aria-hidden') === 'true') continue;
      if (stopAt && stopAt(node)) { text += ' … '; continue; }
      if (node.tagName === 'BR') { text += ' '; continue; }
      if (node.tagName === 'IMG') { text += ` ${node.alt} `; continue; }
      if (/^(INPUT|SELECT|TEXTAREA|IFRAME|OBJECT|VIDEO|AUDIO|CANVAS)$/.test(node.tagName) || node.isContentEditable) continue;
      if (!rendered(node) && !(node.tagName === 'SLOT')) continue;
      const label = node.getAttribute('aria-label');
      if (label && label.trim()) { text += ` ${label} `; continue; }
      const block = !PHRASING.has(node.tagName) && node.tagName !== 'SLOT';
      if (block) text += ' ';
      stack.push([childrenOf(node), 0, block]);
    }
  }
  return text.slice(0, limit).replace(/\s+/g, ' ').trim();
}
