"""Runs one gate to its end, to its bound, or to Ctrl-C, and leaves nothing of it running."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Ending = Literal["ended", "out of time", "interrupted"]
TAIL_LINES = 40
TAIL_BYTES = 6000
UNSHOWN = "\N{REPLACEMENT CHARACTER}"
MARK = "LOMI_QUALIFY_GATE"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a gate ended.

    Attributes:
        ending: by itself, at its bound, or by Ctrl-C.
        code: its exit code; negative is the signal that killed it.
        seconds: how long it took.
        left: how many processes it had left behind; they have been ended.
    """

    ending: Ending
    code: int
    seconds: float
    left: int


def run(command: list[str], *, folder: Path, log: Path, bound_s: float) -> Ran:
    """Run a gate; all that it prints goes to `log`."""
    mark = secrets.token_hex(8)
    begun = time.monotonic()
    ending: Ending = "ended"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(bound_s)
        except subprocess.TimeoutExpired:
            ending = "out of time"
        except KeyboardInterrupt:
            ending = "interrupted"
        if ending != "ended":
            _end(process)
    left = _marked(mark)
    for number in left:
        _signal(number, signal.SIGKILL)
    return Ran(ending, process.returncode, time.monotonic() - begun, len(left) if ending == "ended" else 0)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the gate and its group to end, then make them."""
    for number, patience_s in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 15.0)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
        break
    process.wait()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _marked(mark: str) -> list[int]:
    """Processes that still carry the gate's mark: what it had started and forgot. Empty where there is no /proc."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in variables:
            found.append(int(entry.name))
    return found


def command_of(path: Path, arguments: tuple[str, ...], work: Path) -> list[str]:
    """How a gate is started: one in Python by this Python, which has Lomi; any other by itself."""
    words = [word.replace("{work}", str(work)) for word in arguments]
    with path.open("rb") as file:
        python = b"python" in file.readline()
    return [*([sys.executable] if python else []), str(path), *words]


def tail(log: Path, shorter: Mapping[str, str]) -> str:
    """The last lines of a log, bounded, printable; places that only this machine has are shortened."""
    text = log.read_bytes()[-TAIL_BYTES:].decode(errors="replace")
    for place, name in shorter.items():
        text = text.replace(place, name)
    lines = ["".join(c if c.isprintable() or c == "\t" else UNSHOWN for c in line) for line in text.split("\n")]
    return "\n".join(lines[-TAIL_LINES:]).strip()
