"""Leases in the broker: what gives them back, and what ends them by time."""

import asyncio
from pathlib import Path

from broker_room import Room, a_session, open_room
from harness import locked_storage
from test_broker_closing import Phones, running

from lomi.broker.counters import BLOCK
from lomi.core.port import ResourceKey

PAGE = ResourceKey("browser", "p900")
PHONE = ResourceKey("android", "01234567-89ab-8def-8123-456789abcdef")


async def test_a_page_is_leased_again_to_its_opener_when_the_person_gives_it_back(tmp_path: Path) -> None:
    """A page can't be claimed: Give back is the one way to its lease, and it goes to nobody else."""
    async with open_room(tmp_path / "h") as room:
        ledger = room.broker.ledger
        generation = await ledger.begin_generation(PAGE)
        first = ledger.grant_lease(generation, room.session.id)
        room.broker.give_back(PAGE)
        held = ledger.lease(generation)
        assert held is not None
        assert held.id == first
        room.broker.take(PAGE)
        assert ledger.lease(generation) is None
        room.broker.give_back(PAGE)
        held = ledger.lease(generation)
        assert held is not None
        assert (held.session_id, held.id == first) == (room.session.id, False)


async def _phone(room: Room) -> dict[str, object]:
    """A running phone, as a claim names it."""
    (panel,) = await running(room, PHONE.name)
    return {
        "panelId": panel,
        "deviceId": PHONE.name,
        "generation": room.broker.ledger.current(PHONE),
        "expectedRevision": str(room.broker.world.layout.revision),
    }


async def test_a_phone_that_begins_anew_while_its_lease_is_being_stored_is_leased_to_nobody(tmp_path: Path) -> None:
    """The lease was of the life that was claimed, and has ended with it; the receipt names none."""
    async with open_room(tmp_path / "h", runtimes=Phones()) as room:
        ledger, phone = room.broker.ledger, await _phone(room)
        with locked_storage(tmp_path / "h"):
            asked = asyncio.ensure_future(room.mutate("lomi_panel_control", "a", **phone, action="claim", waitMs=9000))
            await asyncio.sleep(0)
            assert room.broker.world.active
            later = await ledger.begin_generation(PHONE)
            assert not asked.done()
        said = await asked
        assert (said["data"]["state"], said["data"]["result"]["leaseId"]) == ("succeeded", None)
        assert [*room.broker.world.leases] == []
        again = await room.mutate(
            "lomi_panel_control", "b", **(phone | {"generation": later}), action="claim", waitMs=9000
        )
        assert again["data"]["result"]["leaseId"] is not None


async def test_claims_of_phones_leave_a_page_the_id_of_its_next_lease(tmp_path: Path) -> None:
    """Whatever is leased meanwhile, Give back finds an id at hand: without one the page could not be used again."""
    async with open_room(tmp_path / "h", runtimes=Phones()) as room:
        ledger = room.broker.ledger
        page = await ledger.begin_generation(PAGE)
        ledger.grant_lease(page, room.session.id)
        phone = await _phone(room)
        for turn in range(BLOCK):
            for action in ("claim", "release"):
                said = await room.mutate("lomi_panel_control", f"{action}-{turn}", **phone, action=action, waitMs=9000)
                assert said["data"]["state"] == "succeeded"
            room.broker.take(PAGE)
            room.broker.give_back(PAGE)
            assert ledger.lease(page) is not None, turn


async def test_a_shorter_idle_limit_is_not_kept_waiting_by_a_longer_one(tmp_path: Path) -> None:
    """Each lease ends by its own session's limit, whichever was granted first."""
    async with open_room(tmp_path / "h", lease_idle_s=3600) as room:
        broker, ledger = room.broker, room.broker.ledger
        session, _ = a_session(broker, "c901", lease_idle_s=1)
        long = await ledger.begin_generation(PAGE)
        ledger.grant_lease(long, room.session.id)
        await broker.world.tell_change()
        await asyncio.sleep(0)
        brief = await ledger.begin_generation(ResourceKey("browser", "p901"))
        ledger.grant_lease(brief, session.id)
        async with asyncio.timeout(10):
            while ledger.lease(brief) is not None:
                await broker.world.tell_change()
                await asyncio.sleep(0.02)
        assert ledger.lease(long) is not None
