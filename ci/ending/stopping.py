"""Being told to end without an exception that could come between any two lines: a signal is noted and wakes a wait."""

import math
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import FrameType

TOLD_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 15.0
CHUNK = 4096


class Stopped(Exception):  # noqa: N818  no error: what a person asked for
    """Raised where this program was told to end and nothing is left of what it ran."""


class Stop:
    """Hears SIGINT, SIGTERM and SIGHUP from `listen` on; one that was ignored before stays so.

    Attributes:
        count: how often it was told; the second time hurries what ends.
        last: by which signal.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: signal.Signals | None = None
        self._hears, self._wakes = os.pipe()
        for end in (self._hears, self._wakes):
            os.set_blocking(end, False)

    def listen(self) -> None:
        """From now on; only in the main thread."""
        # A byte per signal, a child's end too, written by the interpreter itself: none comes too early for a wait.
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in TOLD_BY:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._come)

    def _come(self, number: int, _frame: FrameType | None) -> None:
        self.last = signal.Signals(number)
        self.count += 1

    def check(self) -> None:
        """Go on, if nobody has said otherwise.

        Raises:
            Stopped: somebody has.
        """
        if self.count:
            raise Stopped

    def wait(self, process: subprocess.Popen[bytes], seconds: float = math.inf, told: int = 0) -> bool:
        """Whether the process has ended; not, once `seconds` are over or this was told more than `told` times."""
        end = time.monotonic() + seconds
        while process.poll() is None:
            left = end - time.monotonic()
            if left <= 0 or self.count > told:
                return False
            select.select([self._hears], [], [], None if left == math.inf else left)
            self._drain()
        return True

    def _drain(self) -> None:
        try:
            os.read(self._hears, CHUNK)
        except BlockingIOError:
            return

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Ask a process that leads a session of its own, and its group, to end; then, or when told again, make them."""
        try:
            os.killpg(process.pid, signal.SIGTERM)
            if not self.wait(process, PATIENCE_S, min(self.count, 1)):
                os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def run(
        self, command: list[str], *, bound_s: float, umask: int = -1, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that only says something, to its end.

        Raises:
            Stopped: this was told to end first; the program was ended.
            subprocess.TimeoutExpired: it took longer than that; it was ended.
            OSError: it can't be started.
        """
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                command,
                cwd=folder,
                umask=umask,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            if not self.wait(process, bound_s):
                self.end(process)
                self.check()
                raise subprocess.TimeoutExpired(command, bound_s)
            said = []
            for file in (output, errors):
                file.seek(0)
                said.append(file.read().decode(errors="replace"))
        return subprocess.CompletedProcess(command, process.returncode, *said)
