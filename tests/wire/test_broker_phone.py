"""Bad days of phones and pages under a real broker: processes that die in an operation, foreign servers and ports."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from harness import (
    ALL_SCOPES,
    Agent,
    ClientEntry,
    World,
    agent,
    opened_world,
    owner,
    owner_client,
    policy_text,
    rows_of,
    until,
)
from harness.journal import written_lines
from harness.process import processes_that_name
from harness.site import Site, serving

from lomi.client.errors import ConnectionLostError


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A local page."""
    with serving() as made:
        yield made


@pytest.fixture
def world(site: Site) -> Iterator[World]:
    """A broker with one phone."""
    client = ClientEntry(label="qa", scopes=ALL_SCOPES, devices=("*",), origins=(site.origin,))
    with opened_world(policy_text(client, phones=("phone-1",))) as made:
        yield made


async def running_phone(qa: Agent) -> dict[str, Any]:
    """The phone, started, leased: what calls on it name."""
    (device,) = (await qa.ask("lomi_android_list", workspaceId=qa.workspace)).data["devices"]["items"]
    named = {"deviceId": device["deviceId"]}
    panel = (await qa.do("lomi_android_open", await qa.revised(**named))).result["panelId"]
    named["panelId"] = panel
    started = await qa.do("lomi_android_start", await qa.revised(**named))
    named["generation"] = started.result["generation"]
    claimed = await qa.do("lomi_panel_control", await qa.revised(**named, action="claim"))
    return {"workspaceId": qa.workspace, **named, "leaseId": claimed.result["leaseId"]}


def phone_pids(world: World) -> list[int]:
    """Processes of simulated phones."""
    return [pid for pid, command in processes_that_name(world.root) if "emulator_images.paper" in command]


def alone(named: dict[str, Any]) -> dict[str, Any]:
    """Without the lease."""
    return {name: value for name, value in named.items() if name != "leaseId"}


@pytest.mark.parametrize("reached", [True, False])
async def test_a_phone_killed_under_a_tap_leaves_a_truthful_receipt(world: World, reached: bool) -> None:
    """Kill -9 the phone with a tap under way: never failed/none if it may have arrived; its generation ends."""
    async with agent(world) as qa:
        phone = await running_phone(qa)
        (pid,) = phone_pids(world)
        sent = {**phone, "retryEpoch": qa.epoch, "inputSequence": "1", "event": {"type": "tap", "at": point(100, 900)}}
        world.arm("effect_begun:1:stop")
        task = asyncio.ensure_future(qa.call("lomi_android_input", {**sent, "waitMs": 15_000}))
        await asyncio.to_thread(world.live.wait_stopped)
        world.disarm()
        if reached:
            os.kill(pid, signal.SIGSTOP)
            world.live.signal(signal.SIGCONT)
            await qa.ask("lomi_status")
        os.kill(pid, signal.SIGKILL)
        world.live.signal(signal.SIGCONT)
        ended = await task
        if ended.state != "failed/none":
            assert ended.state == "outcome_unknown/unknown", ended.raw
        inputs = [line for line in journal(world) if line["event"] == "input"]
        assert ended.state == "outcome_unknown/unknown" or inputs == []
        assert ended.state == "outcome_unknown/unknown" or not reached, ended.raw

        async def stopped() -> bool:
            (row,) = (await qa.ask("lomi_android_list", workspaceId=qa.workspace)).data["devices"]["items"]
            return row["generation"] is None and not row["processAlive"]

        await until(stopped)
        late = await qa.call("lomi_android_input", {**sent, "inputSequence": "2", "waitMs": 0})
        assert late.code == "STALE_GENERATION", late.raw
        again = await running_phone(qa)
        assert again["generation"] > phone["generation"]
        assert again["leaseId"] != phone["leaseId"]


def journal(world: World) -> list[dict[str, Any]]:
    """What the phone itself recorded."""
    path = world.home / "devices" / "avd" / "phone-1.avd" / "paper-journal.jsonl"
    return written_lines(path)


def point(x: int, y: int) -> dict[str, Any]:
    """A place in hardware pixels."""
    return {"space": "hardware_display", "x": x, "y": y}


