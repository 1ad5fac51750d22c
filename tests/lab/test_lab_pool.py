"""The pool: all phones of a request or none, in the order of coming; phones that don't boot are given up and named."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lomi.lab.engine import EngineFailedError, NeedsUnmetError
from lomi.lab.lanes import HostClock, Lane
from lomi.lab.plan import Recycle
from lomi.lab.pool import Held, PhoneFailedError, Pool, PoolRule, opened_pool


class ScriptedPhone:
    """A phone that does as it is told; a stand-in for the broker's answers, whose real ones tests/lab also meets."""

    def __init__(self, name: str, broken_boots: int = 0) -> None:
        self.name = name
        self.generation: str | None = None
        self.broken_boots = broken_boots
        self.hangs = False
        self.runs = True
        self.log: list[str] = []

    async def boot(self) -> None:
        self.log.append("boot")
        if self.hangs:
            await asyncio.Event().wait()
        if self.broken_boots:
            self.broken_boots -= 1
            raise PhoneFailedError("no screen")
        self.generation = f"g{self.log.count('boot')}"
        self.runs = True

    async def alive(self) -> bool:
        if not self.runs:
            self.generation = None
        return self.runs

    async def renew(self, how: Recycle) -> None:
        self.log.append(how)
        self.generation = None


@asynccontextmanager
async def pool_of(*phones: ScriptedPhone, **rule: object) -> AsyncIterator[Pool]:
    clock = HostClock()
    pairs = [(phone, Lane("h", phone.name, clock)) for phone in phones]
    async with opened_pool(pairs, PoolRule(**rule)) as pool:  # type: ignore[arg-type]
        yield pool


def names(held: tuple[Held, ...]) -> list[str]:
    return [one.phone.name for one in held]


async def test_phones_boot_ahead_and_are_handed_out_warm() -> None:
    """Before anybody asks, all are booted; who asks gets one at once."""
    phones = [ScriptedPhone("a"), ScriptedPhone("b")]
    async with pool_of(*phones) as pool:
        async with asyncio.timeout(5):
            held = await pool.take(2)
        assert [one.warm for one in held] == [True, True]
        assert [phone.log for phone in phones] == [["boot"], ["boot"]]


async def test_without_ahead_each_boots_with_its_first_user() -> None:
    """A cold pool boots nothing that nobody asked for."""
    phones = [ScriptedPhone("a"), ScriptedPhone("b")]
    async with pool_of(*phones, ahead=False) as pool:
        (held,) = await pool.take(1)
        assert not held.warm
        assert [phone.log for phone in phones] == [["boot"], []]


async def test_several_phones_are_had_all_or_none() -> None:
    """Row 10: a request for two of which one is taken holds neither, and one that comes later does not overtake it."""
    async with pool_of(ScriptedPhone("a"), ScriptedPhone("b")) as pool:
        single = await pool.take(1)
        async with asyncio.TaskGroup() as tasks:
            pair = tasks.create_task(pool.take(2))
            await asyncio.sleep(0)
            later = tasks.create_task(pool.take(1))
            await asyncio.sleep(0)
            assert not pair.done()
            assert not later.done()
            pool.give_back(single, "reuse", check=False)
            assert sorted(names(await pair)) == ["a", "b"]
            pool.give_back(await pair, "reuse", check=False)
            await later


async def test_crossing_requests_never_lock_each_other() -> None:
    """Ten users that want both phones, over and over: each gets its turn."""
    turns: list[int] = []
    async with pool_of(ScriptedPhone("a"), ScriptedPhone("b")) as pool, asyncio.timeout(5):

        async def use(number: int) -> None:
            for _ in range(5):
                held = await pool.take(2)
                await asyncio.sleep(0)
                turns.append(number)
                pool.give_back(held, "reuse", check=False)

        async with asyncio.TaskGroup() as tasks:
            for number in range(10):
                tasks.create_task(use(number))
    assert len(turns) == 50


