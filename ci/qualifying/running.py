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

from ending.stopping import Stop

from devices.processes import carriers, send_signal

Ending = Literal["ended", "out of time", "interrupted"]
TAIL_LINES = 40
TAIL_BYTES = 6000
UNSHOWN = "\N{REPLACEMENT CHARACTER}"
LOOKS_S = (0.0, 0.1, 0.3)
MARK = "LOMI_QUALIFY_GATE"
"""Variable whose value every process of a gate inherits, phones too, whose own marker is another at each boot."""


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


def run(command: list[str], *, folder: Path, log: Path, bound_s: float, stop: Stop) -> Ran:
    """Run a gate; all that it prints goes to `log`. Told to stop at whatever moment, it ends the gate and its group."""
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
        if not stop.wait(process, bound_s):
            ending = "interrupted" if stop.count else "out of time"
            stop.end(process)
    seconds = time.monotonic() - begun
    left = _ended(mark)
    return Ran(ending, process.returncode, seconds, left if ending == "ended" else 0)


def _ended(mark: str) -> int:
    """How many processes carry the mark; they are killed. One that is about to become another program shows none."""
    found = set()
    for pause_s in LOOKS_S:
        time.sleep(pause_s)
        for name in carriers(mark, MARK):
            send_signal(name, signal.SIGKILL)
            found.add(name)
    return len(found)


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
