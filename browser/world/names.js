// Role, name and state of one element. Values of fields never leave this file; their lengths may.
const NAMED_BY_CONTENT = new Set(('button link heading label checkbox radio tab menuitem menuitemcheckbox menuitemradio option switch ' +
  'treeitem tooltip cell gridcell columnheader rowheader clickable').split(' '));
const CONTROL_ROLES = new Set(('button link checkbox radio slider textbox combobox file_input tab menuitem menuitemcheckbox ' +
  'menuitemradio option switch treeitem searchbox spinbutton listbox clickable gridcell scrollbar').split(' '));
const INPUT_ROLES = { checkbox: 'checkbox', radio: 'radio', range: 'slider', button: 'button', submit: 'button', reset: 'button',
  image: 'button', file: 'file_input', color: 'textbox' };
const EDITABLE_TYPES = new Set('text search email url tel password number date time month week datetime-local color'.split(' '));
const PRIVATE = /token|secret|csrf|credential|one-time|otp|passw|cc-|card-?n/i;

const TAG_ROLES = { BUTTON: 'button', SUMMARY: 'button', SELECT: 'combobox', TEXTAREA: 'textbox', LABEL: 'label', H1: 'heading', H2: 'heading',
  H3: 'heading', H4: 'heading', H5: 'heading', H6: 'heading', DIALOG: 'dialog' };

function roleOf(element) {
  const tag = element.tagName;
  if (!element.hasAttributes()) return tag === 'INPUT' ? 'textbox' : TAG_ROLES[tag] || null;
  if (tag === 'INPUT') {
    if (element.type === 'hidden') return null;
    if (element.type === 'file') return 'file_input';
  }
  const explicit = element.getAttribute('role');
  if (explicit) {
    const role = explicit.trim().split(/\s+/)[0].toLowerCase().slice(0, 64);
    if (role && role !== 'presentation' && role !== 'none' && role !== 'generic') return role;
  }
  if (tag === 'A' || tag === 'AREA') { if (element.hasAttribute('href')) return 'link'; }
  if (tag === 'INPUT') return INPUT_ROLES[element.type] || 'textbox';
  if (tag === 'IMG') return element.alt ? 'img' : null;
  const own = TAG_ROLES[tag];
  if (own) return own;
  const editable = element.getAttribute('contenteditable');
  if (editable !== null && editable.toLowerCase() !== 'false') return 'textbox';
  if (element.hasAttribute('onclick') || (element.hasAttribute('tabindex') && element.tabIndex >= 0)) return 'clickable';
  return null;
}

const labelText = (nodes) => Array.from(nodes, (node) => textOf(node, 512)).filter(Boolean).join(' ');

// [name, unseen]: unseen means that a person looking at the page does not see this name as text.
function nameOf(element, role) {
  const by = element.getAttribute('aria-labelledby');
  if (by) {
    const root = element.getRootNode();
    const nodes = by.split(/\s+/).map((id) => root.getElementById && root.getElementById(id)).filter(Boolean);
    const name = nodes.map((node) => (rendered(node) ? textOf(node, 512) : (node.textContent || '').trim())).filter(Boolean).join(' ');
    if (name) return [name, nodes.some((node) => !rendered(node) || unseen(node, node.getBoundingClientRect(), getComputedStyle(node)))];
  }
  const label = (element.getAttribute('aria-label') || '').trim();
  if (label) return [label, !textOf(element, 2000).includes(label.replace(/\s+/g, ' '))];
  const tag = element.tagName;
  if (tag === 'INPUT' && /^(button|submit|reset)$/.test(element.type)) {
    if (element.value) return [element.value, false];
    return [element.title || { submit: 'Submit', reset: 'Reset' }[element.type] || '', false];
  }
  if (tag === 'IMG' || (tag === 'INPUT' && element.type === 'image') || tag === 'AREA') {
    return [element.alt || element.title || '', true];
  }
  if (element.labels && element.labels.length) {
    const name = labelText(element.labels);
    if (name) return [name, false];
  }
  if (NAMED_BY_CONTENT.has(role) || role === 'text') {
    const name = textOf(element, 1024, role === 'text' ? (node) => roleOf(node) !== null || !PHRASING.has(node.tagName) : null);
    if (name) return [name, false];
    const image = element.querySelector('svg title');
    if (image && image.textContent.trim()) return [image.textContent.trim(), true];
  }
  if (tag === 'FIELDSET' || role === 'group' || role === 'radiogroup') {
    const legend = element.querySelector('legend');
    if (legend) return [textOf(legend, 512), false];
  }
  if (element.title) return [element.title.trim(), true];
  if (element.placeholder) return [element.placeholder.trim(), false];
  if (role === 'dialog' || role === 'alertdialog' || role === 'alert' || role === 'status' || role === 'row') return [textOf(element, 200), false];
  return ['', false];
}

