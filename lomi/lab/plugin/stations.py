"""What the first process of a run keeps for all of its workers: who has which place, the records, the broker's end."""

import os
import secrets
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

import pytest

if TYPE_CHECKING:
    from lomi.lab.records import AttemptRecord

XDIST_KEY = "lomi"
RECORD_ATTRIBUTE = "lomi_record"
"""Attribute of a report that carries a record from a worker to the first process, as plain values."""
KEEPER_PID = "keeper.pid"
ALIVE = "alive"
_END_S = 40.0
_LONGEST_ROOT = 24
"""Characters of the temporary folder's path: the sockets below the home must stay under the kernel's 107."""


class Station(TypedDict):
    """What one process is told: its number among those at work, the run's folder, and where artifacts go."""

    number: int
    worker: str
    workers: int
    root: str
    run_pid: int
    artifacts: str


class Stations:
    """Made in every process; in a worker of pytest-xdist it only hands on what the first process told."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._given = cast("Station | None", getattr(config, "workerinput", {}).get(XDIST_KEY))
        self._places: dict[str, int] = {}
        self._root: Path | None = None
        self._records: Path | None = None
        self.lost = 0
        self.written = 0

    @property
    def first(self) -> bool:
        """Whether this is the process that keeps the records."""
        return self._given is None

    def own(self) -> Station:
        """The station of this process."""
        return self._given if self._given is not None else self.station_for("main")

    def station_for(self, worker: str) -> Station:
        """The station of a worker: the lowest number that nobody has."""
        taken = set(self._places.values())
        self._places[worker] = next(number for number in range(len(taken) + 1) if number not in taken)
        return Station(
            number=self._places[worker],
            worker=worker,
            workers=int(self._config.getoption("numprocesses", None) or 1),
            root=str(self._run_root()),
            run_pid=os.getpid(),
            artifacts=str(self.records_file().parent),
        )

    def freed(self, worker: str) -> None:
        """Its number can be given to another."""
        self._places.pop(worker, None)

    def _run_root(self) -> Path:
        """A short name for a private folder in which the processes of this run meet; who needs it first makes it."""
        if self._root is None:
            usual = tempfile.gettempdir()
            fits = len(usual) <= _LONGEST_ROOT or not os.access("/tmp", os.W_OK)  # noqa: S108  the name can't be guessed
            self._root = Path(usual if fits else "/tmp") / f"lomi-t-{secrets.token_hex(8)}"  # noqa: S108  same
        return self._root

    def records_file(self) -> Path:
        """Where the records go: a folder of this run alone, unless it was named."""
        if self._records is None:
            from lomi.lab.plugin.options import read_options  # noqa: PLC0415
            from lomi.lab.records import RECORDS_NAME  # noqa: PLC0415

            options = read_options(self._config)
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            shared = "-lomi" if self._config.pluginmanager.has_plugin("playwright") else ""
            # pytest-playwright empties its own folder when a session begins, in each worker.
            folder = options.output.with_name(options.output.name + shared) / f"lomi-{stamp}-{os.getpid()}"
            self._records = options.records or folder / RECORDS_NAME
        return self._records

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the record that a report carries; where a worker crashed, what is known."""
        if not self.first:
            return
        carried = getattr(report, RECORD_ATTRIBUTE, None)
        if carried is not None:
            import msgspec  # noqa: PLC0415

            from lomi.lab.records import AttemptRecord  # noqa: PLC0415

            self._write(msgspec.convert(carried, AttemptRecord))
        elif str(report.when) == "???" and self._places:
            self._write(_crashed(report))

    def _write(self, record: "AttemptRecord") -> None:
        from lomi.lab.records import encode  # noqa: PLC0415

        path = self.records_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as lines:
            lines.write(encode(record))
        self.written += 1
        self.lost += record.outcome == "infra_error"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where everything is."""
        if self.first and self.written:
            lost = f", {self.lost} of them lost a device, browser or broker" if self.lost else ""
            terminalreporter.write_sep("-", "lomi")
            terminalreporter.write_line(f"{self.written} attempts on devices{lost}: {self.records_file()}")

    def pytest_unconfigure(self) -> None:
        """End the broker that this run started, if any, and remove the run's folder."""
        if self.first and self._root is not None:
            end_keeper(self._root)
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None


def keeper_lives(root: Path) -> bool:
    """Whether the run's broker is kept: its keeper holds a lock for as long as it lives."""
    import fcntl  # noqa: PLC0415

    try:
        descriptor = os.open(root / ALIVE, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def end_keeper(root: Path) -> None:
    """End the run's broker and wait until it is gone; does nothing where there is none."""
    if not keeper_lives(root):
        return
    with suppress(ProcessLookupError):  # it ends by itself where its broker does
        os.kill(int((root / KEEPER_PID).read_text()), signal.SIGTERM)
    end = time.monotonic() + _END_S
    while keeper_lives(root) and time.monotonic() < end:
        time.sleep(0.02)


def _crashed(report: pytest.TestReport) -> "AttemptRecord":
    from lomi.lab.records import AttemptRecord, Cause, PhaseTimes  # noqa: PLC0415

    worker = str(getattr(getattr(getattr(report, "node", None), "gateway", None), "id", "unknown"))
    return AttemptRecord(
        node_id=report.nodeid,
        attempt=1,
        final=True,
        outcome="failed",
        started_at=time.time(),
        times=PhaseTimes(),
        worker=worker,
        cause=Cause(message=" ".join(str(report.longrepr).split())[:500], reason="worker_crashed"),
    )
