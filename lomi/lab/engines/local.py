"""Shards on this host: workers as processes of its own, phones from its pool, a broker that is opened again if lost."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lomi.core.plain_group import plain_group
from lomi.lab.account import Account
from lomi.lab.anchoring import anchored
from lomi.lab.engine import EngineError, EngineFailedError, NeedsUnmetError, Shelf
from lomi.lab.evidence import with_evidence
from lomi.lab.lanes import HostClock, Lane
from lomi.lab.plan import Plan
from lomi.lab.pool import Held, PhoneFailedError, PoolPhone
from lomi.lab.quarters import Premises, Quarters, opened_quarters
from lomi.lab.shard import Attempt, Needs, Segment, Shard, ShardResult, Work
from lomi.lab.worker import WorkerOrder, run_worker

LIVES = 3
"""How often a broker of the run's own is opened: once, and again after it was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSetting:
    """What a host runs shards of, and where.

    Attributes:
        plan: the plan; its pool, broker and worker count are this host's.
        folder: the tests' folder, absolute.
        environment: what workers inherit; `LOMI_HOME` and the client's label and token for a broker that runs already.
        shelf: where artifacts go.
        scratch: an empty folder for logs and whatever else is not an artifact.
        host: its name in results.
    """

    plan: Plan
    folder: Path
    environment: Mapping[str, str]
    shelf: Shelf
    scratch: Path
    host: str = "local"
    clock: HostClock