// Rendered, yet not to be seen by a person: what hidden instructions use.
function unseen(element, box, style) {
  if (!element.checkVisibility({ opacityProperty: true })) return true;
  if (box.right + scrollX <= 0 || box.bottom + scrollY <= 0) return true;
  if (box.width <= 1 || box.height <= 1) return style.overflow !== 'visible' || !element.childElementCount;
  return CLIPPED.test(style.clip) || INSET.test(style.clipPath);
}

const CLIPPED = /^rect\((0(px)?,? ?){4}\)$|^rect\(1px,? 1px,? 1px,? 1px\)$/;
const INSET = /inset\((50|100)%/;
const CLEAR = /^rgba\(.*, 0\)$|^transparent$/;
const PICTURE = 'a picture';
const grounds = new Map(); // of the elements that the walk under way has met: a picture, a colour, or nothing

function groundOf(element, style) {
  let ground = grounds.get(element);
  if (ground === undefined) {
    const own = style || getComputedStyle(element);
    const colour = own.backgroundImage === 'none' ? own.backgroundColor : PICTURE;
    grounds.set(element, ground = CLEAR.test(colour) ? '' : colour);
  }
  return ground;
}

function unseenText(element, style) {
  if (parseFloat(style.fontSize) < 2 || CLEAR.test(style.webkitTextFillColor || style.color)) return true;
  for (let at = element, steps = 0; at && at.nodeType === 1 && steps < 8; at = parentOf(at), steps += 1) {
    const ground = groundOf(at, at === element ? style : null);
    if (ground) return ground !== PICTURE && ground === style.color;
  }
  return style.color === 'rgb(255, 255, 255)';
}

function privateField(element) {
  if (/^(password|hidden|file)$/.test(element.type || '')) return true;
  return PRIVATE.test(`${element.name || ''} ${element.id || ''} ${element.getAttribute('autocomplete') || ''}`);
}

function enabledOf(element) {
  if (element.matches(':disabled')) return false;
  for (let at = element, steps = 0; at && at.nodeType === 1 && steps < 12; at = parentOf(at), steps += 1) {
    if (at.getAttribute('aria-disabled') === 'true') return false;
    if (at.inert) return false;
  }
  return true;
}

function editableOf(element) {
  if (element.tagName === 'TEXTAREA') return !element.readOnly;
  if (element.tagName === 'INPUT') return EDITABLE_TYPES.has(element.type) && !element.readOnly;
  return element.isContentEditable;
}

function checkedOf(element) {
  if (element.tagName === 'INPUT' && /^(checkbox|radio)$/.test(element.type)) return element.indeterminate ? 'mixed' : element.checked;
  const checked = element.getAttribute('aria-checked') || element.getAttribute('aria-pressed');
  return checked === null ? null : checked === 'mixed' ? 'mixed' : checked === 'true';
}

// The description sent out: short keys, nothing that is false or absent.
function describe(element, role, box) {
  const style = getComputedStyle(element);
  const [name, nameUnseen] = nameOf(element, role);
  const out = { r: role, n: name.slice(0, 512) };
  if (nameUnseen && name) out.u = 1;
  if (unseen(element, box, style) || (role === 'text' && unseenText(element, style))) out.h = 1;
  if (role === 'text' || role === 'label' || role === 'img') return out;
  if (role === 'heading') {
    out.l = Number(element.getAttribute('aria-level')) || Number(element.tagName[1]) || 2;
    if (unseenText(element, style)) out.h = 1;
    return out;
  }
  if (!enabledOf(element)) out.d = 1;
  if (editableOf(element)) out.e = 1;
  const checked = checkedOf(element);
  if (checked !== null) out.c = checked;
  const expanded = element.getAttribute('aria-expanded') || (element.tagName === 'SUMMARY' && element.parentElement &&
    element.parentElement.tagName === 'DETAILS' ? String(element.parentElement.open) : null);
  if (expanded) out.x = expanded === 'true';
  if (element.getAttribute('aria-selected') === 'true' || element.getAttribute('aria-current')) out.s = 1;
  if (element.required || element.getAttribute('aria-required') === 'true') out.q = 1;
  if (element.getAttribute('aria-invalid') === 'true') out.i = 1;
  if (element.getRootNode().activeElement === element) out.f = 1;
  if ((out.e || element.tagName === 'SELECT') && !privateField(element)) {
    out.v = element.isContentEditable ? element.textContent.length : (element.value || '').length;
  }
  if (element.tagName === 'SELECT') {
    out.o = Array.from(element.options).slice(0, 12).map((option) => (option.label || option.text).trim().slice(0, 60));
    if (element.options.length > 12) out.on = element.options.length;
  }
  return out;
}
