"""Examples of the Android tools, on a simulated phone through real adb."""

from typing import Any

from harness import until
from harness.journal import written_lines

from guarantees.apk import imported_apk
from guarantees.examples import Arguments, example, other_revision, same_but
from guarantees.stage import OTHER_PHONE, PHONE, Actor, Stage

FORM = "lomi.paper.form"


async def _device(stage: Stage, actor: Actor) -> str:
    """The phone of this actor's grant."""
    if "device" not in actor.kept:
        listed = await actor.agent.ask("lomi_android_list", workspaceId=actor.agent.workspace)
        (device,) = listed.data["devices"]["items"]
        actor.kept["device"] = {"deviceId": device["deviceId"]}
    return str(actor.kept["device"]["deviceId"])


async def _generation(actor: Actor, device: str) -> str | None:
    listed = await actor.agent.ask("lomi_android_list", workspaceId=actor.agent.workspace)
    (row,) = [row for row in listed.data["devices"]["items"] if row["deviceId"] == device]
    return row["generation"] if row["phase"] == "running" else None


async def _panel(stage: Stage, actor: Actor) -> Arguments:
    """A panel of the phone."""
    kept = actor.kept.get("panel")
    if kept is None:
        opened = await actor.agent.do("lomi_android_open", await _open(stage, actor))
        kept = actor.kept["panel"] = {
            "workspaceId": actor.agent.workspace,
            "panelId": opened.result["panelId"],
            "deviceId": opened.result["deviceId"],
        }
    return dict(kept)


async def _running(stage: Stage, actor: Actor) -> Arguments:
    """A panel of the running phone, with its generation."""
    panel = await _panel(stage, actor)
    generation = await _generation(actor, panel["deviceId"])
    if generation is None:
        started = await actor.agent.do("lomi_android_start", {**await actor.agent.revised(), **panel})
        generation = started.result["generation"]
    return {**panel, "generation": generation}


async def _leased(stage: Stage, actor: Actor) -> Arguments:
    """The running phone and this actor's lease of it, with the next sequence."""
    running = await _running(stage, actor)
    kept = actor.kept.get("lease")
    if kept is None or kept["generation"] != running["generation"]:
        claim = {**await actor.agent.revised(), **running, "action": "claim"}
        claimed = await actor.agent.do("lomi_panel_control", claim)
        kept = actor.kept["lease"] = {"generation": running["generation"], "leaseId": claimed.result["leaseId"]}
    return {**running, "leaseId": kept["leaseId"]}


@example("lomi_android_list")
async def _list(stage: Stage, actor: Actor) -> Arguments:
    return {"workspaceId": actor.agent.workspace}


@example("lomi_android_open")
async def _open(stage: Stage, actor: Actor) -> Arguments:
    return await actor.agent.revised(deviceId=await _device(stage, actor))


async def _started(stage: Stage, actor: Actor) -> Arguments:
    return {**await _panel(stage, actor), **await actor.agent.revised()}


@example("lomi_android_start", shared=_started)
async def _start(stage: Stage, actor: Actor) -> Arguments:
    panel = await _panel(stage, actor)
    generation = await _generation(actor, panel["deviceId"])
    if generation is not None:
        stop = {**await actor.agent.revised(), **panel, "generation": generation}
        await actor.agent.do("lomi_android_stop", stop)
    return {**await actor.agent.revised(), **panel}


@example("lomi_android_stop")
async def _stop(stage: Stage, actor: Actor) -> Arguments:
    return {**await _running(stage, actor), **await actor.agent.revised()}


def _journal(stage: Stage, actor: Actor) -> list[dict[str, Any]]:
    name = OTHER_PHONE if actor.label == "other" else PHONE
    path = stage.world.home / "devices" / "avd" / f"{name}.avd" / "paper-journal.jsonl"
    return written_lines(path)


@example("lomi_android_input", vary=lambda given: {**given, "event": {"type": "navigation", "key": "back"}})
async def _input(stage: Stage, actor: Actor) -> Arguments:
    leased = await _leased(stage, actor)
    sequence = await _sequence(actor, leased)
    event = {"type": "navigation", "key": "home"}
    return {**leased, "retryEpoch": actor.agent.epoch, "inputSequence": sequence, "event": event}