async def test_who_leaves_the_wait_holds_nothing() -> None:
    """A request that is cancelled while it waits, or just as it is served, leaves the phones to the next."""
    async with pool_of(ScriptedPhone("a")) as pool:
        held = await pool.take(1)
        for served in (False, True):
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(pool.take(1))
                await asyncio.sleep(0)
                if served:
                    pool.give_back(held, "reuse", check=False)
                waiting.cancel()
        assert names(await pool.take(1)) == ["a"]


async def test_a_phone_that_never_boots_is_given_up_and_the_others_go_on() -> None:
    """Two boots are tried; then it is named, and requests that the rest can't serve fail at once."""
    broken, sound = ScriptedPhone("broken", broken_boots=9), ScriptedPhone("sound")
    async with pool_of(broken, sound, boots=2) as pool:
        waiting = asyncio.ensure_future(pool.take(2))
        with pytest.raises(
            NeedsUnmetError, match="1 are left; broken was given up: 2 boots failed, the last one: no screen"
        ):
            await waiting
        assert broken.log == ["boot", "reuse", "boot", "reuse"]
        assert names(await pool.take(1)) == ["sound"]
        with pytest.raises(NeedsUnmetError):
            pool.check(2)


async def test_a_cold_phone_that_does_not_boot_is_replaced_by_one_that_does() -> None:
    """Who asked gets the sound one, and does not see the other."""
    async with pool_of(ScriptedPhone("broken", broken_boots=9), ScriptedPhone("sound"), ahead=False, boots=1) as pool:
        assert names(await pool.take(1)) == ["sound"]


async def test_a_boot_that_hangs_is_ended_on_time() -> None:
    """A boot has a deadline; the phone is stopped and tried again, then given up."""
    phone = ScriptedPhone("a")
    phone.hangs = True
    async with pool_of(phone, boot_s=0.02, boots=1) as pool:
        with pytest.raises(NeedsUnmetError, match=r"it was not ready within 0\.02 s"):
            await pool.take(1)


@pytest.mark.parametrize("how", ["wipe", "fresh"])
async def test_a_phone_is_made_new_before_the_next_user(how: Recycle) -> None:
    """What the last one left is gone before it is handed out again."""
    phone = ScriptedPhone("a")
    async with pool_of(phone) as pool:
        pool.give_back(await pool.take(1), how, check=False)
        (held,) = await pool.take(1)
        assert phone.log == ["boot", how, "boot"]
        assert held.phone.generation == "g2"
        await pool.recycle((held,), how)
        assert phone.log[-2:] == [how, "boot"]


async def test_a_dead_phone_is_booted_again_before_it_is_handed_out() -> None:
    """After a failure it is looked at: one that died boots again, one that lives is used on."""
    phone = ScriptedPhone("a")
    async with pool_of(phone) as pool:
        held = await pool.take(1)
        pool.give_back(held, "reuse", check=True)
        held = await pool.take(1)
        assert phone.log == ["boot"]
        phone.runs = False
        pool.give_back(held, "reuse", check=True)
        await pool.take(1)
        assert phone.log == ["boot", "reuse", "boot"]


async def test_a_phone_that_was_seen_to_hang_is_stopped_before_it_boots_again() -> None:
    """Its user looked first, after a failure: the pool is not to spend a boot on a phone that still runs."""
    phone = ScriptedPhone("a")
    async with pool_of(phone, boots=1) as pool:
        (held,) = await pool.take(1)
        phone.runs = False
        assert not await phone.alive()
        pool.give_back((held,), "reuse", check=True)
        await pool.take(1)
        assert phone.log == ["boot", "reuse", "boot"]


async def test_a_failed_pool_tells_everybody() -> None:
    """Who waits and who comes later hear why, at once."""
    async with pool_of(ScriptedPhone("a")) as pool:
        await pool.take(1)
        waiting = asyncio.ensure_future(pool.take(1))
        await asyncio.sleep(0)
        pool.fail("the broker was lost")
        for late in (waiting, pool.take(1)):
            with pytest.raises(EngineFailedError, match="the broker was lost"):
                await late
