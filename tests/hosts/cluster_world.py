"""A cluster of real processes: a scheduler, hosts, runs; on one machine, or each in a network namespace of its own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.process import processes_that_name
from namespaces import Machine

T = TypeVar("T")
READY_S = 90.0
LOMI = [sys.executable, "-c", "from lomi.cli.main import main; main()"]
_KEPT = ("PATH", "LANG", "HOME", "USER", "LOGNAME", "PYTHONPATH", "PLAYWRIGHT_BROWSERS_PATH")


@dataclass
class Member:
    """A process of the cluster with its home."""

    name: str
    home: Path
    process: subprocess.Popen[str]
    machine: Machine | None

    def kill(self) -> None:
        """Kill -9 the one process that is the host, as a crash would."""
        os.kill(self.pid, signal.SIGKILL)

    @property
    def pid(self) -> int:
        """`ip netns exec` becomes the command, so that its pid is the host's own."""
        return self.process.pid


@dataclass(frozen=True)
class Run:
    """A finished `lomi lab run`."""

    code: int
    said: str
    report: dict[str, Any]
    folder: Path
    seconds: float

    @property
    def hosts(self) -> dict[str, int]:
        """Tests that ended on each host."""
        counts: dict[str, int] = {}
        for test in self.report["tests"]:
            for attempt in test["attempts"][-1:]:
                counts[attempt["host"]] = counts.get(attempt["host"], 0) + 1
        return counts

    def check_counts(self, planned: int) -> None:
        """Every planned test is there once and passed, in one attempt that passed."""
        tests = self.report["tests"]
        assert len(tests) == planned, self.said
        assert len({test["id"] for test in tests}) == planned
        assert [test["id"] for test in tests if test["state"] != "passed"] == [], self.said
        for test in tests:
            verdicts = [attempt["verdict"] for attempt in test["attempts"]]
            assert verdicts.count("passed") == 1, test
            numbers = [attempt["attempt"] for attempt in test["attempts"]]
            assert len(set(numbers)) == len(numbers), test


