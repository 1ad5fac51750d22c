"""Which tests a plan has: listed by a pytest child before anything else is started."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lomi.lab.child import ChildOrder, opened_child
from lomi.lab.events import Finished, Listed, NotCollected, Unreadable
from lomi.lab.plan import PlanError, PlanFault, Tests
from lomi.lab.shard import PlannedTest

_TAIL = 2000
_NO_TESTS = 5
"""pytest's exit status when it collected nothing."""
_SHOWN = 10


async def listed_tests(
    tests: Tests, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], seconds: float
) -> tuple[PlannedTest, ...]:
    """Every test of the plan, in pytest's order. `folder` is the tests' folder, `seconds` bounds the listing.

    Raises:
        PlanError: a file can't be collected, two tests have one id, there is none, or pytest did not do it in time.
    """
    command = ("--collect-only", "-q", *tests.arguments, *arguments, "--", *tests.paths)
    found: list[PlannedTest] = []
    broken: list[NotCollected] = []
    status: int | None = None
    unread = False
    with tempfile.TemporaryDirectory(prefix="lomi-lab-") as scratch:
        log = Path(scratch) / "listing.log"
        async with opened_child(ChildOrder(command, folder, environment, log)) as child:
            while True:
                try:
                    event = await child.next_event(seconds)
                except TimeoutError:
                    await child.end(show=True)
                    raise PlanError(_fault(f"pytest listed nothing for {seconds:.0f} s", _tail(log))) from None
                if event is None:
                    break
                if isinstance(event, Listed):
                    found.append(PlannedTest(id=event.test, file=event.file, line=event.line))
                elif isinstance(event, NotCollected):
                    broken.append(event)
                elif isinstance(event, Finished):
                    status = event.status
                elif isinstance(event, Unreadable):
                    unread = True
            tail = _tail(log)
    if broken:
        raise PlanError(*(_fault(f"{one.node} can't be collected", one.text[-_TAIL:]) for one in broken[:_SHOWN]))
    if status not in (0, _NO_TESTS):
        raise PlanError(_fault(f"pytest could not list the tests (exit status {status or child.exit_code})", tail))
    if unread:
        raise PlanError(_fault("pytest listed something that could not be read; is an id of a test over 1 MiB long?"))
    twice = [name for name, times in Counter(test.id for test in found).items() if times > 1]
    if twice:
        named = ", ".join(twice[:_SHOWN])
        raise PlanError(_fault(f"{len(twice)} ids name more than one test, so no verdict could be theirs: {named}"))
    if not found:
        raise PlanError(_fault(f"pytest finds no test in {', '.join(tests.paths)}"))
    return tuple(found)


def _fault(message: str, detail: str = "") -> PlanFault:
    return PlanFault(None, "tests", message + (f"\n{detail.strip()}" if detail.strip() else ""))


def _tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-_TAIL:] if log.exists() else ""
