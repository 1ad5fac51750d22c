"""What becomes of an operation on its way, where plans, checks and disks fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from broker_room import Room, open_room

from lomi.contract.codes import OperationState
from lomi.core.ids import OperationId
from lomi.core.port import Act, Call, Outcome, Permit, Plan
from lomi.store import StoreUnavailable

STOP = {"conversationId": "a", "requestId": "b"}


class UnforeseenError(Exception):
    """Raised by an adapter in a way that it does not document."""


async def _never(call: Call[Any], permit: Permit) -> Outcome:
    raise AssertionError("it must not act")


async def _still_serves(room: Room) -> bool:
    said = await room.call("lomi_status")
    return bool(said["data"]["connection"] == "connected")


async def test_a_plan_that_fails_ends_its_operation_and_nothing_else(tmp_path: Path) -> None:
    """An adapter's error before any effect is a receipt failed/none, and the broker goes on."""

    async def broken(call: Call[Any]) -> Plan | None:
        raise UnforeseenError

    async with open_room(tmp_path / "h", [Act(tool="lomi_chat_stop", act=_never, plan=broken)]) as room:
        said = (await room.mutate("lomi_chat_stop", "a", **STOP))["data"]
        assert (said["state"], said["effectState"]) == ("failed", "none")
        assert said["result"]["reason"] == "adapter_failed_before"
        assert await _still_serves(room)


async def test_a_check_that_fails_before_dispatch_ends_its_operation_and_nothing_else(tmp_path: Path) -> None:
    """The same check passes at admission and breaks before dispatch: nothing was done, and the broker goes on."""
    passes: list[str] = []

    def broken(call: Call[Any]) -> None:
        passes.append(call.tool)
        if len(passes) > 1:
            raise UnforeseenError

    async with open_room(tmp_path / "h", [Act(tool="lomi_chat_stop", act=_never, check=broken)]) as room:
        said = (await room.mutate("lomi_chat_stop", "a", **STOP))["data"]
        assert (said["state"], said["effectState"]) == ("failed", "none")
        assert await _still_serves(room)


async def test_a_cancel_that_the_disk_refuses_at_first_is_stored_when_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk while an operation is cancelled ends neither the broker nor the cancel."""
    begun = asyncio.Event()

    async def waits(call: Call[Any], permit: Permit) -> Outcome:
        begun.set()
        await permit.cancel_requested()
        await asyncio.Event().wait()
        raise AssertionError("it is cancelled here")

    async with open_room(tmp_path / "h", [Act(tool="lomi_chat_stop", act=waits)]) as room:
        monkeypatch.setattr("lomi.broker.loop.RETRY_SETTLE_S", 0.01)
        said = (await room.mutate("lomi_chat_stop", "a", waitMs=0, **STOP))["data"]
        await begun.wait()
        store, refused = room.broker.world.store, []
        move = store.move

        def full_once(*given: Any, **named: Any) -> "asyncio.Future[None]":
            if refused:
                return move(*given, **named)
            refused.append(given)
            failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            failed.set_exception(StoreUnavailable("disk_full"))
            return failed

        monkeypatch.setattr(store, "move", full_once)
        ended = await room.call("lomi_operation_cancel", operationId=said["operationId"], waitMs=5000)
        assert (ended["data"]["state"], ended["data"]["effectState"]) == ("cancelled", "none")
        stored = await store.receipt(OperationId(said["operationId"]))
        assert stored is not None
        assert stored.state is OperationState.CANCELLED
        assert refused
        assert await _still_serves(room)
