"""The warm pool: phones that are booted ahead, checked, handed out all or none, and made good as new between users."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from lomi.core.plain_group import plain_group
from lomi.lab.engine import EngineFailedError, NeedsUnmetError
from lomi.lab.lanes import Lane
from lomi.lab.plan import Recycle


class PhoneFailedError(Exception):
    """Raised by a phone that did not boot or answer; the message is one line."""


class PoolPhone(Protocol):
    """One phone as the pool uses it."""

    @property
    def name(self) -> str:
        """What the broker calls it."""
        ...

    @property
    def generation(self) -> str | None:
        """Its present life, None when it is stopped."""
        ...

    async def boot(self) -> None:
        """Start it, wait until it is ready, and look at it.

        Raises:
            PhoneFailedError: it is not usable.
        """
        ...

    async def alive(self) -> bool:
        """Whether it runs now and answers; cheap."""
        ...

    async def renew(self, how: Recycle) -> None:
        """Stop it, and for `wipe` or `fresh` make it as new; it is stopped afterwards.

        Raises:
            PhoneFailedError: that failed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRule:
    """Seconds that one boot may take, how many boots a phone gets, and whether phones boot before they are wanted."""

    boot_s: float = 180.0
    boots: int = 2
    ahead: bool = True


class Held:
    """A phone in use."""

    def __init__(self, phone: PoolPhone, lane: Lane) -> None:
        self.phone = phone
        self.lane = lane
        self.warm = False
        """Whether it was booted when it was taken."""
        self.used = False
        """Whether anybody had it."""


class _GivenUpError(Exception):
    """Raised for whoever is at work on a phone that is given up now."""


