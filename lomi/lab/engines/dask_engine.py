"""Shards on many hosts: Dask carries orders to hosts and answers back; which of them count is decided here.

Dask never runs an order twice by itself (`allowed-failures` is 0). A host that is gone loses its shards as a whole, and
the run queues their tests again under new numbers; what the lost host may still answer is heard by nobody.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

import msgspec
from distributed import Client
from distributed.core import Status
from distributed.scheduler import KilledWorker

from lomi.core.plain_group import plain_group
from lomi.lab import host_tasks
from lomi.lab.engine import EngineFailedError, HostLostError, NeedsUnmetError, Shelf
from lomi.lab.engines.dask_hosts import Seat, Seats
from lomi.lab.evidence import MOST_ARTIFACT
from lomi.lab.host_orders import Hashes, HostAnswer, HostFacts, Lanes, ShardOrder
from lomi.lab.host_place import ClusterPlace
from lomi.lab.host_security import LOST_S, configure, security
from lomi.lab.plan import Plan
from lomi.lab.shard import FileByHash, Needs, Segment, Shard, ShardResult

CALL_S = 30.0
"""How long a host may take for a small question; files and pictures travel in such calls one by one."""
HOSTS_S = 60.0
"""How long a run waits for a host, at its start and after it lost all."""
_LOOK_S = 0.5
_KEEP_S = 10.0
_AT_ONCE = 4
T = TypeVar("T")


class CallFailedError(Exception):
    """Raised where a call of a host or of the scheduler came to no answer, or to one that is none; says why."""


_MOST_ANSWER = 256 << 20
"""Bytes of what became of one shard."""
_MOST_WORDS = 16 << 20
"""Bytes of any other words of a host: what it is, what it lacks, how its lanes ended."""
_MOST_ID = 256
_MOST_LINE = 300
_TROUBLE = (OSError, TimeoutError, KeyError, CallFailedError, msgspec.DecodeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskSetting:
    """A run on a cluster.

    Attributes:
        address: `dask://HOST:PORT` or `tls://HOST:PORT`.
        place: this member's certificate.
        run: a name that no other run has.
        plan: the plan; its broker table is not used, each host has its own policy.
        shelf: where files are taken from and artifacts go.
    """

    address: str
    place: ClusterPlace
    run: str
    plan: Plan
    shelf: Shelf


class DaskEngine:
    """Made by `opened_dask_engine`; see `lomi.lab.engine.Engine` for what it promises."""

    def __init__(self, setting: DaskSetting, client: Client) -> None:
        self._setting = setting
        self._client = client
        self._seats = Seats(setting.plan)
        self._refused: set[str] = set()
        self._running = 0
        self._cancelled = False
        self._failed: str | None = None
        self._odd = ""
        self._looked = asyncio.Event()

    @property
    def capacity(self) -> int:
        """How many shards fit on the hosts that are there now."""
        return 0 if self._failed else self._seats.capacity

    async def capacity_other_than(self, known: int) -> None:
        """Wait until hosts came, went, or lost phones."""
        async with self._seats.changed:
            await self._seats.changed.wait_for(lambda: self.capacity != known)

    @property
    def ships_files(self) -> bool:
        """Hosts have none of the tests' files."""
        return True

    def check(self, needs: Needs) -> None:
        """Whether some host could give this; unknown, and so not refused, while none has come.

        Raises:
            NeedsUnmetError: none could.
        """
        self._seats.check(needs)

    async def run(self, shard: Shard, needs: Needs) -> ShardResult:
        """Run one shard; see `Engine.run`."""
        seat = await self._seat(needs)
        if seat is None:
            return ShardResult(shard=shard.number, host="", attempts=(), trouble="cancelled")
        units = self._seats.units(needs)
        self._running += 1
        seat.used += units
        try:
            await self._send(seat, shard.files)
            answer = await self._ordered(seat, shard, needs)
            result = self._judged(seat, shard, needs, answer)
            await self._fetch(seat, result)
        finally:
            seat.used -= units
            self._running -= 1
            await self._seats.told()
        return result

    async def _seat(self, needs: Needs) -> Seat | None:
        """A host with room; None once the run is cancelled.

        Raises:
            EngineFailedError: there has been no host for a minute.
            NeedsUnmetError: no host has enough, or none that has was there for a minute.
        """
        now = asyncio.get_running_loop().time
        hopeless = now() + HOSTS_S
        while True:
            async with self._seats.changed:
                if self._failed is not None:
                    raise EngineFailedError(self._failed)
                self.check(needs)
                if self._cancelled:
                    return None
                if (seat := self._seats.free(needs)) is not None:
                    return seat
                if self._seats.able(needs):
                    hopeless = now() + HOSTS_S
                elif now() >= hopeless and self._seats.all:
                    raise NeedsUnmetError(f"no host with {needs.phones} phones was there for {HOSTS_S:g} s")
                elif now() >= hopeless:
                    raise EngineFailedError(f"no host was there for {HOSTS_S:g} s")
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(hopeless):
                        await self._seats.changed.wait()

    async def _ordered(self, seat: Seat, shard: Shard, needs: Needs) -> HostAnswer:
        """Give an order to a host and wait for its answer, or for its end.

        Raises:
            HostLostError: it ended first, or its answer is none.
        """
        order = ShardOrder(run=self._setting.run, plan=self._setting.plan, shard=shard, needs=needs)
        future = self._client.submit(
            host_tasks.run_shard,
            msgspec.json.encode(order),
            key=f"lomi-{self._setting.run}-{shard.number}",
            workers=[seat.address],
            allow_other_workers=False,
            resources=self._seats.resources(needs),
            retries=0,
            pure=False,
        )
        try:
            answer = await _of_host(future, seat.gone)
            return msgspec.json.decode(_bounded(answer, _MOST_ANSWER), type=HostAnswer)
        except CallFailedError as failed:
            raise HostLostError(seat.facts.name, str(failed)) from failed
        except msgspec.DecodeError as error:
            raise HostLostError(seat.facts.name, _line(error)) from error
        finally:
            with suppress(*_TROUBLE):
                await _of_host(future.cancel())  # type: ignore[no-untyped-call]

    def _judged(self, seat: Seat, shard: Shard, needs: Needs, answer: HostAnswer) -> ShardResult:
        """The result; without one the tests go elsewhere, and not to this host again where it has too little.

        Raises:
            HostLostError: there is none, or it is of another shard.
        """
        if answer.failure == "needs_unmet":
            self._seats.lower(seat, self._seats.units(needs) - 1)
        if answer.result is None:
            raise HostLostError(seat.facts.name, " ".join(answer.message.split())[:_MOST_LINE])
        if answer.result.shard != shard.number:
            told = f"it answered for shard {answer.result.shard} when asked for {shard.number}"
            raise HostLostError(seat.facts.name, told)
        return answer.result

    async def _fetch(self, seat: Seat, result: ShardResult) -> None:
        """Bring the artifacts of a result to our shelf, each checked against its hash.

        Raises:
            HostLostError: the host went before all were here; the shard does not count.
        """
        shelf, places = self._setting.shelf, asyncio.Semaphore(_AT_ONCE)
        named = {artifact.sha256 for attempt in result.attempts for artifact in attempt.artifacts}
        wanted = await asyncio.to_thread(lambda: [sha256 for sha256 in named if not _has(shelf, sha256)])

        async def fetch(sha256: str) -> None:
            async with places:
                content = _bounded(await self._ask(seat, host_tasks.read, sha256), MOST_ARTIFACT)
                if hashlib.sha256(content).hexdigest() != sha256:
                    raise HostLostError(seat.facts.name, "an artifact is not what its hash says")
                await asyncio.to_thread(shelf.put, content)

        for outcome in await asyncio.gather(*(fetch(sha256) for sha256 in wanted), return_exceptions=True):
            if isinstance(outcome, _TROUBLE):
                raise HostLostError(seat.facts.name, f"artifacts did not arrive: {_line(outcome)}") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def _ask(self, seat: Seat, task: Callable[..., Awaitable[object]], *words: object) -> object:
        """Call one of `host_tasks` on one host, now and beside what runs there.

        Raises:
            TimeoutError, KeyError, CallFailedError: it did not answer, or said that it can't.
        """
        async with asyncio.timeout(CALL_S):
            answers = await _of_host(self._client.run(task, *words, workers=[seat.address]), seat.gone)
        return answers[seat.address]

    async def _ask_all(self, task: Callable[..., Awaitable[object]], *words: object) -> list[object]:
        """The same on all hosts; those that don't answer are left out."""
        asked = (self._ask(seat, task, *words) for seat in self._seats.all)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    async def cancel(self) -> None:
        """End every shard that runs or waits."""
        self._cancelled = True
        await self._seats.told()
        await self._ask_all(host_tasks.cancel, self._setting.run)
        async with self._seats.changed:
            await self._seats.changed.wait_for(lambda: self._running == 0)

    async def finish(self) -> tuple[Segment, ...]:
        """The last stretches of the lanes of all hosts that are there, and tell them in words that can be read."""
        segments: list[Segment] = []
        for answer in await self._ask_all(host_tasks.finish, self._setting.run):
            with suppress(CallFailedError, msgspec.DecodeError):
                segments += msgspec.json.decode(_bounded(answer, _MOST_WORDS), type=Lanes).segments
        return tuple(segments)

    async def anchor(self, content: bytes) -> str | None:
        """Have the broker of one of the hosts keep the hash of some content."""
        for seat in self._seats.all:
            with suppress(*_TROUBLE):
                operation = await self._ask(seat, host_tasks.anchor, self._setting.run, content)
                if isinstance(operation, str) and len(operation) <= _MOST_ID:
                    return operation
        return None

    async def end(self) -> None:
        """Tell every host that the run is over."""
        await self._ask_all(host_tasks.end, self._setting.run)

    async def watch(self, tasks: asyncio.TaskGroup) -> None:
        """Follow who is there; `opened_dask_engine` runs this."""
        loop = asyncio.get_running_loop()
        silent_since, kept = loop.time(), loop.time()
        while True:
            try:
                present = await self._present()
                silent_since = loop.time()
            except _TROUBLE as error:
                if loop.time() - silent_since > LOST_S or self._client.status == "closed":
                    await self._fail(f"the scheduler is gone: {_line(error)}")
                    return
                present = None
            if present is not None:
                known = {seat.address for seat in self._seats.all}
                for address in known - present:
                    await self._seats.drop(address)
                self._refused &= present
                await asyncio.gather(*(self._welcome(address) for address in present - known - self._refused))
                if self._seats.all:
                    self._looked.set()
            if loop.time() - kept > _KEEP_S:
                kept = loop.time()
                tasks.create_task(self._keep(), name="lomi-lab-keep")
            await asyncio.sleep(_LOOK_S)

    async def _present(self) -> set[str]:
        async with asyncio.timeout(CALL_S):
            scheduler = self._client.scheduler
            if scheduler is None:
                raise ConnectionError("the connection is closed")
            told = await _of_host(scheduler.identity())
        running = Status.running.name
        return {address for address, worker in told["workers"].items() if worker.get("status", running) == running}

    async def _keep(self) -> None:
        await self._ask_all(host_tasks.keep, self._setting.run)

    async def _fail(self, why: str) -> None:
        self._failed = why
        self._looked.set()
        for seat in self._seats.all:
            await self._seats.drop(seat.address)
        await self._seats.told()

    async def _welcome(self, address: str) -> None:
        """Get to know a new host."""
        try:
            async with asyncio.timeout(CALL_S):
                answers = await _of_host(self._client.run(host_tasks.facts, workers=[address]))
            facts = msgspec.json.decode(_bounded(answers[address], _MOST_WORDS), type=HostFacts)
        except msgspec.DecodeError:
            self._odd = f"{address} has another version of Lomi"
            self._refused.add(address)
            return
        except _TROUBLE:
            return
        if facts.version != version("lomi-lab"):
            self._odd = f"{facts.name} has Lomi {facts.version}, this is {version('lomi-lab')}"
            self._refused.add(address)
        elif await self._seats.add(address, facts) is None:
            self._odd = f"{facts.name} offers {facts.offer}"
            self._refused.add(address)

    async def _send(self, seat: Seat, files: tuple[FileByHash, ...]) -> None:
        """Send a host what it lacks of the tests' files; once for each host.

        Raises:
            HostLostError: it went before all were there.
        """
        shelf = self._setting.shelf
        async with seat.sending:
            if seat.sent == files:
                return
            named = {file.sha256 for file in files}
            hashes = Hashes(sha256=tuple(sorted(named)))
            try:
                lacking = await self._ask(seat, host_tasks.missing, msgspec.json.encode(hashes))
                told = msgspec.json.decode(_bounded(lacking, _MOST_WORDS), type=Hashes)
                for sha256 in named.intersection(told.sha256):
                    content = await asyncio.to_thread(shelf.path_of(sha256).read_bytes)
                    await self._ask(seat, host_tasks.put, content)
            except _TROUBLE as error:
                raise HostLostError(seat.facts.name, f"the tests' files did not arrive: {_line(error)}") from error
            seat.sent = files

    async def wait_for_host(self) -> None:
        """Wait until there is a host, and every other that was there with it is known too.

        Raises:
            EngineFailedError: none came within a minute.
        """
        try:
            async with asyncio.timeout(HOSTS_S):
                await self._looked.wait()
        except TimeoutError as error:
            why = f" ({self._odd})" if self._odd else ""
            said = f"no host with what the plan needs was there within {HOSTS_S:g} s{why}"
            raise EngineFailedError(said) from error
        if self._failed is not None:
            raise EngineFailedError(self._failed)


