"""What a run comes to: one word, and the exit code that says it."""

from collections.abc import Iterable
from typing import NamedTuple

from lomi.lab.report.model import TestReport

PASSED, FAILED, WRONG_PLAN, INFRA, CANCELLED, DEADLINE, NOT_WRITTEN = range(7)
"""Exit codes: docs/cli.md says what each means."""


class Outcome(NamedTuple):
    """A word and its exit code."""

    word: str
    code: int


def outcome_of(tests: Iterable[TestReport]) -> Outcome:
    """The worst that a test which decides came to; a test that skipped itself is no trouble."""
    deciding = [test for test in tests if test.decides]
    states = {test.state for test in deciding}
    if any(test.state == "not_run" and not test.skipped for test in deciding):
        return Outcome("deadline", DEADLINE)
    if "cancelled" in states:
        return Outcome("cancelled", CANCELLED)
    if "infra_error" in states:
        return Outcome("infra", INFRA)
    if "failed" in states:
        return Outcome("failed", FAILED)
    return Outcome("passed", PASSED)
