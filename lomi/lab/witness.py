"""Loaded into a pytest child of the lab (`-p lomi.lab.witness`): runs the tests that it was given, in order, and tells.

It writes to the descriptor that `LOMI_LAB_EVENTS` names, and after a failure waits for a byte from the one that
`LOMI_LAB_GO` names, so that the lab can look at the phones as the test left them. `LOMI_LAB_TESTS` is a file with one
JSON list of node ids; with none the child lists what it collected. Options that would start further workers, stop
early or change what is run are without force: how tests are spread, stopped and tried again is the lab's own.
"""

import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Literal

import pytest

from lomi.lab.events import Began, Ended, Finished, Listed, NotCollected, PhaseEnded, bounded, encode
from lomi.lab.records import RECORDS_NAME

_PR_SET_PDEATHSIG = 1
EVENTS = "LOMI_LAB_EVENTS"
TESTS = "LOMI_LAB_TESTS"
GO = "LOMI_LAB_GO"
LEFT = "LOMI_LAB_LEFT"
"""The folder for records and evidence of the lab's own plugin."""
PHONES = "LOMI_LAB_PHONES"
"""Names of the phones that this worker may lease, with commas; they are booted and nobody else uses them."""
_NEUTRAL: dict[str, object] = {
    "numprocesses": None,
    "dist": "no",
    "tx": [],
    "maxfail": 0,
    "stepwise": False,
    "lf": False,
    "failedfirst": False,
    "continue_on_collection_errors": True,
}
"""Options of pytest and pytest-xdist, and the values that leave the lab in charge."""
_OUTCOMES: dict[str, Literal["passed", "failed", "skipped"]] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "infra": "failed",
}
"""Outcomes that count. `infra` is the lab's own plugin's; its record says that the test is not to blame."""


class Witness:
    """Tells what happens in this session; `tests` are the node ids to run, None to list.

    Files are told as seen from the folder in which pytest was started, which need not be the one of its configuration.
    """

    def __init__(self, config: pytest.Config, descriptor: int, go: int, tests: list[str] | None) -> None:
        self._config = config
        self._descriptor = descriptor
        self._go = go
        self._failed = False
        self._tests = tests
        self._order: list[str] = []
        self._phase_began = 0.0

    def _tell(self, event: Began | Ended | Finished | Listed | NotCollected | PhaseEnded) -> None:
        rest = memoryview(encode(event))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Remember the order before a plugin shuffles it."""
        self._order = [item.nodeid for item in items]
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """After everything was collected and deselected: list it, or keep what was asked for."""
        collected = yield
        if self._tests is None:
            place = {name: number for number, name in enumerate(self._order)}
            for item in sorted(session.items, key=lambda item: place.get(item.nodeid, len(place))):
                line = item.location[1] or 0
                self._tell(Listed(test=item.nodeid, file=self._seen(item.path), line=line + 1))
        else:
            self._keep(session, self._tests)
        return collected

    def _seen(self, path: Path) -> str:
        return Path(os.path.relpath(self._config.rootpath / path, self._config.invocation_params.dir)).as_posix()

    def _keep(self, session: pytest.Session, tests: list[str]) -> None:
        found = {item.nodeid: item for item in session.items}
        for missing in (name for name in tests if name not in found):
            self._tell(NotCollected(node=missing, text="the test was planned and was not collected again"))
        session.items[:] = [found[name] for name in tests if name in found]
        session.testscollected = len(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that can't be collected."""
        if report.failed:
            self._tell(NotCollected(node=self._seen(Path(report.nodeid)), text=bounded(str(report.longrepr))))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._phase_began, self._failed = time.time(), False
        self._tell(Began(test=nodeid, at=self._phase_began))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        if report.outcome not in _OUTCOMES or (_of_subtest(report) and report.outcome != "failed"):
            return
        file, line = self._place(report)
        began, self._phase_began = self._phase_began, time.time()
        event = PhaseEnded(
            test=report.nodeid,
            when=report.when,
            outcome="passed" if hasattr(report, "wasxfail") else _OUTCOMES[report.outcome],
            expected=hasattr(report, "wasxfail"),
            began=began,
            seconds=max(0.0, self._phase_began - began),
            reason=bounded(_reason(report)),
            detail=bounded(report.longreprtext),
            file=file,
            line=line,
            output=bounded(_output(report.sections)) if report.outcome not in ("passed", "skipped") else "",
        )
        self._failed = self._failed or event.outcome == "failed"
        self._tell(event)

    def _place(self, report: pytest.TestReport) -> tuple[str | None, int | None]:
        """The last line of the test's own file that a failure passed through, else the test itself."""
        if report.outcome in ("passed", "skipped"):
            return None, None
        file, first = self._seen(Path(report.location[0])), report.location[1]
        entries: Iterable[object] = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
        places = [getattr(entry, "reprfileloc", None) for entry in entries]
        own = [place for place in places if place is not None and _same(place.path, file)]
        return file, int(own[-1].lineno) if own else (first or 0) + 1

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended; after a failure the next one waits."""
        self._tell(Ended(test=nodeid, at=time.time(), waits=self._failed))
        if self._failed:
            os.read(self._go, 1)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """The session is about to end."""
        self._tell(Finished(status=int(exitstatus)))


def _of_subtest(report: pytest.TestReport) -> bool:
    """Whether it is of one subtest alone; only its failure is one of the whole test."""
    return type(report).__name__ == "SubtestReport"


def _reason(report: pytest.TestReport) -> str:
    """Why it did not pass, in a line: of a skip what was said, of a failure the error itself."""
    if hasattr(report, "wasxfail"):
        said = "it passed, which was not expected" if report.outcome == "passed" else "it failed, as expected"
        return f"{said}: {report.wasxfail}".rstrip(": ")
    if report.outcome == "passed":
        return ""
    if report.outcome == "skipped":
        return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext
    crash = getattr(report.longrepr, "reprcrash", None)
    message = str(crash.message) if crash is not None else report.longreprtext
    return (message.strip().splitlines() or ["failed"])[0]


def _same(path: str, file: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(file)


def _output(sections: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"--- {title} ---\n{text}" for title, text in sections if text)


def pytest_addoption() -> None:
    """Let SIGUSR1 end this process once it has printed where every thread is, to the standard error of before capture.

    When the lab is gone, however it went, this process gets SIGTERM (on Linux).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    faulthandler.register(signal.SIGUSR1, file=os.dup(2), all_threads=True, chain=True)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Put the lab in charge, before other plugins look at their own options."""
    options = dict(_NEUTRAL)
    if left := os.environ.get(LEFT):
        options |= {"infra_retries": 0, "lomi_records": f"{left}/{RECORDS_NAME}", "output": f"{left}/artifacts"}
    if phones := os.environ.get(PHONES):
        options |= {"phone": phones.partition(",")[0], "pool": None, "phone_reset": "reuse"}
    for name, value in options.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to tell."""
    descriptor, go = os.environ.pop(EVENTS, ""), os.environ.pop(GO, "")
    if not descriptor or not go:
        raise pytest.UsageError("lomi.lab.witness is loaded by `lomi lab run` alone")
    for number in (int(descriptor), int(go)):
        os.set_inheritable(number, False)  # noqa: FBT003  it takes no keyword
    listed = os.environ.pop(TESTS, "")
    tests = json.loads(Path(listed).read_text(encoding="utf-8")) if listed else None
    config.pluginmanager.register(Witness(config, int(descriptor), int(go), tests), "lomi-lab-witness")
