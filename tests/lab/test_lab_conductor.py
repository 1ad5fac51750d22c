"""The conductor over engines that fail in every way: hosts lost, needs unmet, nothing that ends."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from lab import lab_values as values

from lomi.lab import conductor as conducting
from lomi.lab.book import Book, open_book
from lomi.lab.conductor import Conductor, Task
from lomi.lab.engine import EngineFailedError, HostLostError, NeedsUnmetError
from lomi.lab.lanes import HostClock
from lomi.lab.plan import parse_plan
from lomi.lab.retries import RetryPolicy
from lomi.lab.shard import Needs, Segment, Shard, ShardResult

Script = Callable[[Shard], ShardResult]


class ScriptedEngine:
    """An engine that answers each shard as a script says; a stand-in for hosts, whose real ones tests/lab meets too."""

    ships_files = False

    def __init__(self, script: Script, capacity: int = 2) -> None:
        self.capacity = capacity
        self.grew = asyncio.Condition()
        self.script = script
        self.seen: list[Shard] = []
        self.at_once = self.most_at_once = 0
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()
        self.waits: set[int] = set()
        self.deaf = False

    def check(self, needs: Needs) -> None:
        del needs

    async def capacity_other_than(self, known: int) -> None:
        async with self.grew:
            await self.grew.wait_for(lambda: self.capacity != known)

    async def run(self, shard: Shard, needs: Needs) -> ShardResult:
        self.seen.append(shard)
        self.begun.set()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if shard.number in self.waits:
                await (asyncio.Event() if self.deaf else self.cancelled).wait()
                return values.result(shard, "passed", trouble="cancelled")
            await asyncio.sleep(0)
            return self.script(shard)
        finally:
            self.at_once -= 1

    async def cancel(self) -> None:
        self.cancelled.set()

    async def finish(self) -> tuple[Segment, ...]:
        return ()

    async def anchor(self, content: bytes) -> str | None:
        return None


def all_pass(shard: Shard) -> ShardResult:
    return values.result(shard, *["passed"] * len(shard.works))


def conductor_of(
    engine: ScriptedEngine, count: int, plan: str = "", needs: Mapping[int, int] | None = None
) -> Conductor:
    tests = values.tests_of(count)
    asked = {test.id: Needs(phones=(needs or {}).get(test.line, 0)) for test in tests}
    task = Task(
        plan=parse_plan(f"version = 1\n{plan}"),
        plan_sha256="0" * 64,
        tests=tests,
        needs=asked,
        seconds={},
        arguments=(),
    )
    rule = task.plan.retries
    book = open_book(tests, RetryPolicy(rule.failed, rule.infra, rule.most))
    return Conductor(task, engine, book, HostClock(), lambda _: None)


def states(book: Book) -> list[str | None]:
    return [entry.state for entry in book.entries.values()]


async def test_shards_run_as_many_at_once_as_the_engine_says() -> None:
    """Ten shards on an engine for three: never four, and all end."""
    engine = ScriptedEngine(all_pass, capacity=3)
    conductor = conductor_of(engine, 20, "[shards]\ncount = 10\n")
    await conductor.conduct()
    assert states(conductor.book) == ["passed"] * 20
    assert engine.most_at_once == 3
    assert [len(shard.works) for shard in engine.seen] == [2] * 10


async def test_queued_shards_go_at_once_to_what_came_in_the_middle() -> None:
    """One shard that does not end fills the engine; the others end once it can run two, and the first still runs."""
    last = asyncio.Event()

    def script(shard: Shard) -> ShardResult:
        if shard.number == 3:
            last.set()
        return all_pass(shard)

    engine = ScriptedEngine(script, capacity=1)
    engine.waits = {1}
    conductor = conductor_of(engine, 3, "[shards]\ncount = 3\n")
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(conductor.conduct())
        await engine.begun.wait()
        assert [shard.number for shard in engine.seen] == [1]
        async with engine.grew:
            engine.capacity = 2
            engine.grew.notify_all()
        await last.wait()
        assert [shard.number for shard in engine.seen] == [1, 2, 3]
        engine.cancelled.set()
    assert states(conductor.book) == ["passed"] * 3


async def test_a_lost_hosts_shards_run_elsewhere_and_count_once() -> None:
    """The first try of each shard loses its host; the next has another number and another attempt."""

    def script(shard: Shard) -> ShardResult:
        if shard.works[0].attempt == 1:
            raise HostLostError("host-2", "no heartbeat")
        return all_pass(shard)

    engine = ScriptedEngine(script)
    conductor = conductor_of(engine, 4, "[shards]\ncount = 2\n")
    await conductor.conduct()
    assert states(conductor.book) == ["passed"] * 4
    assert [len(entry.attempts) for entry in conductor.book.entries.values()] == [1] * 4
    assert len({shard.number for shard in engine.seen}) == len(engine.seen)
    assert [note.host for note in conductor.notes.values()][:2] == ["host-2", "host-2"]


async def test_a_host_that_is_always_lost_does_not_go_on_for_ever() -> None:
    """After as many tries as the lab has retries the tests are its errors, with the reason."""

    def script(shard: Shard) -> ShardResult:
        raise HostLostError("host-2", "no heartbeat")

    engine = ScriptedEngine(script)
    conductor = conductor_of(engine, 3, "[retries]\ninfra = 2\n")
    await conductor.conduct()
    assert states(conductor.book) == ["infra_error"] * 3
    assert "host-2 was lost: no heartbeat" in next(iter(conductor.book.entries.values())).why
    assert len(engine.seen) == 3


async def test_needs_that_can_not_be_met_any_more_end_their_tests_alone() -> None:
    """Tests that need two phones when one is left are the lab's errors; the others run."""

    def script(shard: Shard) -> ShardResult:
        if len(shard.works) == 1:
            raise NeedsUnmetError("2 phones are needed at once, and 1 are left")
        return all_pass(shard)

    conductor = conductor_of(ScriptedEngine(script), 5, "[pool]\nphones = 2\n[shards]\ncount = 1\n", {3: 2})
    await conductor.conduct()
    assert states(conductor.book) == ["passed", "passed", "infra_error", "passed", "passed"]


