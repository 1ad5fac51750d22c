"""Who holds a phone, through the wire: leases die with brokers, connections, phones and disuse, and never by work."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

from harness import Agent, ClientEntry, World, agent, opened_world, owner, policy_text, until
from harness.journal import written_lines
from harness.process import processes_that_name

PHONE = "one"


@contextlib.asynccontextmanager
async def a_place(*, idle_s: int = 0) -> AsyncIterator[World]:
    """A broker with one paper phone and two clients."""
    clients = [ClientEntry(label=label, devices=(PHONE,), lease_idle_s=idle_s) for label in ("qa", "other")]
    with opened_world(policy_text(*clients, phones=(PHONE,))) as world:
        yield world


async def phone_of(qa: Agent) -> dict[str, Any]:
    """The phone's row."""
    (row,) = (await qa.ask("lomi_android_list", workspaceId=qa.workspace)).data["devices"]["items"]
    return dict(row)


async def panel_of(qa: Agent) -> dict[str, Any]:
    """A panel of the phone."""
    opened = await qa.do("lomi_android_open", await qa.revised(deviceId=(await phone_of(qa))["deviceId"]))
    return {"panelId": opened.result["panelId"], "deviceId": opened.result["deviceId"]}


async def running(qa: Agent) -> dict[str, Any]:
    """A panel of the started phone, with its generation."""
    panel = await panel_of(qa)
    begun = await qa.do("lomi_android_start", await qa.revised(**panel))
    return {**panel, "generation": begun.result["generation"]}


async def claim(qa: Agent, target: dict[str, Any]) -> Any:
    """Ask for control."""
    return await qa.call("lomi_panel_control", {**await qa.revised(**target), "action": "claim", "waitMs": 15000})


async def press(qa: Agent, target: dict[str, Any], lease: str, number: int, **event: Any) -> Any:
    """One input."""
    given = {"workspaceId": qa.workspace, "retryEpoch": qa.epoch, "leaseId": lease, "inputSequence": str(number)}
    event = event or {"type": "navigation", "key": "home"}
    return await qa.call("lomi_android_input", {**given, **target, "event": event, "waitMs": 15000})


async def test_a_lease_dies_with_its_broker_and_the_next_life_is_another() -> None:
    """Killed while leased: the phone is free again, its generation only grows, and nothing old is taken for new."""
    async with a_place() as world:
        async with agent(world) as qa:
            old = await running(qa)
            lease = (await claim(qa, old)).result["leaseId"]
            await asyncio.to_thread(world.kill)
        await asyncio.to_thread(world.restart)
        async with agent(world, "other") as other, agent(world) as qa:
            assert (await phone_of(other))["generation"] is None
            late = await press(qa, old, lease, 1)
            assert (late.code, late.reason) == ("STALE_GENERATION", "generation_ended")
            new = await running(other)
            assert new["generation"] > old["generation"]
            assert (await claim(other, new)).data["state"] == "succeeded"
            late = await press(qa, old, lease, 1)
            assert (late.code, late.reason) == ("STALE_GENERATION", "generation_replaced")


async def test_claiming_again_is_the_same_lease() -> None:
    """A hundred claims by the holder change nothing: one lease, one generation, no input lost."""
    async with a_place() as world, agent(world) as qa:
        target = await running(qa)
        leases = [(await claim(qa, target)).result["leaseId"] for _ in range(100)]
        assert len(set(leases)) == 1
        assert (await phone_of(qa))["generation"] == target["generation"]
        assert (await press(qa, target, leases[0], 1)).data["state"] == "succeeded"


async def test_a_dropped_connection_frees_its_phone() -> None:
    """The holder's connection goes: the next one acquires at once, without a restart of the phone."""
    async with a_place() as world, agent(world, "other") as other:
        async with agent(world) as qa:
            target = await running(qa)
            assert (await claim(qa, target)).data["state"] == "succeeded"
            busy = await claim(other, target)
            assert busy.short == "TARGET_BUSY (already_leased)"

        async def acquired() -> bool:
            return (await claim(other, target)).data.get("state") == "succeeded"

        await until(acquired, 5.0)
        assert (await phone_of(other))["generation"] == target["generation"]


async def test_an_unused_lease_ends_and_its_use_is_refused_at_once() -> None:
    """A lease that nobody uses ends by the policy's limit; using it then is a typed error in one round trip."""
    async with a_place(idle_s=1) as world, agent(world) as qa, agent(world, "other") as other:
        target = await running(qa)
        lease = (await claim(qa, target)).result["leaseId"]

        async def lost() -> bool:
            return not (await owner(world, "ps"))["leases"]

        await until(lost)
        began = time.monotonic()
        late = await press(qa, target, lease, 1)
        assert (late.code, late.reason) == ("CONTROL_REVOKED", "lease_lost")
        assert time.monotonic() - began < 7.5, "half of what an input waits for its end"
        assert (await claim(other, target)).data["state"] == "succeeded"


async def test_work_in_flight_keeps_a_lease() -> None:
    """One input that takes longer than the idle limit: its lease is kept, and the next input is taken."""
    limit = 3
    client = ClientEntry(label="qa", devices=(PHONE,), lease_idle_s=limit)
    with opened_world(policy_text(client, phones=(PHONE,)), start=False) as world:
        plan = world.root / "faults.toml"
        plan.write_text(f'[[fault]]\nname = "slow_input"\ntimes = 1\nseconds = {limit + 1.5}\n', encoding="utf-8")
        await asyncio.to_thread(world.start, more={"PAPER_FAULTS": str(plan)})
        async with agent(world) as qa:
            target = await running(qa)
            lease = (await claim(qa, target)).result["leaseId"]
            began = time.monotonic()
            assert (await press(qa, target, lease, 1)).data["state"] == "succeeded"
            assert time.monotonic() - began > limit
            assert (await press(qa, target, lease, 2)).data["state"] == "succeeded"


