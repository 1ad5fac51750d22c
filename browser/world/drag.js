// Whether a movement of the pressed mouse begins the page's own drag and drop.
let dragWatch = null;

function dragArm() {
  let began = null;
  const seen = (event) => { began = event; };
  let settled = Promise.resolve(false);
  const moved = () => {
    settled = new Promise((resolve) => {
      addEventListener('dragstart', seen, { once: true, capture: true });
      // The drag begins after the movement's listeners, in the same task.
      setTimeout(() => resolve(began !== null && !began.defaultPrevented), 0);
    });
  };
  addEventListener('mousemove', moved, { once: true, capture: true });
  dragWatch = async () => {
    const result = await settled;
    removeEventListener('mousemove', moved, { capture: true });
    removeEventListener('dragstart', seen, { capture: true });
    return result;
  };
}

async function dragBegun() {
  const watch = dragWatch;
  dragWatch = null;
  return watch ? watch() : false;
}
