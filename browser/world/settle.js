// Watching the document: what changed when, what changes all the time, and when it has come to rest.
let version = 0;
let lastChange = -1;
let watching = null;
let lastInput = -1;
let frames = [];
let counting = false;
let idle = false;
const observedRoots = new WeakSet();
const rhythm = new WeakMap();
const NOISE_WINDOW = 2500;
const OURS = 500; // changes this soon after an action are taken for its work

// A target that changed at least twice lately without an action of ours is a clock, and no answer to this one.
function noisy(node, now) {
  let its = rhythm.get(node);
  if (!its) rhythm.set(node, its = { beats: [], since: -1, clock: false });
  if (armed && its.since !== armed.at) {
    its.since = armed.at;
    its.clock = its.beats.filter((beat) => armed.at - beat < NOISE_WINDOW).length >= 2;
  }
  if ((!armed || its.clock || now - armed.at > OURS) && its.beats[its.beats.length - 1] !== now) its.beats.push(now);
  if (its.beats.length > 8) its.beats.shift();
  return its.clock;
}

function changed(records) {
  const now = performance.now();
  version += 1;
  for (const record of records) if (!noisy(record.target, now)) lastChange = now;
  if (waiters.size) wake();
}

function observe(root) {
  if (!root || observedRoots.has(root)) return;
  observedRoots.add(root);
  watching.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
}

function watch() {
  if (watching) return;
  watching = new MutationObserver(changed);
  observe(document);
  const touched = (event) => {
    version += 1;
    if (event.isTrusted && INPUTS.has(event.type)) lastInput = performance.now();
    if (waiters.size) wake();
  };
  for (const kind of ['scroll', 'resize', 'focusin', 'focusout', 'input', 'change', 'toggle', 'transitionend', 'animationend', 'load',
    'pointerover', 'fullscreenchange', 'keydown', 'pointerdown', 'pointerup', 'click', 'wheel']) {
    addEventListener(kind, touched, { capture: true, passive: true });
  }
}

const INPUTS = new Set('input change keydown pointerdown pointerup click wheel'.split(' '));

// Frames are counted from the instant an action is armed, so that its windows run together.
function countFrames() {
  frames = [];
  goOnCounting();
}

// Once an answer is there no frame is asked for: a page that draws for nobody makes every capture wait a frame longer.
function goOnCounting() {
  idle = false;
  if (counting) return;
  counting = true;
  const tick = () => {
    if (!armed || idle || performance.now() > armed.until) { counting = false; return; }
    frames.push(performance.now());
    if (frames.length > 8) frames.shift();
    for (const look of lookers) look();
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

const lookers = new Set();
const FRAMELESS = 150;

// Resolves after two frames without a change (one, where a text entry changed nothing at all), or at the cap. On a busy machine frames come
// late and so does the page's own work: time alone counts only where no frames come at all, as in a window that nobody draws.
function rest(options) {
  watch();
  if (!armed || performance.now() > armed.until) arm(0, 'free');
  else goOnCounting();
  const since = armed.at;
  const began = performance.now();
  return new Promise((resolve) => {
    let timer = 0;
    const finish = (quiet) => {
      clearTimeout(timer);
      lookers.delete(look);
      idle = lookers.size === 0;
      resolve({ quiet, ms: performance.now() - began, changed: lastChange >= since });
    };
    const look = () => {
      const now = performance.now();
      const calmSince = Math.max(lastChange, lastInput, since);
      const needed = options.oneFrame && lastChange < since ? 1 : 2;
      const calm = frames.reduce((sum, at) => sum + (at > calmSince ? 1 : 0), 0);
      if (calm >= needed || (calm === 0 && now - calmSince >= FRAMELESS)) finish(true);
      else if (now - began >= options.capMs) finish(false);
      else {
        clearTimeout(timer);
        timer = setTimeout(look, Math.max(16, Math.min(FRAMELESS + 1 - (now - calmSince), options.capMs - (now - began))));
      }
    };
    lookers.add(look);
    look();
  });
}

// An idle period lasts 50 ms, or until the next timer, where the compositor expects no frame soon; otherwise at most from one frame to the next.
// It expects none when nothing is left to commit, to activate or to draw, and its last frame brought nothing new.
const ONE_FRAME = 17;
const DISPLAY_MS = 100;

const idleTime = () => new Promise((resolve) => { requestIdleCallback((deadline) => resolve(deadline.timeRemaining())); });

// Asked twice: the first answer may have come at the end of a period.
const noFrameSoon = async () => await idleTime() > ONE_FRAME || await idleTime() > ONE_FRAME;

async function allShown() {
  await new Promise((resolve) => { requestAnimationFrame(resolve); });
  return noFrameSoon();
}

// Where the window stands, and whether all that the document is now is on display.
async function onDisplay() {
  let timer = 0;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, DISPLAY_MS, false); });
  // Of an emulated finer screen a frame has one pixel for each of CSS.
  const shown = devicePixelRatio === 1 && await Promise.race([allShown(), late]);
  clearTimeout(timer); // it would cut idle periods short
  return { shown, ...windowNow() };
}
