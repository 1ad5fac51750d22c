"""Starts `lomi` processes fast: one process has imported everything and forks; each fork is a broker of its own.

Run as a program it reads one JSON object per line, `{"arguments", "environment", "stdout", "stderr", "ignored"}` (two
paths; numbers of signals that are ignored from the start), and answers each with the pid; a pid that ends is told as
`{"ended": pid, "code": n}`.
"""

import json
import os
import select
import signal
import sys
import traceback


def _child(order: dict[str, object]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    for number in order["ignored"]:  # type: ignore[attr-defined]
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    os.environ.clear()
    os.environ.update(order["environment"])  # type: ignore[arg-type]
    for number, name in ((1, "stdout"), (2, "stderr")):
        descriptor = os.open(str(order[name]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    empty = os.open("/dev/null", os.O_RDONLY)
    os.dup2(empty, 0)
    for descriptor in range(3, 64):
        try:
            os.close(descriptor)
        except OSError:
            continue
    sys.argv = ["lomi", *order["arguments"]]  # type: ignore[misc]
    from lomi.cli.main import main

    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        print(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}), flush=True)


def main() -> None:
    """Serve until the end of standard input."""
    import lomi.broker.policy
    import lomi.cli.main
    import lomi.cli.up
    import lomi.host  # noqa: F401

    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print(json.dumps({"ready": os.getpid()}), flush=True)
    waiting = b""
    while True:
        readable, _, _ = select.select([0, woken], [], [])
        if woken in readable:
            os.read(woken, 512)
            _reap()
        if 0 in readable:
            content = os.read(0, 65536)
            if not content:
                return
            *lines, waiting = (waiting + content).split(b"\n")
            for line in lines:
                order = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    _child(order)
                print(json.dumps({"started": pid}), flush=True)


if __name__ == "__main__":
    main()