class LocalEngine:
    """Made by `opened_local_engine`; see `lomi.lab.engine.Engine` for what it promises."""

    def __init__(self, setting: LocalSetting) -> None:
        self._setting = setting
        self._numbers = itertools.count(1)
        plan, began = setting.plan, setting.clock.now()
        self._phone_lanes = {
            name: Lane(setting.host, name, setting.clock, "boot" if plan.broker is not None else "idle", began)
            for name in (f"phone {number}" for number in range(1, plan.phones + 1))
        }
        needing_none = plan.phones == 0 or any(rule.phones == 0 for rule in plan.needs)
        count = plan.worker_count if needing_none else 0
        numbers = range(count, 0, -1)
        self._free = [Lane(setting.host, f"worker {number}", setting.clock, began=began) for number in numbers]
        self._workers = tuple(self._free)
        self._quarters: Quarters | None = None
        self._failed: str | None = None
        self._changed = asyncio.Condition()
        self._idle = asyncio.Event()
        self._scopes: set[asyncio.Timeout] = set()
        self._cancelled = False

    @property
    def capacity(self) -> int:
        """How many shards can run at the same time."""
        return 0 if self._failed else self._setting.plan.worker_count

    async def capacity_other_than(self, known: int) -> None:
        """Wait until nothing can be run here any more; before that it does not change."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.capacity != known)

    @property
    def ships_files(self) -> bool:
        """The tests' folder is here."""
        return False

    def check(self, needs: Needs) -> None:
        """Whether this host has so many phones.

        Raises:
            NeedsUnmetError: it has not.
        """
        if needs.phones > self._setting.plan.phones:
            there = self._setting.plan.phones
            raise NeedsUnmetError(f"{needs.phones} phones are needed at once, and {self._setting.host} has {there}")
        if self._quarters is not None and self._quarters.pool is not None:
            self._quarters.pool.check(needs.phones)

    async def run(self, shard: Shard, needs: Needs) -> ShardResult:
        """Run one shard; see `Engine.run`."""
        self.check(needs)
        job = _Job(shard, needs, self._setting.host)
        job.asked = self._setting.clock.now()
        try:
            async with asyncio.timeout(0 if self._cancelled else None) as scope:
                self._scopes.add(scope)
                try:
                    await self._run(job)
                finally:
                    self._scopes.discard(scope)
                    if not self._scopes:
                        self._idle.set()
        except TimeoutError:
            if not scope.expired():
                raise
            job.trouble = "cancelled"
        except OSError as error:
            if not job.attempts:
                raise EngineFailedError(f"{self._setting.host} can't run a worker: {error}") from error
            job.trouble = str(error)
        return job.result()

    async def _run(self, job: "_Job") -> None:
        self._idle.clear()
        quarters, held = await self._provided(job)
        lanes = [one.lane for one in held] or [await self._free_lane()]
        job.began = self._setting.clock.now()
        how, check = self._setting.plan.pool.recycle if self._setting.plan.pool else "reuse", True
        try:
            await self._work(job, quarters, held, lanes)
            check = any(attempt.verdict in ("failed", "infra_error") for attempt in job.attempts)
        finally:
            job.segments = tuple(segment for lane in lanes for segment in lane.taken())
            if quarters.pool is not None and held:
                quarters.pool.give_back(held, "reuse" if job.shard.per == "run" else how, check=check)
            else:
                lanes[0].enter("idle")
                self._free.append(lanes[0])
                async with self._changed:
                    self._changed.notify_all()

    async def _free_lane(self) -> Lane:
        """The lane of a worker without phones, once one is free."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._free)
            return self._free.pop()

    async def _provided(self, job: "_Job") -> tuple[Quarters, tuple[Held, ...]]:
        """A broker, and all phones that the shard needs."""
        while True:
            quarters = await self._present()
            if not job.needs.phones or quarters.pool is None:
                return quarters, ()
            try:
                return quarters, await quarters.pool.take(job.needs.phones)
            except EngineFailedError:
                # The pool went with its broker; there may be another one.
                quarters.lost.set()
                await self._others_than(quarters)

    async def _others_than(self, gone: Quarters) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._quarters is not gone)

    async def _work(self, job: "_Job", quarters: Quarters, held: tuple[Held, ...], lanes: Sequence[Lane]) -> None:
        """Run the shard in as many processes as its phones are to be made as new."""
        shard, setting = job.shard, self._setting
        for number, works in enumerate(_batches(shard), 1):
            if number > 1 and quarters.pool is not None and held:
                try:
                    await quarters.pool.recycle(held, shard.recycle)
                except PhoneFailedError as failed:
                    job.trouble = str(failed)
                    return
            order = WorkerOrder(
                shard=shard,
                works=works,
                folder=setting.folder,
                environment=quarters.environment,
                scratch=setting.scratch / f"shard-{shard.number}-{number}",
                phones=[one.phone.name for one in held],
                lanes=lanes,
                clock=setting.clock,
                alive=lambda: _alive(quarters, held),
            )
            account = Account(tuple(works), shard.number, setting.host)
            try:
                job.trouble = await run_worker(order, account)
            finally:
                await job.take(account, order, self._setting.shelf, tuple(one.phone for one in held))
            if job.trouble is not None:
                return

    async def cancel(self) -> None:
        """End everything that runs or waits."""
        self._cancelled = True
        now = asyncio.get_running_loop().time()
        for scope in self._scopes:
            scope.reschedule(now)
        if self._scopes:
            await self._idle.wait()

    async def finish(self) -> tuple[Segment, ...]:
        """The last stretches of all lanes."""
        await self.cancel()
        lanes, now = (*self._phone_lanes.values(), *self._workers), self._setting.clock.now()
        return tuple(segment for lane in lanes for segment in lane.taken(now))

    async def anchor(self, content: bytes) -> str | None:
        """Import the content as an artifact of its own; None without a broker, or where it refuses."""
        quarters = self._quarters
        if quarters is None or quarters.lab is None:
            return None
        return await anchored(quarters.lab, content)

    async def keep(self) -> None:
        """Keep the quarters open, and open them again where the broker was lost; `opened_local_engine` runs this."""
        setting = self._setting
        log = setting.scratch / "broker.log"
        premises = Premises(setting.plan, setting.folder, setting.environment, self._phone_lanes, log)
        why = ""
        for _ in range(LIVES if setting.plan.broker is not None else 1):
            try:
                async with opened_quarters(premises) as quarters:
                    await self._publish(quarters)
                    await quarters.lost.wait()
                    why = "the broker was lost"
                    if quarters.pool is not None:
                        quarters.pool.fail(why)
                    await self._publish(None)
            except EngineFailedError as failed:
                why = str(failed)
        self._failed = f"{why}; nothing more can be run here"
        await self._publish(None)

    async def _publish(self, quarters: Quarters | None) -> None:
        async with self._changed:
            self._quarters = quarters
            self._changed.notify_all()

    async def _present(self) -> Quarters:
        async with self._changed:
            await self._changed.wait_for(lambda: self._quarters is not None or self._failed is not None)
        if self._quarters is None:
            raise EngineFailedError(self._failed or "")
        return self._quarters


class _Job:
    """One shard on its way through this host."""

    def __init__(self, shard: Shard, needs: Needs, host: str) -> None:
        self.shard = shard
        self.needs = needs
        self.asked = self.began = 0.0
        self.attempts: list[Attempt] = []
        self.segments: tuple[Segment, ...] = ()
        self.trouble: str | None = None
        self._host = host

    async def take(self, account: Account, order: WorkerOrder, shelf: Shelf, phones: Sequence[PoolPhone]) -> None:
        """What a process left, with the phones that it had."""
        for attempt in await asyncio.to_thread(_evidence, account.attempts, order.left, shelf):
            generations = attempt.generations or tuple(phone.generation for phone in phones if phone.generation)
            named = tuple(phone.name for phone in phones)
            self.attempts.append(msgspec.structs.replace(attempt, phones=named, generations=generations))

    def result(self) -> ShardResult:
        """The shard as it ended."""
        return ShardResult(
            shard=self.shard.number,
            host=self._host,
            attempts=tuple(self.attempts),
            segments=self.segments,
            waited_s=max(0.0, self.began - self.asked),
            trouble=self.trouble,
        )


def _evidence(attempts: tuple[Attempt, ...], left: Path, shelf: Shelf) -> tuple[Attempt, ...]:
    """The attempts with what the plugin left of them; without, where the disk has no room: verdicts count more."""
    try:
        return with_evidence(attempts, left, shelf)
    except OSError:
        return attempts


def _batches(shard: Shard) -> list[tuple[Work, ...]]:
    """The works of each process: phones are made as new between two of them."""
    if shard.per == "run" or shard.recycle == "reuse":
        return [shard.works]
    if shard.per == "test":
        return [(work,) for work in shard.works]
    return [tuple(works) for _, works in itertools.groupby(shard.works, key=lambda work: work.test.module)]


async def _alive(quarters: Quarters, held: Sequence[Held]) -> bool:
    if quarters.lost.is_set():
        return False
    return all([await one.phone.alive() for one in held])


@asynccontextmanager
async def opened_local_engine(setting: LocalSetting) -> AsyncIterator[LocalEngine]:
    """An engine on this host; the broker and the phones that it started end with the context."""
    async with plain_group() as tasks:
        engine = LocalEngine(setting)
        keeping = tasks.create_task(engine.keep(), name="lomi-lab-quarters")
        try:
            yield engine
        finally:
            with suppress(EngineError):
                await engine.cancel()
            keeping.cancel()