async def test_a_killed_broker_leaves_no_phone_or_browser_behind_once_the_next_has_started(
    world: World, site: Site
) -> None:
    """Kill -9 with a phone and a page open: the next broker ends what is provably ours; generations grow."""
    async with agent(world) as qa:
        phone = await running_phone(qa)
        await qa.do("lomi_browser_open", await qa.revised(url=site.origin + "/"))
        (pid,) = phone_pids(world)
        world.kill()
    await asyncio.to_thread(world.restart)
    await until(lambda: pid not in phone_pids(world))
    async with agent(world) as qa:
        again = await running_phone(qa)
        assert again["generation"] > phone["generation"]
        assert (await qa.call("lomi_android_snapshot", {**alone(again), "generation": phone["generation"]})).code == (
            "STALE_GENERATION"
        )


async def test_adb_of_this_user_does_not_see_our_phone(world: World) -> None:
    """Nothing of ours listens on adb's usual port, and one who listens there already is left alone."""
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            foreign.bind(("127.0.0.1", 5037))
        except OSError:
            pytest.skip("adb's usual port is taken on this machine")
        foreign.listen()
        foreign.settimeout(0)
        async with agent(world) as qa:
            await running_phone(qa)
        with pytest.raises(BlockingIOError):
            foreign.accept()


async def test_a_page_cannot_reach_a_loopback_port_that_was_not_granted(world: World, site: Site) -> None:
    """fetch, image, WebSocket and navigation from a granted page to another local port: nothing arrives there."""
    with serving() as other:
        async with agent(world) as qa:
            opened = await qa.do("lomi_browser_open", await qa.revised(url=f"{site.origin}/reach?to={other.origin}"))
            page = {name: opened.result[name] for name in ("panelId", "browserGeneration", "leaseId")}
            went = {**await qa.keyed(), "workspaceId": qa.workspace, **page, "url": other.origin + "/direct"}
            refused = await qa.call("lomi_browser_navigate", went)
            assert (refused.code, refused.reason) == ("SCOPE_DENIED", "origin_not_granted")
            assert await asyncio.to_thread(site.wait, "/told", 20, what="tried")
        assert other.seen == []


@pytest.mark.parametrize("tool", ["lomi_terminal_create", "lomi_browser_open"])
async def test_nothing_is_left_to_a_session_that_ended_while_it_was_opened(world: World, site: Site, tool: str) -> None:
    """Revoked inside the effect: the receipt says failed, the panel is gone, no shell and no page stays ownerless."""
    async with agent(world) as qa, agent(world) as other, owner_client(world) as person:
        session = (await owner(world, "status"))["sessions"][0]["id"]
        more = {"cwdRelative": "", "title": "orphan"} if tool == "lomi_terminal_create" else {"url": site.origin + "/"}
        arguments = await qa.revised(**more)
        world.arm("effect_begun:1:stop")
        task = asyncio.ensure_future(qa.call(tool, arguments))
        await asyncio.to_thread(world.live.wait_stopped)
        world.disarm()
        # Its words are there when the broker goes on, long before a shell or a page could be.
        revoking = asyncio.ensure_future(person.call("owner.revoke", {"name": session}))
        await asyncio.sleep(0.1)
        world.live.signal(signal.SIGCONT)
        await revoking
        with pytest.raises(ConnectionLostError):
            await task
        row = await until(
            lambda: next((r for r in rows_of(world.home) if r.tool == tool and r.state != "running"), None)
        )
        assert row.state == "failed", row.short
        assert row.result is not None
        assert row.result["code"] == "CONTROL_REVOKED"
        panels = (await other.ask("lomi_panel_list", workspaceId=other.workspace)).data["items"]
        assert [panel["kind"] for panel in panels] == ["file"]
        if tool == "lomi_terminal_create":
            await until(lambda: not [pid for pid, words in processes_that_name(world.root) if "--rcfile" in words])


async def test_screens_stay_readable_while_a_session_is_revoked_and_another_takes_the_phone(world: World) -> None:
    """The lease of a session that vanished is free for the next one, without any help."""
    async with agent(world) as first:
        phone = await running_phone(first)
    async with agent(world) as second:
        named = {name: phone[name] for name in ("panelId", "deviceId", "generation")}
        claimed = await second.do("lomi_panel_control", await second.revised(**named, action="claim"))
        assert claimed.result["leaseId"] != phone["leaseId"]
        snapshot = await second.ask("lomi_android_snapshot", workspaceId=second.workspace, **named)
        assert snapshot.data["nodes"]
