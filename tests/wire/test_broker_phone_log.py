"""The log of an app over the wire: of one that runs, and of one that has just ended."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, opened_world, policy_text

from devices.adb.shell import run_once
from devices.adb.wire import AdbClient

TALK = "lomi.test.talk"
TALKER = f"""
package = "{TALK}"
label = "Talk"
[[screens]]
activity = ".Main"
items = [
    {{ kind = "button", id = "say", text = "Say", tap = [{{ do = "log", target = "Talk", value = "hello" }}] }},
    {{ kind = "button", id = "crash", text = "Crash", tap = [{{ do = "crash", value = "boom" }}] }},
]
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker with one phone that has the talker."""
    apps = Path(tempfile.mkdtemp(prefix="la-"))
    (apps / "talk.toml").write_text(TALKER)
    client = ClientEntry(label="qa", scopes=ALL_SCOPES, devices=("*",))
    try:
        with opened_world(policy_text(client, phones=("phone-1",)), always={"PAPER_APPS": str(apps)}) as made:
            yield made
    finally:
        shutil.rmtree(apps)


async def running_phone(qa: Agent) -> dict[str, Any]:
    """The phone, started and leased: what calls on it name."""
    (device,) = (await qa.ask("lomi_android_list", workspaceId=qa.workspace)).data["devices"]["items"]
    named = {"deviceId": device["deviceId"]}
    named["panelId"] = (await qa.do("lomi_android_open", await qa.revised(**named))).result["panelId"]
    named["generation"] = (await qa.do("lomi_android_start", await qa.revised(**named))).result["generation"]
    claimed = await qa.do("lomi_panel_control", await qa.revised(**named, action="claim"))
    return {"workspaceId": qa.workspace, **named, "leaseId": claimed.result["leaseId"]}


async def on_phone(world: World, line: str) -> str:
    """What a test does to the phone behind the broker's back."""
    (socket,) = world.home.rglob("adb.sock")
    client = AdbClient(socket)
    (serial,) = [row.split()[0] for row in (await client.ask("host:devices")).splitlines()]
    return (await run_once(client, serial, line, within=10)).text


async def log_of(qa: Agent, phone: dict[str, Any], **more: Any) -> tuple[dict[str, Any], str]:
    """A page as data and as a model reads it."""
    named = {name: value for name, value in phone.items() if name != "leaseId"}
    asked = {**named, "packageName": TALK, "minPriority": "V", "limit": 64, **more}
    said = await qa.client.call_raw("lomi_android_logcat", msgspec.json.encode(asked))
    envelope = msgspec.json.decode(said.structured)
    return envelope.get("data", envelope), said.text or ""


async def tap(qa: Agent, phone: dict[str, Any], number: int, label: str) -> list[str]:
    """Tap a button by its words; the lines of the observation."""
    named = {name: value for name, value in phone.items() if name != "leaseId"}
    seen = (await qa.ask("lomi_android_snapshot", **named, form="elements")).data
    ref = next(str(node["id"]) for node in seen["nodes"] if node["text"] == label)
    event = {"type": "tap", "at": {"snapshotId": seen["snapshotId"], "ref": ref}}
    given = {**phone, "retryEpoch": qa.epoch, "inputSequence": str(number), "event": event, "waitMs": 15_000}
    return list((await qa.do("lomi_android_input", given)).data["observation"]["lines"])


async def test_the_log_of_an_app_that_crashed_is_there_with_its_crash(world: World) -> None:
    """Its last lines, the exception, and that the process has ended; also page by page, and until it runs anew."""
    async with agent(world) as qa:
        phone = await running_phone(qa)
        named = {name: value for name, value in phone.items() if name not in {"leaseId", "workspaceId"}}
        await qa.do("lomi_android_launch", await qa.revised(**named, packageName=TALK))
        await tap(qa, phone, 1, "Say")
        alive, text = await log_of(qa, phone)
        assert "ended" not in text
        assert any("boom" in line for line in await tap(qa, phone, 2, "Crash"))
        log, text = await log_of(qa, phone)
        assert log["processId"] == alive["processId"]
        assert log["lines"][: len(alive["lines"])] == alive["lines"]
        told = [line.rpartition(": ")[2] for line in log["lines"]]
        assert told[told.index("hello") + 1 :][:2] == ["--------- beginning of crash", "main"]
        assert "boom" in told
        assert told[-1] == f"--------- process {log['processId']} has ended"
        assert text.startswith(f"process {log['processId']} of {TALK} has ended: ")
        paged, page = [], {"nextCursor": None}
        while not paged or page["nextCursor"]:
            page, text = await log_of(qa, phone, limit=2, cursor=page["nextCursor"])
            assert text.startswith("process ")
            paged += page["lines"]
        assert paged == log["lines"]
        assert not any("hello" in line for line in (await log_of(qa, phone, minPriority="E"))[0]["lines"])
        await on_phone(world, f"am start -W -n {TALK}/.Main")
        anew, text = await log_of(qa, phone)
        assert anew["processId"] != log["processId"]
        assert "ended" not in text


async def test_a_crash_that_nobody_saw_is_found_and_a_stopped_app_has_no_process(world: World) -> None:
    """Started and crashed behind the broker's back: the crash log leads to it. Stopped on purpose: no_process."""
    async with agent(world) as qa:
        phone = await running_phone(qa)
        await on_phone(world, f"am force-stop {TALK}; am start -W -n {TALK}/.Main")
        process_id = int(await on_phone(world, f"pidof {TALK}"))
        await on_phone(world, f"cmd lomi_agent crash {TALK}")
        log, _ = await log_of(qa, phone)
        assert log["processId"] == process_id
        assert any("FATAL EXCEPTION" in line for line in log["lines"])
        await on_phone(world, f"am force-stop {TALK}")
        assert (await log_of(qa, phone))[0]["reason"] == "no_process"
