"""What a store that can't write makes of the broker's own bookkeeping."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from broker_room import open_room

from lomi.contract.codes import ErrorCode
from lomi.core.port import ResourceKey
from lomi.core.refusal import Refusal
from lomi.store import StoreUnavailable

TERMINAL = ResourceKey("terminal", "p900")


def _full(*given: Any, **named: Any) -> "asyncio.Future[None]":
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed.set_exception(StoreUnavailable("disk_full"))
    return failed


async def test_a_runtime_that_can_not_be_remembered_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters hear of a full disk as the documented refusal, before they use the runtime."""
    async with open_room(tmp_path / "h") as room:
        ledger = room.broker.ledger
        generation = await ledger.begin_generation(TERMINAL)
        monkeypatch.setattr(room.broker.world.store, "remember", _full)
        with pytest.raises(Refusal) as said:
            await ledger.remember(generation, b"{}")
        assert (said.value.code, said.value.reason) == (ErrorCode.STORAGE_UNAVAILABLE, "disk_full")


async def test_a_runtime_that_can_not_be_forgotten_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a runtime is told in a task of its adapter: a full disk must not take that down."""
    async with open_room(tmp_path / "h") as room:
        ledger = room.broker.ledger
        generation = await ledger.begin_generation(TERMINAL)
        await ledger.remember(generation, b"{}")
        with monkeypatch.context() as full:
            full.setattr(room.broker.world.store, "forget", _full)
            await ledger.forget(generation)
        assert [left.generation for left in await ledger.remembered("terminal")] == [generation]


async def test_a_counter_that_can_not_grow_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new generation on a full disk is refused as STORAGE_UNAVAILABLE."""

    async def full(counter: str, by: int = 1) -> int:
        raise StoreUnavailable("disk_full")

    async with open_room(tmp_path / "h") as room:
        monkeypatch.setattr(room.broker.world.store, "bump", full)
        with pytest.raises(Refusal) as said:
            await room.broker.ledger.begin_generation(TERMINAL)
        assert said.value.code is ErrorCode.STORAGE_UNAVAILABLE
        assert room.broker.ledger.current(TERMINAL) is None