async def test_an_engine_that_failed_ends_the_run_with_every_test_told() -> None:
    """Nothing more is given out; what waits is an error of the lab, too."""

    def script(shard: Shard) -> ShardResult:
        raise EngineFailedError("the broker was lost")

    engine = ScriptedEngine(script, capacity=1)
    conductor = conductor_of(engine, 4, "[shards]\ncount = 4\n")
    await conductor.conduct()
    assert states(conductor.book) == ["infra_error"] * 4
    assert len(engine.seen) == 1


async def test_retries_run_alone_and_after_the_rest() -> None:
    """Two tests of a shard fail: each is tried again in a shard of its own, unless the plan wants them together."""

    def script(shard: Shard) -> ShardResult:
        verdicts = ["passed" if work.attempt > 1 or work.test.line > 2 else "failed" for work in shard.works]
        return values.result(shard, *verdicts)  # type: ignore[arg-type]

    for isolated, sizes in ((True, [4, 1, 1]), (False, [4, 2])):
        engine = ScriptedEngine(script)
        plan = f"[retries]\nfailed = 1\nisolated = {str(isolated).lower()}\n"
        conductor = conductor_of(engine, 4, plan)
        await conductor.conduct()
        assert states(conductor.book) == ["passed"] * 4
        assert [len(shard.works) for shard in engine.seen] == sizes
        assert conductor.book.retries == 2


async def test_a_stop_ends_what_runs_and_what_waits() -> None:
    """The running shard tells what had ended; its other tests and all that waited are cancelled."""
    engine = ScriptedEngine(all_pass, capacity=1)
    engine.waits = {1}
    conductor = conductor_of(engine, 4, "[shards]\ncount = 2\n")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(conductor.conduct())
        await engine.begun.wait()
        conductor.stop("cancelled", "enough")
        conductor.stop("not_run", "a second stop changes nothing")
    assert states(conductor.book) == ["passed", "cancelled", "cancelled", "cancelled"]


async def test_the_deadline_of_the_run_holds_even_against_a_deaf_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that does not end its shards is left behind; every test has its state."""
    monkeypatch.setattr(conducting, "STOP_S", 0.05)
    engine = ScriptedEngine(all_pass, capacity=1)
    engine.waits, engine.deaf = {1}, True
    conductor = conductor_of(engine, 4, "[shards]\ncount = 2\n[deadlines]\nrun_s = 0.05\n")
    async with asyncio.timeout(5):
        await conductor.conduct()
    assert states(conductor.book) == ["not_run"] * 4
    assert {entry.why for entry in conductor.book.entries.values()} == {"the run's deadline of 0.05 s was over"}
