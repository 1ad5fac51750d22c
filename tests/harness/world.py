"""A home, a runtime folder and a project of one test module, and the brokers that live there one after another."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.process import BrokerProcess, close_nursery, nursery, processes_that_name

GONE_S = 10.0
"""How soon what a broker started must be gone once it has stopped."""
TEMPORARY = ("tmp", "lomi-", "playwright", ".org.chromium", ".com.google", "org.chromium")
"""How temporary names of what a broker runs begin; a killed one can't remove its own."""
_KEPT_NAMES = ("PATH", "LANG", "HOME", "USER", "LOGNAME", "SHELL", "PYTHONPATH", "PLAYWRIGHT_BROWSERS_PATH")


@dataclass(frozen=True)
class Ended:
    """A command that has ended: exit code and what it printed."""

    code: int
    out: str
    err: str


class World:
    """Where a broker lives.

    Attributes:
        root: a short folder that holds everything.
        home: LOMI_HOME.
        runtime: XDG_RUNTIME_DIR.
        project: the folder that `lomi up` opens.
        broker: the present broker process.
    """

    def __init__(self, root: Path, policy: str, always: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._always = dict(always or {})
        self.home, self.runtime, self.project = root / "h", root / "r", root / "p"
        self.armed = root / "failpoint"
        self.policy_file = root / "policy.toml"
        self.runtime.mkdir(mode=0o700)
        self.project.mkdir()
        self.set_policy(policy)
        self.broker: BrokerProcess | None = None
        self._lives = itertools.count(1)
        self._arms = itertools.count(1)
        self._orderly = True
        self._never_killed = True

    def set_policy(self, text: str) -> None:
        """Write the policy for the next start."""
        self.policy_file.touch(mode=0o600)
        self.policy_file.write_text(text, encoding="utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        """What processes of this world inherit."""
        kept = {name: os.environ[name] for name in _KEPT_NAMES if name in os.environ}
        places = {"LOMI_HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime), "TMPDIR": str(self.root)}
        return {**kept, **places, **self._always, **more}

    def start(
        self, *, failpoint: str | None = None, more: Mapping[str, str] | None = None, ignored: Sequence[int] = ()
    ) -> BrokerProcess:
        """Start a broker and wait until it is ready. Its failpoint can be armed later with `arm`.

        `ignored` are signals which it finds ignored, as after nohup or `&` in a script.

        Raises:
            NotReadyError: it ended instead.
        """
        assert self.broker is None or not self.broker.alive, "one broker at a time"
        if failpoint is not None:
            self.arm(failpoint)
        broker = self.launch(more=more, ignored=ignored)
        self.broker = broker
        self._orderly = False
        broker.wait_ready()
        return broker

    def launch(
        self,
        arguments: Sequence[str] | None = None,
        *,
        more: Mapping[str, str] | None = None,
        ignored: Sequence[int] = (),
    ) -> BrokerProcess:
        """Start a `lomi` process without waiting for it."""
        usual = ["up", "--headless", "--policy", str(self.policy_file), "--project", str(self.project), "--json"]
        number = next(self._lives)
        out, err = self.root / f"out-{number}", self.root / f"err-{number}"
        out.touch(mode=0o600)
        err.touch(mode=0o600)
        environment = self.environment(LOMI_FAILPOINT=f"@{self.armed}", **(more or {}))
        pid = nursery().start(usual if arguments is None else arguments, environment, out, err, ignored)
        return BrokerProcess(pid, nursery(), out, err)

    def command(self, *arguments: str, **more: str) -> Ended:
        """Run a `lomi` command of this world to its end."""
        process = self.launch(arguments, more=more)
        code = process.wait()
        return Ended(code, process.stdout(), process.stderr())

    def arm(self, failpoint: str) -> None:
        """Arm the running broker (`effect_begun`, `settled:2`, `started:1:stop`); passes count from now on."""
        beside = self.armed.with_suffix(".new")
        beside.write_text(f"{failpoint} {next(self._arms)}", encoding="ascii")
        beside.replace(self.armed)

    def disarm(self) -> None:
        """Arm nothing."""
        self.armed.unlink(missing_ok=True)

    @contextlib.contextmanager
    def held_commit(self) -> Iterator[None]:
        """The next commit, and what comes after it, waits for as long as it takes.

        A database that another process has locked would be given up after 2 s, however slow the machine is.
        """
        self.arm("before_commit:1:hold")
        try:
            yield
        finally:
            self.disarm()

    @property
    def live(self) -> BrokerProcess:
        """The present broker."""
        assert self.broker is not None
        return self.broker

    def kill(self) -> None:
        """Kill -9 the broker."""
        self.live.kill()

    def restart(self) -> BrokerProcess:
        """Start the next broker on the same home after the present one ended or was killed."""
        self._never_killed = False
        if self.live.alive:
            self.live.kill()
        self.disarm()
        return self.start()

    def stop(self) -> None:
        """Stop the broker in good order; one that was killed is followed by one that sweeps what it left."""
        self.disarm()
        if self.broker is None:
            return
        if not self.broker.alive and not self._orderly:
            self._never_killed = False
            self.start()
        if self.broker.alive:
            assert self.broker.stop() == 0, self.broker.stderr()
        self._orderly = True

    def live_socket(self, place: Path) -> bool:
        """Whether the present broker listens in a socket directory."""
        told = json.loads(json.loads(self.live.discovery_file.read_bytes())["payload"])
        return str(told["endpoint"]).startswith(str(place))

    def left_processes(self) -> list[tuple[int, str]]:
        """What still runs and names this world, after the time that it has to go away."""
        end = time.monotonic() + GONE_S
        left = list(processes_that_name(self.root))
        while left and time.monotonic() < end:
            time.sleep(0.02)
            left = list(processes_that_name(self.root))
        return left

    def check_nothing_left(self) -> None:
        """No process of ours runs, no socket or socket directory is there."""
        left = self.left_processes()
        for pid, _ in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert left == [], f"processes of a stopped broker still run: {left}"
        assert list(self.runtime.iterdir()) == [], "a socket directory was left behind"
        if self._never_killed:
            strays = [path.name for path in self.root.iterdir() if path.name.startswith(TEMPORARY)]
            assert strays == [], "temporary folders were left behind"
        sockets = [path for path in self.home.rglob("*") if path.is_socket()]
        assert sockets == []


@contextlib.contextmanager
def opened_world(
    policy: str, *, start: bool = True, check: bool = True, always: Mapping[str, str] | None = None
) -> Iterator[World]:
    """A world with a running broker; at the end it is stopped in good order and nothing of it may be left.

    `always` is part of the environment of every process of this world.
    """
    root = Path(tempfile.mkdtemp(prefix="lg-")).resolve()
    world = World(root, policy, always)
    try:
        if start:
            world.start()
        yield world
        world.stop()
        if check:
            world.check_nothing_left()
    finally:
        if world.broker is not None and world.broker.alive:
            world.broker.kill()
        for pid, _ in processes_that_name(root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)


__all__ = ["World", "close_nursery", "opened_world"]
