"""What becomes of an operation on its way, where plans, checks and disks fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from broker_room import Room, open_room

from lomi.contract.codes import OperationState
from lomi.contract.model import Observation
from lomi.contract.scopes import SCOPES
from lomi.core.ids import OperationId, WorkspaceId
from lomi.core.port import Act, Call, Outcome, Permit, Plan, ResourceKey
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


async def test_a_decision_does_not_stand_for_a_plan_that_reads_otherwise_by_now(tmp_path: Path) -> None:
    """What was approved is made out again before it is started: another plan is refused, and nothing is done."""
    sizes = iter(("one file", "two files"))

    async def counted(call: Call[Any]) -> Plan | None:
        return Plan(title="Change", lines=(next(sizes),), binding=())

    async with open_room(tmp_path / "h", [Act(tool="lomi_chat_stop", act=_never, plan=counted)]) as room:
        said = (await room.mutate("lomi_chat_stop", "a", **STOP))["data"]
        assert (said["state"], said["effectState"]) == ("failed", "none")
        assert said["result"]["reason"] == "decision_outdated"


async def test_a_project_is_the_very_folder_that_was_decided_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that leads elsewhere after the decision opens nothing."""
    for name in ("agreed", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "agreed")
    async with open_room(tmp_path / "h") as room:
        turned: list[int] = []

        def turn(name: str) -> None:
            if name == "dispatched" and not turned:
                turned.append(1)
                link.unlink()
                link.symlink_to(tmp_path / "other")

        monkeypatch.setattr(room.broker.world.failpoints, "reach", turn)
        said = await room.mutate("lomi_project_open", "a", expectedRevision="2", projectPath=str(link), name="x")
        assert (said["data"]["state"], said["data"]["effectState"]) == ("failed", "none")
        assert said["data"]["result"]["reason"] == "folder_replaced"
        assert list(room.broker.world.layout.layout.projects) == ["j900"]


async def test_what_comes_from_a_workspace_of_ones_own_is_in_the_grant(tmp_path: Path) -> None:
    """A session that may use one workspace may use what it imported in one that it made itself."""
    (tmp_path / "h").mkdir(mode=0o700)
    async with open_room(tmp_path / "h", workspaces=frozenset({"w900"})) as room:
        made = (await room.mutate("lomi_workspace_create", "a", expectedRevision="2", name="mine"))["data"]
        workspace = made["result"]["workspaceId"]
        assert room.session.grant is not None
        assert room.session.grant.admits_workspace(workspace)
        listed = await room.call("lomi_workspace_list")
        assert [row["id"] for row in listed["data"]["items"]] == ["w900", workspace]


async def test_what_was_seen_after_an_act_is_told_only_to_who_may_read_it(tmp_path: Path) -> None:
    """The observation of a phone needs android.observe, whatever scope allowed the act."""

    async def stops(call: Call[Any], permit: Permit) -> Outcome:
        async with permit.effect():
            pass

        async def observe() -> Observation:
            return Observation(settled=True, lines=("a secret on the screen",))

        return Outcome(result=None, observe=observe)

    tools = [Act(tool="lomi_android_stop", act=stops)]
    for scopes, told in ((SCOPES, True), (set(SCOPES) - {"android.observe"}, False)):
        async with open_room(tmp_path / f"h{told}", tools, scopes=frozenset(scopes)) as room:
            device = "00000000-0000-8000-8000-000000000001"
            ledger = room.broker.ledger
            panel = await ledger.open_panel(WorkspaceId(room.workspace), "android", "phone", device)
            generation = await ledger.begin_generation(ResourceKey("android", device))
            given = {"expectedRevision": "3", "deviceId": device, "generation": generation, "panelId": panel.id}
            said = await room.mutate("lomi_android_stop", "a", **given)
            assert said["data"]["state"] == "succeeded"
            assert ("a secret" in str(said)) is told
