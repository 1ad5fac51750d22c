"""One broker process: started, awaited, killed, stopped."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import Queue

READY_S = 40.0
END_S = 20.0


class NotReadyError(Exception):
    """Raised when a broker ended before it was ready. `code` is its exit code, `said` what it printed to stderr."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"exit {code}: {said}")
        self.code = code
        self.said = said


class Nursery:
    """The forking process of this test run."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._started: Queue[int] = Queue()
        self._codes: dict[int, int] = {}
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._one = threading.Lock()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "started" in said:
                with self._news:
                    self._codes.pop(said["started"], None)
                self._started.put(said["started"])
            elif "ended" in said:
                with self._news:
                    self._codes[said["ended"]] = said["code"]
                    self._news.notify_all()
        self._started.put(0)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdout: Path,
        stderr: Path,
        ignored: Sequence[int] = (),
    ) -> int:
        """Fork one `lomi`, signals ignored as nohup would have them; returns its pid."""
        order = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "stdout": str(stdout),
            "stderr": str(stderr),
            "ignored": [int(number) for number in ignored],
        }
        with self._one:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            pid = self._started.get(timeout=60)
            assert pid, "the forking process has ended; see what it printed to stderr"
        return pid

    def code(self, pid: int, seconds: float) -> int | None:
        """The exit code of a child, None when it still runs after that time."""
        with self._news:
            self._news.wait_for(lambda: pid in self._codes, seconds)
            return self._codes.get(pid)

    def close(self) -> None:
        """End the forking process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._reader.join(10)
        self._process.stdout.close()


class BrokerProcess:
    """A running `lomi up`."""

    def __init__(self, pid: int, nursery: Nursery, stdout: Path, stderr: Path) -> None:
        self.pid = pid
        self._nursery = nursery
        self._stdout = stdout
        self._stderr = stderr
        self._code: int | None = None
        self.instance_id = ""
        self.discovery_file = Path()
        self.discovery_key = ""

    def wait_ready(self) -> None:
        """Read the ready line.

        Raises:
            NotReadyError: it ended first.
        """
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            lines = self._stdout.read_text().splitlines(keepends=True)
            if lines and lines[0].endswith("\n"):
                ready = json.loads(lines[0])
                assert ready["event"] == "ready"
                self.instance_id = ready["instanceId"]
                self.discovery_file = Path(ready["discoveryFile"])
                self.discovery_key = ready["discoveryKey"]
                return
            code = self._ended(0.01)
            if code is not None:
                raise NotReadyError(code, self.stderr())
        self.kill()
        raise AssertionError(f"the broker was not ready in time: {self.stderr()}")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._ended(0) is None

    def _ended(self, seconds: float) -> int | None:
        # Kept, since a later process of the nursery may be given the same pid.
        if self._code is None:
            self._code = self._nursery.code(self.pid, seconds)
        return self._code

    def stdout(self) -> str:
        """What it printed to stdout so far."""
        return self._stdout.read_text()

    def stderr(self) -> str:
        """What it printed to stderr so far."""
        return self._stderr.read_text()

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, seconds: float = END_S) -> int:
        """Its exit code, once it has ended (-9 when it was killed)."""
        code = self._ended(seconds)
        assert code is not None, f"the broker did not end in time: {self.stderr()}"
        return code

    def kill(self) -> None:
        """Kill -9 and reap."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """End it in good order."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        return self.wait()

    def wait_stopped(self, seconds: float = END_S) -> None:
        """Wait until a failpoint has stopped it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if process_state(self.pid) == "T":
                return
            assert self.alive, f"the broker ended instead: {self.stderr()}"
            time.sleep(0.002)
        raise AssertionError("the broker did not come to its failpoint")


def process_state(pid: int) -> str:
    """The state letter of a process, empty when it is gone. Source: proc(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def processes_that_name(place: Path) -> Iterator[tuple[int, str]]:
    """Processes with a path in their environment or command line, but for this one: pid and command line."""
    mark = os.fsencode(place)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            named = mark in command or mark in (entry / "environ").read_bytes()
            if named and process_state(int(entry.name)) not in ("Z", ""):
                yield int(entry.name), command.replace(b"\0", b" ").decode(errors="replace").strip()


_nursery: list[Nursery] = []


def nursery() -> Nursery:
    """The one of this test process, started at first use."""
    if not _nursery:
        _nursery.append(Nursery())
    return _nursery[0]


def close_nursery() -> None:
    """End it, if it was started."""
    while _nursery:
        _nursery.pop().close()


__all__ = ["BrokerProcess", "NotReadyError", "Nursery", "close_nursery", "nursery", "processes_that_name"]