class Cluster:
    """Everything of one test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.marks = root / "marks"
        self.marks.mkdir()
        self.members: dict[str, Member] = {}
        self.engine = ""
        self._token = ""
        self._scheduler: Member | None = None

    def environment(self, name: str) -> dict[str, str]:
        """What a member inherits; runs are started from the scheduler's home."""
        name = "s" if name == "run" else name
        home, runtime = self.root / name, self.root / f"{name}.r"
        for folder in (home, runtime):
            folder.mkdir(mode=0o700, exist_ok=True)
        kept = {word: os.environ[word] for word in _KEPT if word in os.environ}
        temporary = {"TMPDIR": str(self.root / "t")}
        (self.root / "t").mkdir(exist_ok=True)
        return {**kept, **temporary, "LOMI_HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "MARKS": str(self.marks)}

    def command(self, name: str, *words: str, machine: Machine | None = None) -> subprocess.CompletedProcess[str]:
        """A `lomi` command to its end."""
        return subprocess.run(
            _there(machine, *LOMI, *words),
            check=False,
            env=self.environment(name),
            capture_output=True,
            text=True,
            timeout=READY_S,
        )

    def _start(self, name: str, *words: str, machine: Machine | None) -> tuple[Member, Path]:
        if (earlier := self.members.get(name)) is not None:
            earlier.process.wait(10)
        log = self.root / f"{name}.log"
        with log.open("w") as told:
            process = subprocess.Popen(
                _there(machine, *LOMI, *words),
                env=self.environment(name),
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        member = self.members[name] = Member(name, self.root / name, process, machine)
        return member, log

    def _heard(self, member: Member, log: Path, word: str) -> str:
        def line() -> str:
            assert member.process.poll() is None, f"{member.name} ended: {log.read_text()}"
            return next((each for each in log.read_text().splitlines() if word in each), "")

        return wait_for(line, f"{member.name} to be ready")

    def start_scheduler(self, machine: Machine | None = None, port: int = 0) -> None:
        """Start it, on any free port unless one is named."""
        address = machine.address if machine is not None else "127.0.0.1"
        words = ("lab", "scheduler", "--listen", f"{address}:{port}", "--json")
        self._scheduler, log = self._start("s", *words, machine=machine)
        ready = json.loads(self._heard(self._scheduler, log, '"ready"'))
        self.engine, self._token = ready["engine"], ready["token"]

    def token(self) -> str:
        """A fresh one."""
        assert self._scheduler is not None
        made = self.command("s", "lab", "token", machine=self._scheduler.machine)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def launch_host(self, name: str, *words: str, machine: Machine | None = None) -> Callable[[], Member]:
        """Join and serve; the returned function waits until it does."""
        options = ("lab", "host", "--join", self.token(), "--name", name, *words)
        member, log = self._start(name, *options, machine=machine)

        def ready() -> Member:
            self._heard(member, log, " serves ")
            return member

        return ready

    def start_hosts(self, count: int, *words: str, machines: Sequence[Machine | None] = ()) -> list[Member]:
        """Some hosts, started beside each other."""
        places = list(machines) or [None] * count
        waiting = [self.launch_host(f"host-{number}", *words, machine=place) for number, place in enumerate(places, 1)]
        return [ready() for ready in waiting]

    def plan(self, text: str, tests: str) -> Path:
        """A plan with one module of tests; `MARKS` is where a test leaves marks."""
        folder = self.root / "w"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tests").mkdir(parents=True)
        (folder / "tests" / "test_cluster.py").write_text(tests, encoding="utf-8")
        (folder / "plan.toml").write_text(f"version = 1\n{text}", encoding="utf-8")
        return folder / "plan.toml"

    def run(self, plan: Path, while_running: Callable[[], None] = lambda: None) -> Run:
        """Run a plan from the scheduler's home, and do something meanwhile."""
        assert self._scheduler is not None
        began = time.monotonic()
        words = ("lab", "run", str(plan), "--engine", self.engine, "--json")
        member, said = self._start("run", *words, machine=self._scheduler.machine)
        try:
            while_running()
        except AssertionError as error:
            raise AssertionError(f"{error}; the run said: {said.read_text()}") from error
        code = member.process.wait(300)
        folder = plan.parent / "lab-report"
        file = folder / "report.json"
        assert file.is_file(), said.read_text()
        return Run(code, said.read_text(), json.loads(file.read_text()), folder, time.monotonic() - began)

    def marked(self, word: str = "") -> list[str]:
        """The marks that tests left: `HOST.TEST`."""
        return sorted(path.name for path in self.marks.iterdir() if word in path.name)

    def close(self) -> list[tuple[int, str]]:
        """End every member; what is left of them after twenty seconds."""
        for member in reversed(self.members.values()):
            with contextlib.suppress(ProcessLookupError):
                member.process.terminate()
        for member in self.members.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.process.wait(40)
        end = time.monotonic() + 20.0
        left = list(processes_that_name(self.root))
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left = list(processes_that_name(self.root))
        return left


def _there(machine: Machine | None, *words: str) -> list[str]:
    return list(words) if machine is None else machine.command(*words)


def wait_for(asked: Callable[[], T], what: str, seconds: float = READY_S) -> T:
    """Ask again until the answer is truthy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := asked():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")


@contextlib.contextmanager
def opened_cluster() -> Iterator[Cluster]:
    """A cluster's folder; at the end every process of it has ended by itself."""
    root = Path(tempfile.mkdtemp(prefix="lh-")).resolve()
    cluster = Cluster(root)
    try:
        yield cluster
        left = cluster.close()
        assert left == [], "processes of an ended cluster still run"
    finally:
        for member in cluster.members.values():
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait()
        for pid, _ in processes_that_name(root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)