class _Request:
    """Somebody who waits for some phones at once."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.ready: asyncio.Future[tuple[Held, ...]] = asyncio.get_running_loop().create_future()


class Pool:
    """Made by `opened_pool`. Requests are served in the order of their coming, each whole: nobody holds a part."""

    def __init__(self, phones: Sequence[tuple[PoolPhone, Lane]], rule: PoolRule, tasks: asyncio.TaskGroup) -> None:
        self._all = [Held(phone, lane) for phone, lane in phones]
        self._free: list[Held] = []
        self._waiting: deque[_Request] = deque()
        self._retired: dict[str, str] = {}
        self._rule = rule
        self._tasks = tasks
        self._failed: str | None = None
        self._work: set[asyncio.Task[None]] = set()
        if rule.ahead:
            for held in self._all:
                self._begin(held, "reuse")
        else:
            self._free.extend(self._all)

    @property
    def size(self) -> int:
        """How many phones can still be used."""
        return len(self._all) - len(self._retired)

    def check(self, count: int) -> None:
        """Whether so many could ever be had.

        Raises:
            NeedsUnmetError: no; the message says how many there are and why not more.
            EngineFailedError: the pool has failed.
        """
        if self._failed is not None:
            raise EngineFailedError(self._failed)
        if count > self.size:
            lost = "".join(f"; {name} was given up: {why}" for name, why in self._retired.items())
            raise NeedsUnmetError(f"{count} phones are needed at once, and {self.size} are left{lost}")

    async def take(self, count: int) -> tuple[Held, ...]:
        """Wait for some phones, booted and checked; whoever leaves the wait holds none.

        Raises:
            NeedsUnmetError: they will never be there.
            EngineFailedError: the pool has failed.
        """
        while True:
            taken = await self._next(count)
            try:
                for held in taken:
                    held.warm = held.phone.generation is not None
                    await self._boot(held)
            except _GivenUpError:
                self.give_back(taken, "reuse", check=False)
                continue
            except BaseException:
                self.give_back(taken, "reuse", check=True)
                raise
            return taken

    async def _next(self, count: int) -> tuple[Held, ...]:
        self.check(count)
        request = _Request(count)
        self._waiting.append(request)
        self._serve()
        try:
            return await request.ready
        except asyncio.CancelledError:
            if request in self._waiting:
                self._waiting.remove(request)
            elif not request.ready.cancelled() and request.ready.exception() is None:
                self._free.extend(request.ready.result())
            self._serve()
            raise

    def give_back(self, taken: Sequence[Held], how: Recycle, *, check: bool) -> None:
        """Hand phones back; they are recycled, and with `check` looked at, before anybody else gets them."""
        for held in taken:
            if self._failed is not None:
                held.lane.enter("idle")
                continue
            held.lane.enter("idle" if how == "reuse" else "recycle")
            if held.phone.name in self._retired:
                continue
            if how == "reuse" and not check and (held.phone.generation is not None or not self._rule.ahead):
                self._free.append(held)
            else:
                self._begin(held, how)
        self._serve()

    async def recycle(self, taken: Sequence[Held], how: Recycle) -> None:
        """Make phones that are in use as new, for the next tests of the same shard.

        Raises:
            PhoneFailedError: one can't be used any more.
        """
        try:
            for held in taken:
                if how == "reuse" and await held.phone.alive():
                    continue
                if how != "reuse" or held.phone.generation is not None:
                    await self._renewed(held, how)
                await self._boot(held)
        except _GivenUpError as given_up:
            raise PhoneFailedError(str(given_up)) from given_up

    def fail(self, why: str) -> None:
        """Nothing can be had any more: everybody who waits is told so."""
        self._failed = why
        self._tell(EngineFailedError(why))

    def _begin(self, held: Held, how: Recycle) -> None:
        work = self._tasks.create_task(self._make_ready(held, how), name=f"lomi-lab-phone-{held.phone.name}")
        self._work.add(work)
        work.add_done_callback(self._work.discard)

    def end(self) -> None:
        """Leave every phone as it is now; nothing is handed out any more."""
        self.fail(self._failed or "the pool is closed")
        for work in self._work:
            work.cancel()

    async def _make_ready(self, held: Held, how: Recycle) -> None:
        """Bring a phone that nobody uses into the state in which it is handed out."""
        with suppress(_GivenUpError):
            if how != "reuse":
                await self._renewed(held, how)
            elif held.used and not await held.phone.alive():
                # It may hang rather than have ended, and then no boot would come to anything before it is stopped.
                await self._renewed(held, "reuse")
            if self._rule.ahead:
                await self._boot(held)
            held.lane.enter("idle")
            self._free.append(held)
        self._serve()

    async def _renewed(self, held: Held, how: Recycle) -> None:
        held.lane.enter("recycle")
        try:
            await held.phone.renew(how)
        except PhoneFailedError as failed:
            self._retire(held, f"it could not be made as new: {failed}")

    async def _boot(self, held: Held) -> None:
        """Boot a phone that is stopped, as often as the rule allows."""
        if held.phone.generation is not None:
            return
        said = ""
        for _ in range(self._rule.boots):
            held.lane.enter("boot")
            try:
                async with asyncio.timeout(self._rule.boot_s):
                    await held.phone.boot()
            except PhoneFailedError as failed:
                said = str(failed)
            except TimeoutError:
                said = f"it was not ready within {self._rule.boot_s:g} s"
            else:
                return
            await self._renewed(held, "reuse")
        self._retire(held, f"{self._rule.boots} boots failed, the last one: {said}")

    def _retire(self, held: Held, why: str) -> None:
        """Give a phone up; who can't be served without it is told at once.

        Raises:
            _GivenUpError: always, for whoever was at work on it.
        """
        held.lane.enter("idle")
        self._retired[held.phone.name] = why
        for request in list(self._waiting):
            try:
                self.check(request.count)
            except NeedsUnmetError as unmet:
                self._waiting.remove(request)
                if not request.ready.done():
                    request.ready.set_exception(unmet)
        raise _GivenUpError(f"phone {held.phone.name}: {why}")

    def _tell(self, failure: EngineFailedError) -> None:
        while self._waiting:
            request = self._waiting.popleft()
            if not request.ready.done():
                request.ready.set_exception(failure)

    def _serve(self) -> None:
        """Hand free phones to whoever came first; a booted one before a cold one."""
        while self._waiting and len(self._free) >= self._waiting[0].count:
            request = self._waiting.popleft()
            if request.ready.done():
                continue
            self._free.sort(key=lambda held: held.phone.generation is None)
            taken, self._free = tuple(self._free[: request.count]), self._free[request.count :]
            for held in taken:
                held.used = True
            request.ready.set_result(taken)


@asynccontextmanager
async def opened_pool(phones: Sequence[tuple[PoolPhone, Lane]], rule: PoolRule) -> AsyncIterator[Pool]:
    """Begin to boot phones; with the context nothing of the pool is at work any more. Phones are not stopped."""
    async with plain_group() as tasks:
        pool = Pool(phones, rule, tasks)
        try:
            yield pool
        finally:
            pool.end()