async def _sequence(actor: Actor, leased: Arguments) -> str:
    """The next sequence of the lease: what a gap is told to be."""
    probe = {
        **leased,
        "retryEpoch": actor.agent.epoch,
        "inputSequence": str(2**53 - 1),
        "event": {"type": "navigation", "key": "home"},
    }

    async def next_one() -> str | None:
        said = await actor.agent.call("lomi_android_input", probe)
        if said.code == "REVISION_CONFLICT":
            return str(int(said.error["details"]["current"]) + 1)
        assert said.code == "TARGET_BUSY", said.raw
        return None

    return str(await until(next_one))


@example("lomi_android_snapshot")
async def _snapshot(stage: Stage, actor: Actor) -> Arguments:
    return await _running(stage, actor)


@example("lomi_android_screenshot")
async def _screenshot(stage: Stage, actor: Actor) -> Arguments:
    return await _running(stage, actor)


@example("lomi_android_logcat")
async def _logcat(stage: Stage, actor: Actor) -> Arguments:
    running = await _running(stage, actor)
    await actor.agent.do("lomi_android_launch", await _launch(stage, actor))
    return {**running, "packageName": FORM, "minPriority": "V", "limit": 10}


@example("lomi_android_launch", vary=other_revision)
async def _launch(stage: Stage, actor: Actor) -> Arguments:
    return {**await _running(stage, actor), **await actor.agent.revised(), "packageName": FORM}


@example("lomi_android_install_apk", vary=same_but(sha256="0" * 64))
async def _install(stage: Stage, actor: Actor) -> Arguments:
    return {**await _running(stage, actor), **await imported_apk(stage, actor), **await actor.agent.keyed()}


async def _inventory(actor: Actor) -> dict[str, Any]:
    action = {"type": "inventory"}
    said = await actor.agent.ask("lomi_android_setup_plan", workspaceId=actor.agent.workspace, action=action)
    found: dict[str, Any] = said.data["inventory"]
    return found


@example("lomi_android_setup_plan")
async def _setup_plan(stage: Stage, actor: Actor) -> Arguments:
    return {"workspaceId": actor.agent.workspace, "action": {"type": "inventory"}}


@example("lomi_android_setup_apply", vary=same_but(planRevision="0" * 64))
async def _setup_apply(stage: Stage, actor: Actor) -> Arguments:
    ask, where = actor.agent.ask, {"workspaceId": actor.agent.workspace}
    page = await ask("lomi_android_setup_plan", **where, action={"type": "catalog"})
    revision = page.data["catalog"]["catalogRevision"]
    action = {"type": "prepare", "catalogRevision": revision, "packages": []}
    plan = (await ask("lomi_android_setup_plan", **where, action=action)).data["prepared"]
    return await actor.agent.keyed(planId=plan["planId"], planRevision=plan["revision"])


async def _phones_named(stage: Stage, actor: Actor, given: Arguments) -> int:
    """Phones of the name that a call gave, by their files."""
    label = f"avd.ini.displayname={given['action']['name']}\n"
    folder = stage.world.home / "devices" / "sdk" / "avd"
    return sum(label in path.read_text() for path in folder.glob("*.avd/config.ini"))


def _renamed(given: Arguments) -> Arguments:
    return {**given, "action": {**given["action"], "name": "other"}}


@example("lomi_android_device_manage", effects=_phones_named, vary=_renamed)
async def _create(stage: Stage, actor: Actor) -> Arguments:
    hardware = {"ramMib": 1024, "cpuCount": 1, "dataGib": 2, "gpu": "auto", "quickBoot": False}
    action = {
        "type": "create",
        "expectedDevicesRevision": (await _inventory(actor))["devicesRevision"],
        "name": stage.fresh("made"),
        "image": "paper-36",
        "profile": "small_phone",
        "hardware": hardware,
    }
    return await actor.agent.keyed(action=action)
