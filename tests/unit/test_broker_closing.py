"""What closing panels does to the runtimes behind them, and what it must not do."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from broker_room import Room, a_session, open_room

from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import RuntimeState
from lomi.core.ids import GenerationId, LeaseId, PanelId, WorkspaceId
from lomi.core.port import Call, Opening, Permit, ResourceKey
from lomi.core.refusal import EffectFailed, Refusal


class Phones:
    """Phones of which only so many stop; the stop of the next one provably does nothing."""

    kind: ResourceKind = "android"

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self.host: int | None = None
        self.stopped: list[str] = []
        self.closing = asyncio.Event()
        self.may_close = asyncio.Event()
        self.may_close.set()

    def state(self, resource: ResourceKey) -> RuntimeState:
        return "ready"

    def process(self, resource: ResourceKey) -> int | None:
        return self.host

    def check_claim(self, call: Call[Any]) -> None:
        return

    def owner_gone(self, generation: GenerationId) -> None:
        """Nothing to do."""

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        return

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        if len(self.stopped) >= self._most:
            raise EffectFailed(Refusal(ErrorCode.TARGET_BUSY), partial=False)
        self.closing.set()
        await self.may_close.wait()
        self.stopped.append(resource.name)


async def running(room: Room, *names: str) -> list[str]:
    """Panels of running phones in the room's workspace."""
    ledger, panels = room.broker.ledger, []
    for name in names:
        panels.append((await ledger.open_panel(WorkspaceId(room.workspace), "android", name, name)).id)
        await ledger.begin_generation(ResourceKey("android", name))
    return [str(panel) for panel in panels]


async def test_the_last_view_of_a_phone_out_of_the_grant_can_not_be_closed(tmp_path: Path) -> None:
    """Closing it would stop the phone, and stopping needs the phone in the grant."""
    phones = Phones()
    async with open_room(tmp_path / "h", runtimes=phones, devices=frozenset({"mine"})) as room:
        mine, other = await running(room, "mine", "other")
        revision = str(room.broker.world.layout.revision)
        said = await room.mutate("lomi_panel_close", "a", expectedRevision=revision, panelId=other)
        assert (said["status"], said.get("code")) == ("error", "SCOPE_DENIED")
        assert phones.stopped == []
        said = await room.mutate("lomi_panel_close", "b", expectedRevision=revision, panelId=mine)
        assert said["data"]["state"] == "succeeded"
        assert phones.stopped == ["mine"]


async def test_a_close_that_ended_one_of_two_runtimes_says_partial(tmp_path: Path) -> None:
    """A receipt never says that nothing was done when one phone of the workspace has stopped."""
    phones = Phones(most=1)
    async with open_room(tmp_path / "h", runtimes=phones) as room:
        await room.mutate("lomi_workspace_create", "a", expectedRevision="2", name="x")
        await running(room, "first", "second")
        revision = str(room.broker.world.layout.revision)
        said = (await room.mutate("lomi_workspace_update", "b", expectedRevision=revision, action="close"))["data"]
        assert len(phones.stopped) == 1
        assert (said["state"], said["effectState"]) == ("failed", "partial")
        assert room.workspace in room.broker.world.layout.layout.workspaces


async def test_a_page_whose_session_is_gone_can_be_closed_by_another(tmp_path: Path) -> None:
    """While its session is there it is busy; afterwards it must not stay for ever."""
    pages = Phones()
    pages.kind = "browser"
    async with open_room(tmp_path / "h", runtimes=pages) as room:
        broker, ledger = room.broker, room.broker.ledger
        opener, _ = a_session(broker, "c901")
        panel = await ledger.open_panel(WorkspaceId(room.workspace), "browser", "page", None)
        assert panel.resource is not None
        ledger.grant_lease(await ledger.begin_generation(panel.resource), opener.id)
        given = {"expectedRevision": str(broker.world.layout.revision), "panelId": panel.id}
        said = await room.mutate("lomi_panel_close", "a", **given)
        assert said.get("reason") == "already_leased"
        broker.loop.end_session(opener)
        broker.world.sessions.remove(opener)
        said = await room.mutate("lomi_panel_close", "b", **given)
        assert said["data"]["state"] == "succeeded"
        assert pages.stopped == [panel.id]


async def test_nothing_opens_in_a_workspace_that_is_being_closed(tmp_path: Path) -> None:
    """A panel opened while the runtimes end would vanish with the layout and leave its runtime to nobody."""
    phones = Phones()
    phones.may_close.clear()
    async with open_room(tmp_path / "h", runtimes=phones) as room, asyncio.TaskGroup() as group:
        await room.mutate("lomi_workspace_create", "a", expectedRevision="2", name="x")
        await running(room, "first")
        revision = str(room.broker.world.layout.revision)
        closing = group.create_task(
            room.mutate("lomi_workspace_update", "b", expectedRevision=revision, action="close")
        )
        await phones.closing.wait()
        with pytest.raises(Refusal, match="TARGET_NOT_FOUND"):
            await room.broker.ledger.open_panel(WorkspaceId(room.workspace), "browser", "late", None)
        phones.may_close.set()
        assert (await closing)["data"]["state"] == "succeeded"
        assert room.workspace not in room.broker.world.layout.layout.workspaces


async def test_a_runtime_whose_panel_was_closed_while_it_began_is_ended(tmp_path: Path) -> None:
    """Its opening is told that nothing stays; the panel's place is gone."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as group:
        world, ledger = room.broker.world, room.broker.ledger
        begun, may_begin, ended = asyncio.Event(), asyncio.Event(), list[str]()

        async def start(resource: ResourceKey) -> GenerationId:
            begun.set()
            await may_begin.wait()
            return await ledger.begin_generation(resource)

        async def end(resource: ResourceKey) -> None:
            ended.append(resource.name)

        call: Call[Any] = Call(
            tool="lomi_browser_open",
            input=None,
            session_id=room.session.id,
            grant=room.session.grant,  # type: ignore[arg-type]
            workspace=world.layout.workspace(room.workspace),
        )
        opening = group.create_task(
            _failing(ledger.open_leased(call, "browser", "page", Opening(start=start, end=end)))
        )
        await begun.wait()
        (shown,) = [panel for panel in world.layout.layout.panels.values() if panel.title == "page"]
        await ledger.close_panel(PanelId(shown.id))
        may_begin.set()
        failed = await opening
        assert (failed.refusal.code, failed.partial) == (ErrorCode.TARGET_NOT_FOUND, False)
        assert ended == [shown.id]


async def _failing(opening: Coroutine[Any, Any, object]) -> EffectFailed:
    with pytest.raises(EffectFailed) as said:
        await opening
    return said.value
