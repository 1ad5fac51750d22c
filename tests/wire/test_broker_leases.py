"""Leases of a phone over the wire: each is given and ended by one commit, which is true whatever happens around it."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from harness import (
    Agent,
    ClientEntry,
    World,
    agent,
    locked_storage,
    opened_world,
    owner,
    policy_text,
    rows_of,
    store_is_sound,
)

from lomi.broker.counters import BLOCK
from lomi.client.errors import ConnectionLostError

CLAIMS = BLOCK + 2
POLICY = policy_text(ClientEntry(label="qa", devices=("one",)), phones=("one",))


async def started_phone(client: Agent) -> dict[str, Any]:
    """The phone, running and leased by nobody: what a claim of it names."""
    listed = (await client.ask("lomi_android_list", workspaceId=client.workspace)).data
    device = listed["devices"]["items"][0]["deviceId"]
    opened = await client.do("lomi_android_open", await client.revised(deviceId=device))
    target = {"deviceId": device, "panelId": opened.result["panelId"]}
    begun = await client.do("lomi_android_start", await client.revised(**target))
    return {**target, "generation": begun.result["generation"]}


async def under_way(client: Agent, claim: dict[str, Any]) -> "asyncio.Task[Any]":
    """A claim that is admitted by the broker, whose storage is held."""
    asked = asyncio.ensure_future(client.call("lomi_panel_control", claim))
    await asyncio.sleep(0)  # it is sent first
    await client.ask("lomi_status")
    assert not asked.done()
    return asked


def commits(world: World) -> int:
    """How many commits the store counts."""
    with closing(sqlite3.connect(f"file:{world.home}/agent-control/control.sqlite3?mode=ro", uri=True)) as opened:
        return int(opened.execute("SELECT sequence FROM ledger").fetchone()[0])


async def test_a_phone_is_claimed_more_often_than_a_block_of_lease_ids_is_long() -> None:
    """Every claim gives a lease of its own, also once the ids that were at hand at the connect are used up."""
    with opened_world(POLICY) as world:
        async with agent(world) as client:
            target = await started_phone(client)
            revision = await client.revision()
            leases = []
            for _ in range(CLAIMS):
                for action in ("claim", "release"):
                    arguments = await client.keyed(expectedRevision=revision, **target, action=action)
                    done = await client.do("lomi_panel_control", arguments)
                    leases += [done.result["leaseId"]] if action == "claim" else []
            assert len(set(leases)) == CLAIMS
            await client.do("lomi_android_stop", await client.revised(**target))
        world.stop()
        rows = [row for row in rows_of(world.home) if row.tool == "lomi_panel_control"]
        assert len(rows) == 2 * CLAIMS
        assert {row.state for row in rows} == {"succeeded"}


async def test_a_lease_is_given_by_one_commit_and_ended_by_one() -> None:
    """Each receipt is there, and the history shows that it ran and that it succeeded."""
    with opened_world(POLICY) as world:
        async with agent(world) as client:
            target = await started_phone(client)
            claim = await client.revised(**target, action="claim")
            release = await client.revised(**target, action="release")
            before = commits(world)
            claimed = await client.do("lomi_panel_control", claim)
            assert commits(world) == before + 1
            again = await client.do("lomi_panel_control", await client.revised(**target, action="claim"))
            assert again.result["leaseId"] == claimed.result["leaseId"]
            await client.do("lomi_panel_control", release)
            assert commits(world) == before + 3
            page = await client.ask("lomi_events_read", workspaceId=client.workspace)
            states = [e["state"] for e in page.data["items"] if e["operationId"] == claimed.data["operationId"]]
            assert states == ["running", "succeeded"]


@pytest.mark.parametrize(
    ("point", "told"),
    [
        ("before_commit", None),
        ("after_commit", "receipt succeeded/complete"),
        ("effect_begun", "receipt succeeded/complete"),
        ("settled", "receipt succeeded/complete"),
    ],
)
async def test_a_claim_that_dies_with_its_broker_is_stored_as_given_or_not_at_all(point: str, told: str | None) -> None:
    """Its lease ends with the broker either way, so nothing of it can be unknown."""
    with opened_world(POLICY) as world:
        async with agent(world) as client:
            target = await started_phone(client)
            arguments = await client.revised(**target, action="claim")
            world.arm(point)
            with pytest.raises(ConnectionLostError):
                await client.call("lomi_panel_control", arguments)
        assert await asyncio.to_thread(world.live.wait) == -signal.SIGKILL
        await asyncio.to_thread(world.restart)
        assert store_is_sound(world.home)
        rows = [row.short for row in rows_of(world.home) if row.tool == "lomi_panel_control"]
        assert rows == ([told] if told else [])


async def test_a_person_who_takes_the_phone_while_a_lease_is_being_stored_keeps_it() -> None:
    """The lease was given and ended at once: its receipt names none, and the phone is the person's."""
    with opened_world(POLICY) as world:
        async with agent(world) as client:
            target = await started_phone(client)
            with world.held_commit():
                asked = await under_way(client, await client.revised(**target, action="claim"))
                await owner(world, "take", name=target["panelId"])
            said = await asked
            assert (said.data["state"], said.result["leaseId"]) == ("succeeded", None)
            refused = await client.call("lomi_panel_control", await client.revised(**target, action="claim"))
            assert refused.short == "CONTROL_REVOKED (taken_over)"
            await owner(world, "give_back", name=target["panelId"])
            claimed = await client.do("lomi_panel_control", await client.revised(**target, action="claim"))
            assert claimed.result["leaseId"]


