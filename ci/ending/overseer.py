"""Runs a program that starts many others, and lets nothing of it outlive it, whenever and however it ends."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from devices.processes import carriers, send_signal
from ending.stopping import Stop
from lomi.core.processes import ProcessName, name_of

MARK = "CI_OVERSEEN_BY"
"""Variable whose value every process of a run inherits; where some get an environment of their own, it is in that."""
MOST = 16
"""Characters of the temporary folder's path: sockets lie below it, and theirs must fit into the kernel's 107."""
LOOKS_S = (0.0, 0.05, 0.2)


def overseen(name: str, words: list[str]) -> int:
    """Run Python with these words and this program's own arguments, and end it when this is told to; the exit code."""
    stop = Stop()
    stop.listen()
    return oversee(name, [sys.executable, *words, *sys.argv[1:]], stop)


def oversee(name: str, command: list[str], stop: Stop) -> int:
    """Run a command; its exit code. Told to end: kill all of it, say so in one line; 128 and the signal's number.

    It runs in a session of its own, so that a terminal's Ctrl-C reaches this process alone, and has a temporary folder
    of its own, which goes with it.
    """
    mark = secrets.token_hex(8)
    usual = tempfile.gettempdir()
    place = Path(tempfile.mkdtemp(prefix="lo-", dir=usual if len(usual) <= MOST else "/tmp"))
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, MARK: mark, "TMPDIR": str(place)},
            start_new_session=True,
        )
        stop.wait(process)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        sweep(mark, place)
        code = process.wait()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if stop.last is None:
        return code if code >= 0 else 128 - code
    print(f"{name}: ended by {stop.last.name}, with all that it had started", file=sys.stderr)
    return 128 + stop.last


def sweep(mark: str, place: Path) -> None:
    """Kill what is of the run until nothing is; looks again, since one that becomes another program shows nothing."""
    quiet = 0
    while quiet < len(LOOKS_S):
        time.sleep(LOOKS_S[quiet])
        found = [*carriers(mark, MARK), *_living_in(place)]
        for one in found:
            send_signal(one, signal.SIGKILL)
        quiet = 0 if found else quiet + 1


def _living_in(place: Path) -> list[ProcessName]:
    """Processes with a folder of the run in their environment: adb's server is given one without the mark."""
    inside, found = os.fsencode(place) + b"/", []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        # Somebody's shell that stands there is no part of it.
        theirs = (one for one in variables if not one.startswith((b"PWD=", b"OLDPWD=")))
        if any(inside in one for one in theirs) and (name := name_of(int(entry.name))) is not None:
            found.append(name)
    return found
