"""Keeps a broker for one run of tests: ends it when told to, and when the run's first process is gone.

Run by path, with nothing but the standard library: `keeper.py RUN_PID FOLDER COMMAND ...`. It starts the command in a
group of its own, with `ready` and `errors` in the folder as its output, and ends it by SIGTERM. For as long as it lives
it holds a lock on `alive` in the folder; `keeper.pid` is its own. Where the run's first process is gone, nobody else
will remove the folder, so it does.
"""

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

END_S = 30.0


def main() -> int:
    """Start, watch, end."""
    run_pid, folder = int(sys.argv[1]), Path(sys.argv[2])
    alive = os.open(folder / "alive", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)
    (folder / "keeper.pid").write_text(str(os.getpid()), encoding="ascii")
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    with (folder / "ready").open("wb") as out, (folder / "errors").open("ab") as errors:
        broker = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, stdout=out, stderr=errors, process_group=0)
    left = not _watch(broker, run_pid, woken)
    if broker.poll() is None:
        broker.terminate()
    try:
        code = broker.wait(END_S)
    except subprocess.TimeoutExpired:
        broker.kill()
        code = broker.wait()
    if left:
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _watch(broker: "subprocess.Popen[bytes]", run_pid: int, woken: int) -> bool:
    """Wait until the broker ends, a signal comes, or the run's first process is gone; whether that still lives."""
    child = bytes([signal.SIGCHLD])
    try:
        run = [os.pidfd_open(run_pid)] if hasattr(os, "pidfd_open") else []
        while broker.poll() is None:
            readable, _, _ = select.select([woken, *run], [], [], None if run else 1.0)
            if set(run).intersection(readable):
                return False
            if woken in readable and os.read(woken, 512).replace(child, b""):
                return True
            if not run:
                os.kill(run_pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
