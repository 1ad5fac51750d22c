"""Named points where a test may kill, stop or hold the broker, to see what is made of it.

`LOMI_FAILPOINT=name` kills the process with SIGKILL at the first pass, `name:3` at the third, `name:3:stop` stops it
there until SIGCONT. `LOMI_FAILPOINT=@FILE` takes the same words from a file that is read at every pass, so that a
running broker can be armed: passes count from the moment the file's text changes. There `name:1:hold` holds the thread
that passes, and it alone, until the text changes again; then it passes anew. Nothing else reads it.
"""

import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

POINTS = (
    "admitted",
    "before_commit",
    "after_commit",
    "reserved",
    "decided",
    "started",
    "dispatched",
    "effect_begun",
    "effect_done",
    "before_settle",
    "settled",
    "artifact_reserved",
    "artifact_staged",
    "artifact_ready",
    "artifact_final",
)
_ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "hold": None}
_LOOK_S = 0.002


class Failpoints:
    """Counts passes of the one armed point of this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        words = environment.get("LOMI_FAILPOINT", "")
        self._file = Path(words[1:]) if words.startswith("@") else None
        self._words = ""
        self._name = ""
        self._left = 0
        self._signal: signal.Signals | None = signal.SIGKILL
        self._arm(_read(self._file) if self._file is not None else words)

    def _arm(self, words: str) -> None:
        if words == self._words:
            return
        name, _, rest = words.partition(" ")[0].partition(":")
        count, _, action = rest.partition(":")
        if name and name not in POINTS:
            raise ValueError(f"LOMI_FAILPOINT={name}: no such failpoint; one of {', '.join(POINTS)}")
        self._words = words
        self._name = name
        self._left = int(count or 1)
        self._signal = _ACTIONS[action or "kill"]

    def reach(self, name: str) -> None:
        """Pass a point; the armed one kills or stops the process, or holds the thread, at its count."""
        words = self._words
        if self._file is not None:
            words = _read(self._file)
            self._arm(words)
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                self._act(name, words)

    def _act(self, name: str, words: str) -> None:
        if self._signal is not None:
            # To this thread, though it ends or stops all: sent to the process, it may reach another thread first.
            signal.pthread_kill(threading.get_ident(), self._signal)
            return
        while self._file is not None and _read(self._file) == words:
            time.sleep(_LOOK_S)
        self.reach(name)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except FileNotFoundError:
        return ""
