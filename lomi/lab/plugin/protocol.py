"""Run one test until an attempt kept its devices, or no further attempt is allowed."""

import pytest
from _pytest.runner import CallInfo, runtestprotocol

from lomi.lab.plugin.desk import Desk
from lomi.lab.plugin.stations import RECORD_ATTRIBUTE


def run_attempts(item: pytest.Item, nextitem: pytest.Item | None, desk: Desk) -> None:
    """Run the test; every attempt is told, the last as pytest tells any test.

    One that no other may follow is told while it runs, so that whoever listens sees in which part of it time goes.
    """
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    while True:
        last = desk.next_is_last(item)
        reports = runtestprotocol(item, nextitem=nextitem, log=last)
        attempt = desk.attempt
        again = not last and attempt is not None and desk.again(attempt)
        for report in () if last else _told(reports) if again else reports:
            hook.pytest_runtest_logreport(report=report)
        if attempt is not None and desk.must_reconnect(attempt):
            # What outlives a test holds the lost connection: it must be set up anew, whatever follows.
            CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(None), when="teardown")  # noqa: SLF001
        if not again:
            break
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _told(reports: list[pytest.TestReport]) -> list[pytest.TestReport]:
    """Of an attempt that is followed by another, the one report that says what was lost; it carries the record."""
    lost = next((report for report in reports if str(report.outcome) == "infra"), reports[-1])
    setattr(lost, RECORD_ATTRIBUTE, getattr(reports[-1], RECORD_ATTRIBUTE, None))
    return [lost]
