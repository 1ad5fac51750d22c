"""One pytest process with some tests of a shard: deadlines, whose fault an end is, and what the process left."""

import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lomi.lab.account import Account
from lomi.lab.child import ChildOrder, PytestChild, opened_child
from lomi.lab.events import Began, Ended, Heard, PhaseEnded
from lomi.lab.lanes import HostClock, Lane
from lomi.lab.shard import Shard, Work
from lomi.lab.witness import LEFT, PHONES, TESTS

_TAIL = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrder:
    """What one process is to do, where, and with which phones; `scratch` is a folder of its own.

    `alive` says whether the phones still are: asked when a test failed or the process ended by itself.
    """

    shard: Shard
    works: Sequence[Work]
    folder: Path
    environment: Mapping[str, str]
    scratch: Path
    phones: Sequence[str]
    lanes: Sequence[Lane]
    clock: HostClock
    alive: Callable[[], Awaitable[bool]]

    @property
    def log(self) -> Path:
        """Everything that the process printed."""
        return self.scratch / "worker.log"

    @property
    def left(self) -> Path:
        """Where the plugin of the process leaves its records and artifacts."""
        return self.scratch / "left"


async def run_worker(order: WorkerOrder, account: Account) -> str | None:
    """Run the tests; what became of them is in the account. Why it ended before its last test, else None.

    Raises:
        OSError: it can't be started.
    """
    child_order = _child_order(order)
    for lane in order.lanes:
        lane.enter("worker", shard=order.shard.number)
    async with opened_child(child_order) as child:
        return await _Watch(order, account, child).watch()


def _child_order(order: WorkerOrder) -> ChildOrder:
    order.left.mkdir(parents=True)
    tests = order.scratch / "tests.json"
    tests.write_text(json.dumps([work.test.id for work in order.works]), encoding="utf-8")
    files = dict.fromkeys(work.test.file for work in order.works)
    environment = {
        **order.environment,
        TESTS: str(tests),
        LEFT: str(order.left),
        PHONES: ",".join(order.phones),
    }
    arguments = ("-q", "-p", "no:cacheprovider", *order.shard.arguments, "--", *files)
    return ChildOrder(arguments, order.folder, environment, order.log)


class _Watch:
    """Hears one process out."""

    def __init__(self, order: WorkerOrder, account: Account, child: PytestChild) -> None:
        self._order = order
        self._account = account
        self._child = child
        self._now = order.clock.now
        self._heard = self._now()
        self._test_began = self._heard

    async def watch(self) -> str | None:
        """Until it has ended, or had to be."""
        while True:
            try:
                event = await self._child.next_event(self._deadline() - self._now())
            except TimeoutError:
                return await self._overdue()
            if event is None:
                return await self._gone()
            self._hear(event)
            if isinstance(event, Ended) and event.waits:
                if trouble := await self._suspected():
                    return trouble
                self._child.go_on()
                self._heard = self._now()

    def _deadline(self) -> float:
        shard = self._order.shard
        if self._account.current is not None:
            return self._test_began + shard.test_s
        return self._heard + shard.worker_s

    def _hear(self, event: Heard) -> None:
        self._account.hear(event)
        self._heard = self._now()
        if isinstance(event, Began):
            self._test_began = self._heard
        if isinstance(event, Began | PhaseEnded | Ended):
            current = self._account.current if self._account.part != "worker" else None
            at = event.began + event.seconds if isinstance(event, PhaseEnded) else event.at
            for lane in self._order.lanes:
                lane.enter(
                    self._account.part,
                    shard=self._order.shard.number,
                    test=current.test.id if current else None,
                    at=at,
                )

    async def _suspected(self) -> str | None:
        """After a failure: was it the phone's? Then the test is not to blame, and the tests after it need another."""
        last = self._account.attempts[-1:] if self._account.current is None else ()
        if not last or last[0].verdict != "failed" or await self._order.alive():
            return None
        reason = "a phone of this test, or its broker, died while it ran"
        self._account.blame(last[0].test, reason)
        await self._child.end(show=False)
        return reason

    async def _overdue(self) -> str:
        """It took too long: a test, or the process around it."""
        await self._child.end(show=True)
        alive = await self._order.alive()
        current, part = self._account.current, self._account.part
        if current is None:
            return f"pytest said nothing for {self._order.shard.worker_s:g} s outside of any test\n{self._tail()}"
        named = {"setup": "in its set-up", "test": "in its call", "teardown": "in its teardown"}.get(part, "")
        reason = f"over its deadline of {self._order.shard.test_s:g} s, {named}"
        if alive:
            self._account.cut("failed", reason, self._now(), self._tail())
        else:
            self._account.cut(
                "infra_error", f"a phone of this test, or its broker, died; it was {reason}", self._now(), self._tail()
            )
        return f"{current.test.id} was {reason}"

    async def _gone(self) -> str | None:
        """It has ended by itself."""
        how = _ended(self._child.exit_code)
        if self._account.current is not None:
            test = self._account.current.test.id
            self._account.cut("infra_error", f"the worker {how} while this test ran", self._now(), self._tail())
            return f"the worker {how} while {test} ran"
        if not self._account.told_end:
            return f"the worker {how}\n{self._tail()}"
        self._account.uncollected(self._now())
        return None

    def _tail(self) -> str:
        try:
            with self._order.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"exited with {code}"