async def test_a_cancellation_that_comes_while_a_lease_is_being_stored_is_too_late() -> None:
    """The receipt says that the lease was given, and so it was: whoever cancelled can name it and release it."""
    with opened_world(POLICY) as world:
        async with agent(world) as client:
            target = await started_phone(client)
            with world.held_commit():
                claim = await client.revised(**target, action="claim")
                asked = await under_way(client, claim)
                named = {"tool": "lomi_panel_control", **{name: claim[name] for name in ("retryEpoch", "requestKey")}}
                found = await client.call("lomi_operation_get", named)
                assert found.state == "running/none"
                told = await client.ask("lomi_operation_cancel", operationId=found.data["operationId"])
            assert told.state == "running/none"
            said = await asked
            assert (said.state, said.data["operationId"]) == ("succeeded/complete", found.data["operationId"])
            again = await client.do("lomi_panel_control", await client.revised(**target, action="claim"))
            assert again.result["leaseId"] == said.result["leaseId"] is not None
            await client.do("lomi_panel_control", await client.revised(**target, action="release"))


async def test_a_session_that_ends_while_its_lease_is_being_stored_holds_none() -> None:
    """The next session is given the phone at once."""
    with opened_world(POLICY) as world:
        async with agent(world) as client, agent(world) as other:
            target = await started_phone(client)
            with world.held_commit():
                asked = await under_way(client, await client.revised(**target, action="claim"))
                sessions = (await owner(world, "ps"))["sessions"]
                await owner(world, "revoke", name=min(one["id"] for one in sessions))
            with pytest.raises(ConnectionLostError):
                await asked
            claimed = await other.do("lomi_panel_control", await other.revised(**target, action="claim"))
            assert claimed.result["leaseId"]


async def test_a_claim_that_cannot_be_stored_gives_no_lease() -> None:
    """STORAGE_UNAVAILABLE, and another session can claim the phone."""
    with opened_world(POLICY) as world:
        async with agent(world) as client:
            target = await started_phone(client)
            with locked_storage(world.home):
                asked = await under_way(client, await client.revised(**target, action="claim"))
                said = await asked
            assert said.code == "STORAGE_UNAVAILABLE"
            panels = (await client.ask("lomi_panel_list", workspaceId=client.workspace)).data["items"]
            assert not any(panel["inputControlled"] for panel in panels)
            claimed = await client.do("lomi_panel_control", await client.revised(**target, action="claim"))
            assert claimed.result["leaseId"]
