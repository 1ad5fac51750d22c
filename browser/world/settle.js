// Watching the document: what changed when, what changes all the time, and when it has come to rest.
let version = 0;
let lastChange = -1;
let watching = null;
const settled = { version: -1 };
const observedRoots = new WeakSet();
const rhythm = new WeakMap();
const NOISE_WINDOW = 2500;

// A target that has already changed twice lately, before the action or three times since, is a clock and not an answer.
function noisy(node, now, since) {
  const beats = rhythm.get(node) || [];
  beats.push(now);
  while (beats.length > 8) beats.shift();
  rhythm.set(node, beats);
  let before = 0;
  let after = 0;
  for (const beat of beats) {
    if (now - beat > NOISE_WINDOW) continue;
    if (beat < since) before += 1; else after += 1;
  }
  return before >= 2 || after >= 4;
}

function changed(records) {
  const now = performance.now();
  version += 1;
  for (const record of records) {
    if (!noisy(record.target, now, armed ? armed.at : 0)) lastChange = now;
  }
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
  const touched = () => {
    version += 1;
    if (waiters.size) wake();
  };
  for (const kind of ['scroll', 'resize', 'focusin', 'focusout', 'input', 'change', 'toggle', 'transitionend', 'animationend', 'load',
    'pointerover', 'fullscreenchange']) {
    addEventListener(kind, touched, { capture: true, passive: true });
  }
}

// Resolves after two frames without a change, or after 50 ms without one, or at the cap.
function rest(options) {
  watch();
  const since = options.since || (armed ? armed.at : performance.now());
  const began = performance.now();
  return new Promise((resolve) => {
    let calm = 0;
    let done = false;
    let frame = began;
    const finish = (quiet) => {
      if (done) return;
      done = true;
      clearTimeout(cap);
      clearTimeout(still);
      resolve({ quiet, ms: performance.now() - began, changed: lastChange >= since });
    };
    const cap = setTimeout(() => finish(false), options.capMs);
    let still = 0;
    const calmFor = () => performance.now() - Math.max(lastChange, since);
    const wait = () => { still = setTimeout(() => (calmFor() >= 50 ? finish(true) : wait()), Math.max(1, 51 - calmFor())); };
    wait();
    const tick = () => {
      if (done) return;
      const now = performance.now();
      calm = lastChange < frame ? calm + 1 : 0;
      frame = now;
      if (calm >= 2) finish(true); else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
}