async def _of_host(asked: Awaitable[T], gone: asyncio.Event | None = None) -> T:
    """What a call comes to. Errors of others may be of any kind: they leave the group of its task as one of ours.

    Raises:
        CallFailedError: it raised something, was cancelled, or the host was `gone` before.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            answered = tasks.create_task(_awaited(asked), name="lomi-lab-call")
            left = tasks.create_task((gone or asyncio.Event()).wait(), name="lomi-lab-call-gone")
            await asyncio.wait((answered, left), return_when=asyncio.FIRST_COMPLETED)
            answered.cancel()
            left.cancel()
    except ExceptionGroup as failed:
        error = failed.exceptions[0]
        killed = isinstance(error, KilledWorker)
        raise CallFailedError("its process ended with this shard on it" if killed else _line(error)) from error
    if answered.cancelled():
        raise CallFailedError(f"it has been silent for {LOST_S:g} s, or its process ended")
    return answered.result()


async def _awaited(asked: Awaitable[T]) -> T:
    return await asked


def _bounded(answer: object, most: int) -> bytes:
    """The bytes that a host answered with.

    Raises:
        CallFailedError: it answered something else, or more than `most`.
    """
    if not isinstance(answer, bytes):
        raise CallFailedError(f"it answered with {type(answer).__name__}, not bytes")
    if len(answer) > most:
        raise CallFailedError(f"it answered with {len(answer)} bytes, and {most} are the most")
    return answer


def _has(shelf: Shelf, sha256: str) -> bool:
    try:
        shelf.path_of(sha256)
    except KeyError:
        return False
    return True


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_LINE]


def _client(address: str, place: ClusterPlace) -> Client:
    made: Client = Client(  # type: ignore[no-untyped-call]
        address, security=security(place), asynchronous=True, timeout=CALL_S, set_as_default=False
    )
    return made


async def _closed(client: Client) -> None:
    await client.close()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def opened_dask_engine(setting: DaskSetting) -> AsyncIterator[DaskEngine]:
    """An engine on the hosts of a cluster; rooms on the hosts end with the context.

    Raises:
        EngineFailedError: the scheduler can't be reached or does not take us, or no host came.
    """
    configure()
    address = "tls://" + setting.address.removeprefix("dask://").removeprefix("tls://")
    client = _client(address, setting.place)
    try:
        await client
    except (OSError, TimeoutError) as error:
        await _closed(client)
        raise EngineFailedError(f"the scheduler {address} can't be reached: {_line(error)}") from error
    try:
        async with plain_group() as tasks:
            engine = DaskEngine(setting, client)
            watching = tasks.create_task(engine.watch(tasks), name="lomi-lab-hosts")
            try:
                await engine.wait_for_host()
                yield engine
            finally:
                await engine.end()
                watching.cancel()
    finally:
        await _closed(client)
