"""The conductor: gives shards to the engine, takes what comes back into the book, and ends on time."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lomi.lab import book as books
from lomi.lab.book import Book, Entry, Stop
from lomi.lab.dealing import by_count, by_timing
from lomi.lab.engine import Engine, EngineError, HostLostError, NeedsUnmetError
from lomi.lab.lanes import HostClock
from lomi.lab.plan import Plan
from lomi.lab.shard import FileByHash, Needs, PlannedTest, Segment, Shard

STOP_S = 60.0
"""How long a cancelled engine may take before its shards are given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is conducted: the plan with its hash and tests, what each needs, and what earlier runs took."""

    plan: Plan
    plan_sha256: str
    tests: Sequence[PlannedTest]
    needs: Mapping[str, Needs]
    seconds: Mapping[str, float]
    arguments: tuple[str, ...]
    files: tuple[FileByHash, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardNote:
    """A shard that was given out, for the report. `ended` is 0 while it runs; times are seconds since the epoch."""

    number: int
    tests: tuple[str, ...]
    queued: float
    ended: float = 0.0
    host: str = ""
    waited_s: float = 0.0
    trouble: str | None = None


class Conductor:
    """Conducts one run.

    Attributes:
        book: how every test stands.
        segments: what lanes told so far.
        notes: every shard, by number.
    """

    def __init__(self, task: Task, engine: Engine, book: Book, clock: HostClock, told: Callable[[Book], None]) -> None:
        self.book = book
        self.segments: list[Segment] = []
        self.notes: dict[int, ShardNote] = {}
        self._task = task
        self._engine = engine
        self._clock = clock
        self._told = told
        self._numbers = itertools.count(1)
        self._queue: deque[tuple[Shard, Needs]] = deque()
        self._queued: set[str] = set()
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopping: tuple[Stop, str] | None = None

    def stop(self, kind: Stop, why: str) -> None:
        """Give nothing out any more and end what runs; `conduct` returns soon."""
        if self._stopping is None:
            self._stopping = (kind, why)
            self._changed.set()

    async def conduct(self) -> None:
        """Run every test of the plan to its state."""
        self._deal_first()
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow_capacity(), name="lomi-lab-capacity")
            try:
                async with asyncio.timeout(self._task.plan.deadlines.run_s):
                    await self._until_ended(tasks)
            except TimeoutError:
                self.stop("not_run", f"the run's deadline of {self._task.plan.deadlines.run_s:g} s was over")
            finally:
                following.cancel()
            if not self.book.ended:
                await self._end()
        assert self.book.ended

    async def _until_ended(self, tasks: asyncio.TaskGroup) -> None:
        while not self.book.ended and self._stopping is None:
            while self._queue and self._running < max(1, self._engine.capacity):
                shard, needs = self._queue.popleft()
                self._give(shard)
                running = tasks.create_task(self._run(shard, needs), name=f"lomi-lab-shard-{shard.number}")
                self._tasks.add(running)
                running.add_done_callback(self._tasks.discard)
            self._changed.clear()
            await self._changed.wait()

    async def _follow_capacity(self) -> None:
        """Look at the queue again whenever the engine can run more, or less, than it could."""
        while True:
            await self._engine.capacity_other_than(self._engine.capacity)
            self._changed.set()

    async def _end(self) -> None:
        """Stop the book, then the engine; shards that the engine does not end are given up."""
        assert self._stopping is not None
        self._put(books.stop(self.book, *self._stopping))
        self._queue.clear()
        try:
            async with asyncio.timeout(STOP_S):
                await self._engine.cancel()
                while self._running:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            for number in list(self.notes):
                self._put(books.lose(self.book, number, "the engine did not end it"))
            for running in self._tasks:
                running.cancel()

    async def _run(self, shard: Shard, needs: Needs) -> None:
        try:
            result = await self._engine.run(shard, needs)
        except HostLostError as lost:
            self._note(shard.number, host=lost.host, trouble=str(lost))
            self._put(books.lose(self.book, shard.number, f"host {lost.host or 'unknown'} was lost: {lost}"))
        except NeedsUnmetError as unmet:
            self._note(shard.number, trouble=str(unmet))
            self._put(books.fail(self.book, shard.number, str(unmet)))
        except EngineError as failed:
            self._note(shard.number, trouble=str(failed))
            self._put(books.fail(self.book, shard.number, str(failed)))
            self.stop("infra_error", str(failed))
        else:
            self._note(shard.number, host=result.host, trouble=result.trouble, waited_s=result.waited_s)
            self.segments.extend(result.segments)
            self._put(books.take(self.book, result))
        self._running -= 1
        self._deal_again()
        self._changed.set()

    def _note(self, number: int, *, host: str = "", trouble: str | None = None, waited_s: float = 0.0) -> None:
        old = self.notes[number]
        self.notes[number] = ShardNote(
            number, old.tests, old.queued, ended=self._clock.now(), host=host, waited_s=waited_s, trouble=trouble
        )

    def _put(self, changed: Book) -> None:
        self.book = changed
        self._told(changed)

    def _give(self, shard: Shard) -> None:
        works = books.works_of(self.book.entries[work.test.id] for work in shard.works)
        assert works == shard.works
        self.book = books.give(self.book, shard)
        self._queued -= {work.test.id for work in works}
        self._running += 1

    def _deal_first(self) -> None:
        """Every test of the plan, dealt as the plan says, those with other needs apart."""
        shards = self._task.plan.shards
        for needs, entries in self._by_needs(self.book.waiting):
            tests = [entry.test for entry in entries]
            workers = self._task.plan.worker_count
            count = shards.count or max(1, workers // max(1, needs.phones))
            dealt = by_timing(tests, count, self._task.seconds) if shards.by == "timing" else by_count(tests, count)
            for some in dealt:
                self._queue_shard([self.book.entries[test.id] for test in some], needs)

    def _deal_again(self) -> None:
        """Tests that came back: those that did not begin together, retries each for itself where the plan says so."""
        if self._stopping is not None or self.book.stop is not None:
            return
        back = [entry for entry in self.book.waiting if entry.test.id not in self._queued]
        for needs, entries in self._by_needs(back):
            isolated = [entry for entry in entries if entry.attempts and self._task.plan.retries.isolated]
            others = [entry for entry in entries if entry not in isolated]
            if others:
                self._queue_shard(others, needs, first=True)
            for entry in isolated:
                self._queue_shard([entry], needs)

    def _by_needs(self, entries: Iterable[Entry]) -> list[tuple[Needs, list[Entry]]]:
        found: dict[int, tuple[Needs, list[Entry]]] = {}
        for entry in entries:
            needs = self._task.needs[entry.test.id]
            found.setdefault(needs.phones, (needs, []))[1].append(entry)
        return list(found.values())

    def _queue_shard(self, entries: Sequence[Entry], needs: Needs, *, first: bool = False) -> None:
        plan = self._task.plan
        shard = Shard(
            number=next(self._numbers),
            plan_sha256=self._task.plan_sha256,
            works=books.works_of(entries),
            arguments=(*plan.tests.arguments, *self._task.arguments),
            test_s=plan.deadlines.test_s,
            worker_s=plan.deadlines.worker_s,
            recycle=plan.pool.recycle if plan.pool is not None else "reuse",
            per=plan.pool.per if plan.pool is not None else "run",
            files=self._task.files,
        )
        (self._queue.appendleft if first else self._queue.append)((shard, needs))
        names = tuple(work.test.id for work in shard.works)
        self._queued.update(names)
        self.notes[shard.number] = ShardNote(shard.number, names, queued=self._clock.now())
