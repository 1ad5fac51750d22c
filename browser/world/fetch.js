// A download with the page's own session, read in pieces; and waits that look again only when something happened.
const fetches = new Map();
let fetchCount = 0;

async function fetchBegin(url, deadlineMs) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), deadlineMs);
  let response;
  try {
    response = await fetch(url, { redirect: 'manual', credentials: 'same-origin', cache: 'no-store', signal: stop.signal, mode: 'same-origin' });
  } catch (error) {
    clearTimeout(timer);
    return refusal(error.name === 'AbortError' ? 'too_slow' : 'network_failed');
  }
  if (response.type === 'opaqueredirect') { clearTimeout(timer); return refusal('redirect_refused'); }
  if (response.status !== 200 && response.status !== 204) { clearTimeout(timer); stop.abort(); return refusal('status_refused', { status: response.status }); }
  fetchCount += 1;
  fetches.set(fetchCount, { stop, timer, reader: response.body ? response.body.getReader() : null, left: null, next: null, blob: null });
  // The length stated is that of what is sent: with an encoding it says nothing of what comes out of it.
  const stated = response.headers.get('content-encoding') ? null : response.headers.get('content-length');
  const length = stated !== null && /^[0-9]{1,15}$/.test(stated) ? Number(stated) : null;
  return { id: fetchCount, status: response.status, media: response.headers.get('content-type') || '', length };
}

// The next piece comes with a `fetchBlob` of its own, which the engine itself reads: text through the inspector costs the page ten times as
// much. The piece after it is fetched meanwhile. At least one byte and at most `most`, or the end.
async function fetchRead(id, most) {
  const going = fetches.get(id);
  if (!going) return refusal('canceled');
  const piece = await (going.next || nextPiece(going, most));
  if (piece.refused) return piece;
  going.blob = piece.blob;
  if (!piece.done) going.next = nextPiece(going, most);
  return { size: piece.blob.size, done: piece.done };
}

function fetchBlob(id) {
  const going = fetches.get(id);
  return going ? going.blob : null;
}

async function nextPiece(going, most) {
  const parts = [];
  let size = 0;
  let over = !going.reader;
  try {
    while (size < most && !over) {
      const { value, done } = going.left ? { value: going.left, done: false } : await going.reader.read();
      going.left = null;
      over = done;
      if (done) break;
      const take = value.subarray(0, most - size);
      if (take.length < value.length) going.left = value.subarray(take.length);
      parts.push(take);
      size += take.length;
    }
    return { blob: new Blob(parts), done: over };
  } catch (error) {
    return refusal(error.name === 'AbortError' ? 'too_slow' : 'network_failed');
  }
}

function fetchEnd(id) {
  const going = fetches.get(id);
  if (!going) return {};
  clearTimeout(going.timer);
  going.stop.abort();
  fetches.delete(id);
  return {};
}

function holds(condition) {
  if (find({ text: condition.text, role: condition.role, exact: condition.exact, most: 1 }).total > 0) return true;
  if (condition.role || !document.body) return false;
  const wanted = flat(condition.text);
  return flat(document.body.textContent).includes(wanted) && flat(document.body.innerText).includes(wanted);
}

// Resolves true as soon as the condition holds, false at the cap. Looks again after changes only, never more than a fifth of the time.
function until(condition, capMs) {
  watch();
  const began = performance.now();
  return new Promise((resolve) => {
    let seen = -1;
    const look = () => {
      if (seen !== version) {
        seen = version;
        const started = performance.now();
        if (holds(condition)) { resolve(true); return; }
        const cost = performance.now() - started;
        if (performance.now() - began >= capMs) { resolve(false); return; }
        setTimeout(look, Math.max(30, cost * 4));
        return;
      }
      if (performance.now() - began >= capMs) { resolve(false); return; }
      onceChanged(look, capMs - (performance.now() - began));
    };
    look();
  });
}

const waiters = new Set();

// Calls back at the next change of anything watched, or after the given time; styles may change without one, so at least twice a second.
function onceChanged(callback, ms) {
  const call = () => { waiters.delete(call); clearTimeout(timer); callback(); };
  const timer = setTimeout(() => { version += 1; call(); }, Math.max(1, Math.min(ms, 500)));
  waiters.add(call);
}

function wake() {
  for (const call of [...waiters]) call();
}
