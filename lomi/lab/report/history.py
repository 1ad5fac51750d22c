"""How tests ended in the last runs: kept in the report's folder from run to run, bounded, and never in a run's way."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from lomi.lab.report.model import TestReport

HISTORY = "history.json"
MOST_RUNS = 10
"""Runs that are remembered of one test; the oldest goes first."""
MOST_TESTS = 20_000
"""Tests that are remembered; those of the last run before those that it did not have."""
_MOST_BYTES = 32 << 20


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a test: when, whether any attempt failed, and the seconds of the last that passed or failed."""

    at: float
    failed: bool
    seconds: float


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of each test by its id, the oldest first."""

    version: int = 1
    tests: Mapping[str, tuple[Past, ...]] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """What each test took the last time."""
        return {test: past[-1].seconds for test, past in self.tests.items() if past}

    def with_run(self, tests: Iterable[TestReport]) -> "History":
        """With one more run. Tests that neither passed nor failed in it keep what is known of them."""
        ran = {test.id: self.tests.get(test.id, ()) for test in tests}
        for test in tests:
            counted = [attempt for attempt in test.attempts if attempt.verdict in ("passed", "failed")]
            if counted:
                last = counted[-1]
                past = Past(
                    at=last.began,
                    failed=any(attempt.verdict == "failed" for attempt in counted),
                    seconds=last.ended - last.began,
                )
                ran[test.id] = (*ran[test.id], past)[-MOST_RUNS:]
        others = {test: past for test, past in self.tests.items() if test not in ran}
        kept = [(test, past) for test, past in (*ran.items(), *others.items()) if past]
        return History(tests=dict(kept[:MOST_TESTS]))

    def told(self, test: TestReport) -> TestReport:
        """The test with how many of its last runs, this one among them, are known, and how many of those failed."""
        past = self.tests.get(test.id, ())
        return msgspec.structs.replace(test, past_runs=len(past), past_failures=sum(one.failed for one in past))


def read_history(folder: Path) -> tuple[History, str | None]:
    """The history in a report's folder, and why there is none though there is a file. Blocks."""
    path = folder / HISTORY
    try:
        # A FIFO in its place would be waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            return History(), f"{path} is larger than {_MOST_BYTES >> 20} MiB; a new history was begun"
        return msgspec.json.decode(content, type=History), None
    except FileNotFoundError:
        return History(), None
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        return History(), f"{path} can't be read, so a new history was begun: {error}"