async def test_a_busy_phone_names_an_owner_that_can_be_found_and_ended() -> None:
    """The refusal's owner is in `lomi ps`; revoking it frees the phone."""
    async with a_place() as world, agent(world, "other") as other, agent(world) as qa:
        target = await running(qa)
        assert (await claim(qa, target)).data["state"] == "succeeded"
        busy = await claim(other, target)
        held_by = busy.error["details"]["owner"]
        (row,) = [one for one in (await owner(world, "ps"))["leases"] if one["session"] == held_by]
        assert row["label"] == "qa"
        await owner(world, "revoke", name=held_by)
        assert (await claim(other, target)).data["state"] == "succeeded"


async def test_a_phone_that_died_is_told_to_its_holder() -> None:
    """The emulator is killed: the list says so, its generation is over, and input is refused as stale."""
    async with a_place() as world, agent(world) as qa:
        target = await running(qa)
        lease = (await claim(qa, target)).result["leaseId"]
        for pid, words in processes_that_name(world.root):
            if "emulator_images.paper" in words:
                os.kill(pid, signal.SIGKILL)

        async def ended() -> bool:
            row = await phone_of(qa)
            return row["generation"] is None and row["phase"] == "failed"

        await until(ended)
        late = await press(qa, target, lease, 1)
        assert (late.code, late.reason) == ("STALE_GENERATION", "generation_ended")
        assert (await owner(world, "ps"))["leases"] == []


async def test_the_last_words_of_a_failed_start_are_an_artifact() -> None:
    """An emulator that ends at once: the receipt names the cause and the artifact with its words, which are kept."""
    words = "qcow2: Image is corrupt; cannot be opened read/write"
    with opened_world(policy_text(ClientEntry(label="qa", devices=(PHONE,)), phones=(PHONE,)), start=False) as world:
        plan = world.root / "faults.toml"
        plan.write_text(f'[[fault]]\nname = "exit_early"\ntext = "{words}"\n', encoding="utf-8")
        await asyncio.to_thread(world.start, more={"PAPER_FAULTS": str(plan)})
        async with agent(world) as qa:
            panel = await panel_of(qa)
            failed = await qa.call("lomi_android_start", {**await qa.revised(**panel), "waitMs": 15000})
            assert failed.short == "receipt failed/none ARTIFACT_INVALID (avd_image_corrupt)", failed.raw
            kept = failed.result["details"]["evidenceArtifactId"]
            found = (await qa.ask("lomi_artifact_read", workspaceId=qa.workspace, artifactId=kept)).data["artifact"]
            assert (found["mediaType"], found["source"]["deviceId"]) == ("application/octet-stream", panel["deviceId"])
            (path,) = [one for one in world.home.rglob(f"*{kept}*") if one.is_file()]
            assert words in path.read_text(encoding="utf-8")


async def test_a_persons_takeover_lifts_what_is_held() -> None:
    """A finger is down when the person takes over: it is lifted at once, and the agent's next move is refused."""
    async with a_place() as world, agent(world) as qa:
        target = await running(qa)
        lease = (await claim(qa, target)).result["leaseId"]
        finger = {"type": "touch", "space": "hardware_display", "identifier": 0, "x": 100, "y": 900}
        assert (await press(qa, target, lease, 1, **finger, phase="down")).data["state"] == "succeeded"
        record = world.home / "devices" / "avd" / f"{PHONE}.avd" / "paper-journal.jsonl"

        def lifted() -> bool:
            return [row["kind"] for row in written_lines(record) if row["event"] == "motion"] == ["DOWN", "UP"]

        assert not lifted()
        await owner(world, "take", name=target["panelId"])
        await until(lifted, 5.0)
        late = await press(qa, target, lease, 2, **finger, phase="move")
        assert (late.code, late.reason) == ("CONTROL_REVOKED", "taken_over")
        assert (await claim(qa, target)).reason == "taken_over"
        await owner(world, "give_back", name=target["panelId"])
        assert (await claim(qa, target)).data["state"] == "succeeded"


async def test_two_fingers_are_lifted_by_a_takeover() -> None:
    """Two fingers go through the wire and the emulator's own channel to the phone; a takeover lifts both."""
    with opened_world(policy_text(ClientEntry(label="qa", devices=(PHONE,)), phones=(PHONE,)), start=False) as world:
        await asyncio.to_thread(world.start, more={"PAPER_GRPC": "1"})
        async with agent(world) as qa:
            target = await running(qa)
            lease = (await claim(qa, target)).result["leaseId"]
            for number in (0, 1):
                finger = {"type": "touch", "phase": "down", "space": "hardware_display", "x": 100 + 400 * number}
                done = await press(qa, target, lease, number + 1, **finger, y=900, identifier=number)
                assert done.data["state"] == "succeeded", done.raw
            record = world.home / "devices" / "avd" / f"{PHONE}.avd" / "paper-journal.jsonl"

            def fingers() -> list[tuple[object, object]]:
                rows = written_lines(record)
                return [(row["finger"], row["pressure"]) for row in rows if row["event"] == "motion"]

            assert fingers() == [(0, 1), (1, 1)]
            await owner(world, "take", name=target["panelId"])
            await until(lambda: fingers()[2:] == [(0, 0), (1, 0)], 5.0)
