"""Set-up and management through the wire: a real broker, a local mirror, phones that are made, booted and deleted."""

import asyncio
import contextlib
import hashlib
import io
import itertools
import os
import platform
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import (
    ALL_SCOPES,
    Agent,
    Answered,
    ClientEntry,
    World,
    agent,
    mcp_agent,
    opened_world,
    owner,
    policy_text,
    until,
)
from sdk_mirror import LICENCE, Mirror, a_mirror, package, zipped

from devices.sdk.catalogue import trimmed_licence
from devices.sdk.setup import Setup, host_kind
from devices.world import World as DeviceWorld

PLAN, APPLY, MANAGE = "lomi_android_setup_plan", "lomi_android_setup_apply", "lomi_android_device_manage"
DECIDED = (APPLY, MANAGE)
SCOPES = (*ALL_SCOPES, "android.setup", "android.manage")
IMAGE = "system-images;android-34;aosp_atd;x86_64"
HARDWARE = {"ramMib": 1024, "cpuCount": 1, "dataGib": 2, "gpu": "auto", "quickBoot": False}
DIGEST = hashlib.sha1(trimmed_licence(LICENCE).encode()).hexdigest()
SYSTEM = zipped({"system.img": b"not Android" + os.urandom(1 << 15), "build.prop": b"x=1\n"}, top="x86_64")
"""Large enough that a byte every five milliseconds takes longer than any test."""


def an_emulator(words: bytes) -> bytes:
    """An archive whose `emulator` can be executed, and ends at once."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        entry = zipfile.ZipInfo("emulator/emulator")
        entry.external_attr = 0o100755 << 16
        archive.writestr(entry, b"#!/bin/sh\necho " + words + b" >&2\nexit 1\n")
    return out.getvalue()


def client(label: str = "qa", *, decide: Sequence[str] = DECIDED, devices: Sequence[str] = ()) -> ClientEntry:
    """An entry that proves the token that is its label."""
    return ClientEntry(
        label=label,
        scopes=SCOPES,
        devices=devices,
        decide=decide,
        token_sha256=hashlib.sha256(label.encode()).hexdigest(),
    )


@contextlib.asynccontextmanager
async def a_place(*clients: ClientEntry) -> AsyncIterator[tuple[World, Mirror]]:
    """A broker whose repository is a local mirror with an emulator, a system image and a preview."""
    emulator, preview = an_emulator(b"one"), an_emulator(b"preview")
    async with a_mirror() as mirror:
        mirror.files |= {"/emulator.zip": emulator, "/preview.zip": preview, "/image.zip": SYSTEM}
        mirror.publish(
            package("emulator", emulator, "emulator.zip", version="37.1.11"),
            package("emulator", preview, "preview.zip", version="37.2.5", channel=2),
            package(IMAGE, SYSTEM, "image.zip", version="7", depends="emulator"),
        )
        with opened_world(policy_text(*(clients or (client(),))), start=False) as world:
            await asyncio.to_thread(world.start, more={"LOMI_ANDROID_REPOSITORY": mirror.url})
            yield world, mirror


async def inventory(qa: Agent) -> dict[str, Any]:
    """What is there."""
    return (await qa.ask(PLAN, workspaceId=qa.workspace, action={"type": "inventory"})).data["inventory"]


async def prepared(qa: Agent, *wanted: tuple[str, str], tools: bool = False) -> dict[str, Any]:
    """A plan of the present catalogue."""
    page = await qa.ask(PLAN, workspaceId=qa.workspace, action={"type": "catalog", "refresh": True})
    action = {
        "type": "prepare",
        "catalogRevision": page.data["catalog"]["catalogRevision"],
        "packages": [{"id": name, "revision": revision} for name, revision in wanted],
        "prepareTools": tools,
    }
    return (await qa.ask(PLAN, workspaceId=qa.workspace, action=action)).data["prepared"]


async def apply(qa: Agent, plan: dict[str, Any], **more: Any) -> Answered:
    """Ask for a plan to be carried out."""
    given = await qa.keyed(planId=plan["planId"], planRevision=plan["revision"], waitMs=15000, **more)
    return await qa.call(APPLY, given)


async def manage(qa: Agent, **action: Any) -> Answered:
    """Ask for one change."""
    return await qa.call(MANAGE, await qa.keyed(action=action, waitMs=15000))


async def created(qa: Agent, name: str = "Phone one", image: str = "paper-36") -> tuple[str, Answered]:
    """A new phone's id."""
    revision = (await inventory(qa))["devicesRevision"]
    said = await manage(
        qa,
        type="create",
        expectedDevicesRevision=revision,
        name=name,
        image=image,
        profile="small_phone",
        hardware=HARDWARE,
    )
    assert said.data.get("state") == "succeeded", said.raw
    return said.result["deviceId"], said


async def started(qa: Agent, device: str) -> tuple[dict[str, Any], Answered]:
    """The panel of a phone, and the answer to its start."""
    opened = await qa.do("lomi_android_open", await qa.revised(deviceId=device))
    panel = {"panelId": opened.result["panelId"], "deviceId": device}
    return panel, await qa.call("lomi_android_start", {**await qa.revised(**panel), "waitMs": 15000})


async def test_a_paper_phone_is_created_booted_changed_wiped_and_deleted() -> None:
    """A phone made by a session joins the fleet in its sight alone; every change waits until it is stopped."""
    async with (
        a_place(client(), client("other")) as (world, _),
        agent(world, token="qa") as qa,
        agent(world, "other", token="other") as other,
    ):
        assert not await marked(other)
        device, made = await created(qa)
        assert await marked(qa)
        (row,) = (await inventory(qa))["devices"]
        assert (row["deviceId"], row["image"], row["profile"]) == (device, "paper-36", "small_phone")
        assert made.result["devicesRevision"] == (await inventory(qa))["devicesRevision"]
        assert (await inventory(other))["devices"] == []
        assert [row["title"] for row in (await owner(world, "ps"))["resources"]] == ["Phone one"]
        unseen = await manage(
            other,
            type="delete",
            expectedDevicesRevision=made.result["devicesRevision"],
            deviceId=device,
            confirmation="Phone one",
        )
        assert (unseen.code, unseen.error["field"]) == ("TARGET_NOT_FOUND", "/action/deviceId")
        panel, running = await started(qa, device)
        generation = running.result["generation"]
        seen = await qa.ask("lomi_android_snapshot", workspaceId=qa.workspace, generation=generation, **panel)
        assert seen.data["nodes"]
        listed = await qa.ask("lomi_android_list", workspaceId=qa.workspace)
        (shown,) = listed.data["devices"]["items"]
        assert (shown["name"], shown["simulated"], shown["phase"]) == ("Phone one", True, "running")
        given = {"expectedDevicesRevision": made.result["devicesRevision"], "deviceId": device}
        busy = await manage(qa, type="wipe", **given, generation=generation, confirmation="Phone one")
        assert (busy.code, busy.reason) == ("TARGET_BUSY", "phone_running")
        stop = {**await qa.revised(**panel), "generation": generation}
        await qa.do("lomi_android_stop", stop)
        stale = await manage(qa, type="wipe", **given, generation=generation, confirmation="Phone one")
        assert (stale.code, stale.reason) == ("STALE_GENERATION", "generation_ended"), stale.raw
        wrong = await manage(qa, type="wipe", **given, confirmation="phone one")
        assert wrong.short == "receipt failed/none REVISION_CONFLICT (confirmation_wrong)"
        folder = next((world.home / "devices" / "sdk" / "avd").glob("*.avd"))
        assert (folder / "paper-journal.jsonl").exists()
        assert (await manage(qa, type="wipe", **given, confirmation="Phone one")).data["state"] == "succeeded"
        assert [path.name for path in folder.iterdir()] == ["config.ini"]
        larger = {**HARDWARE, "dataGib": 3}
        fixed = await manage(qa, type="modify", **given, name="Two", profile="pixel_7", hardware=larger)
        assert fixed.short == "receipt failed/none UNSUPPORTED_CAPABILITY (data_size_fixed)"
        changed = await manage(qa, type="modify", **given, name="Two", profile="pixel_7", hardware=HARDWARE)
        outdated = await manage(qa, type="delete", **given, confirmation="Two")
        assert outdated.short == "receipt failed/none REVISION_CONFLICT (devices_changed)"
        _, again = await started(qa, device)
        listed = await qa.ask("lomi_android_list", workspaceId=qa.workspace)
        (shown,) = listed.data["devices"]["items"]
        assert (shown["name"], shown["display"]) == ("Two", [1080, 2400])
        assert again.result["generation"] != generation
        stop = {**await qa.revised(**panel), "generation": again.result["generation"]}
        await qa.do("lomi_android_stop", stop)
        given["expectedDevicesRevision"] = changed.result["devicesRevision"]
        gone = await manage(qa, type="delete", **given, confirmation="Two")
        assert gone.data["state"] == "succeeded"
        assert not folder.exists()
        listed = await qa.ask("lomi_android_list", workspaceId=qa.workspace)
        assert listed.data["devices"]["items"] == []
        assert not await marked(qa)


async def marked(asker: Agent) -> bool:
    """Whether status says that phones are simulated."""
    said = (await asker.ask("lomi_status")).data["limitations"]
    return any("SIMULATED" in line for line in said)


async def test_a_created_phone_is_there_for_the_next_broker() -> None:
    """The book outlives its broker, and a grant of every device sees what an earlier session made."""
    async with a_place(client(), client("every", devices=("*",))) as (world, _):
        async with agent(world, token="qa") as qa:
            device, _ = await created(qa)
        await asyncio.to_thread(world.stop)
        await asyncio.to_thread(world.start)
        async with agent(world, token="qa") as qa, agent(world, "every", token="every") as every:
            assert (await inventory(qa))["devices"] == []
            _, running = await started(every, device)
            assert running.result["ready"] is True


async def test_a_plan_is_shown_consented_to_and_installed() -> None:
    """Catalogue by pages, exact plan, verified install; the image makes a phone that says why it can't run here."""
    async with a_place() as (world, mirror), agent(world, token="qa") as qa:
        first = await qa.ask(PLAN, workspaceId=qa.workspace, action={"type": "catalog", "limit": 2})
        page = first.data["catalog"]
        assert ([row["id"] for row in page["packages"]], page["nextOffset"]) == (["emulator", "emulator"], 2)
        assert page["packages"][0]["url"] == mirror.url + "emulator.zip"
        following = {"type": "catalog", "offset": 2, "expectedCatalogRevision": page["catalogRevision"]}
        rest = (await qa.ask(PLAN, workspaceId=qa.workspace, action=following)).data["catalog"]
        assert ([row["id"] for row in rest["packages"]], rest["nextOffset"]) == ([IMAGE], None)
        assert rest["packages"][0]["dependencies"] == ["emulator"]
        other = {**following, "expectedCatalogRevision": "0" * 64}
        assert (await qa.call(PLAN, {"workspaceId": qa.workspace, "action": other})).reason == "catalog_changed"
        plan = await prepared(qa, (IMAGE, "7"))
        assert [(row["id"], row["revision"]) for row in plan["downloads"]] == [("emulator", "37.1.11"), (IMAGE, "7")]
        assert plan["licenses"] == [{"id": "sim-license", "digest": DIGEST}]
        assert plan["expiresInSeconds"] == 1800
        assert not any(path.endswith(".zip") for path, _ in mirror.requests)
        changed = await apply(qa, {**plan, "revision": "0" * 64})
        assert changed.short == "receipt failed/none REVISION_CONFLICT (plan_changed)"
        done = await apply(qa, plan)
        assert done.data["state"] == "succeeded", done.raw
        sdk = world.home / "devices" / "sdk" / "sdk"
        assert DIGEST in (sdk / "licenses" / "sim-license").read_text()
        found = await inventory(qa)
        assert found["manifestRevision"] == done.result["manifestRevision"]
        assert {row["id"] for row in found["installed"]} == {"emulator", IMAGE}
        used_up = await apply(qa, plan)
        assert used_up.short == "receipt failed/none TARGET_NOT_FOUND (plan_unknown)"
        device, _ = await created(qa, image=IMAGE)
        config = next((world.home / "devices" / "sdk" / "avd").glob("*.avd/config.ini")).read_text()
        assert f"image.sysdir.1={sdk}/system-images/android-34/aosp_atd/x86_64/" in config
        _, start = await started(qa, device)
        assert start.data["state"] == "failed", start.raw
        assert start.result["reason"] in ("no_kvm", "no_memory", "no_space", "emulator_exited"), start.raw
        in_use = await manage(
            qa, type="remove_package", packageId=IMAGE, expectedManifestRevision=found["manifestRevision"]
        )
        assert in_use.short == "receipt failed/none TARGET_BUSY (package_in_use)"


async def test_a_newer_package_can_be_rolled_back_and_removed() -> None:
    """The one earlier copy comes back, once; then the package goes, and each step needs the manifest that was seen."""
    async with a_place() as (world, _), agent(world, token="qa") as qa:
        assert (await apply(qa, await prepared(qa, ("emulator", "37.1.11")))).data["state"] == "succeeded"
        newer = await apply(qa, await prepared(qa, ("emulator", "37.2.5")))
        program = world.home / "devices" / "sdk" / "sdk" / "emulator" / "emulator"
        assert "preview" in program.read_text()
        assert (await inventory(qa))["rollbacks"] == [{"id": "emulator", "revision": "37.1.11"}]
        revision = newer.result["manifestRevision"]
        back = await manage(qa, type="rollback_package", packageId="emulator", expectedManifestRevision=revision)
        assert back.data["state"] == "succeeded", back.raw
        assert "one" in program.read_text()
        stale = await manage(qa, type="remove_package", packageId="emulator", expectedManifestRevision=revision)
        assert stale.short == "receipt failed/none REVISION_CONFLICT (devices_changed)"
        revision = back.result["manifestRevision"]
        none = await manage(qa, type="rollback_package", packageId="emulator", expectedManifestRevision=revision)
        assert none.short == "receipt failed/none TARGET_NOT_FOUND (no_rollback)"
        gone = await manage(qa, type="remove_package", packageId="emulator", expectedManifestRevision=revision)
        assert gone.data["state"] == "succeeded"
        assert not program.exists()
        assert (await inventory(qa))["installed"] == []


async def test_one_job_at_a_time_and_a_download_can_be_cancelled() -> None:
    """While a download runs every other job is refused; cancelling it leaves nothing installed, and it can go on."""
    async with a_place() as (world, mirror), agent(world, token="qa") as qa:
        mirror.slow.add("/image.zip")
        plan = await prepared(qa, (IMAGE, "7"))
        given = await qa.keyed(planId=plan["planId"], planRevision=plan["revision"], waitMs=0)
        running = (await qa.call(APPLY, given)).data
        await until(lambda: mirror.trickled > 20)
        busy = await manage(qa, type="cleanup")
        assert (busy.code, busy.reason) == ("TARGET_BUSY", "management_busy")
        named = {"operationId": running["operationId"]}
        assert (await qa.call("lomi_operation_cancel", named)).code is None
        ended = await qa.ask("lomi_operation_get", **named, waitMs=15000)
        assert (ended.data["state"], ended.data["effectState"]) == ("cancelled", "partial")
        assert [row["id"] for row in (await inventory(qa))["installed"]] == ["emulator"]
        mirror.hurry.set()
        assert (await apply(qa, plan)).data["state"] == "succeeded"
        assert mirror.requests[-1][1] != "", "the second try goes on where the first one stopped"


async def test_a_wrong_checksum_installs_nothing() -> None:
    """What does not match the catalogue is refused before it is unpacked."""
    async with a_place() as (world, mirror), agent(world, token="qa") as qa:
        mirror.files["/emulator.zip"] = mirror.files["/emulator.zip"][:-1] + b"!"
        said = await apply(qa, await prepared(qa, ("emulator", "37.1.11")))
        assert said.short == "receipt failed/none ARTIFACT_INVALID (download_corrupt)"
        assert not (world.home / "devices" / "sdk" / "sdk" / "emulator").exists()


async def test_without_a_decision_nothing_is_done() -> None:
    """A policy that does not take the decision settles both tools cancelled before anything is fetched or made."""
    async with a_place(client(decide=())) as (world, mirror), agent(world, token="qa") as qa:
        said = await apply(qa, await prepared(qa, ("emulator", "37.1.11")))
        assert said.short == "receipt cancelled/none SCOPE_DENIED (not_decided_here)"
        revision = (await inventory(qa))["devicesRevision"]
        create = {
            "type": "create",
            "expectedDevicesRevision": revision,
            "name": "One",
            "image": "paper-36",
            "profile": "small_phone",
            "hardware": HARDWARE,
        }
        refused = await manage(qa, **create)
        assert refused.short == "receipt cancelled/none SCOPE_DENIED (not_decided_here)"
        assert not any(path.endswith(".zip") for path, _ in mirror.requests)
        assert (await inventory(qa))["devices"] == []


async def test_damaged_metadata_is_told_and_restored() -> None:
    """A damaged book stops every change until its backup is put back; the list of packages can also be reset."""
    async with a_place() as (world, _), agent(world, token="qa") as qa:
        await created(qa, "One")
        await created(qa, "Two")
        for file in ("devices.json", "manifest.json"):
            path = world.home / "devices" / "sdk" / file
            path.write_bytes(b"{half")
            path.chmod(0o600)
        assert (await manage(qa, type="cleanup")).short.startswith("receipt failed")
        found = await inventory(qa)
        assert (found["devicesRevision"], found["manifestRevision"]) == (None, None)
        damage = {row["file"]: row for row in found["recovery"]}
        assert set(damage) == {"devices", "preferences"}
        digest = damage["devices"]["digest"]
        reset = await manage(qa, type="restore_metadata", file="devices", digest=digest, reset=True)
        assert reset.short == "receipt failed/none UNSUPPORTED_CAPABILITY (reset_unsupported)"
        back = await manage(qa, type="restore_metadata", file="devices", digest=digest, reset=False)
        assert back.data["state"] == "succeeded", back.raw
        digest = damage["preferences"]["digest"]
        reset = await manage(qa, type="restore_metadata", file="preferences", digest=digest, reset=True)
        assert reset.data["state"] == "succeeded", reset.raw
        found = await inventory(qa)
        assert [row["name"] for row in found["devices"]] == ["One"]
        assert found["recovery"] == []
        assert (await manage(qa, type="cleanup")).data["state"] == "succeeded"
        assert len(list((world.home / "devices" / "sdk" / "avd").glob("*.avd"))) == 1


async def test_an_interrupted_swap_is_told_and_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who died between two folders leaves a journal: all changes wait for `recover`, which makes one whole package."""

    class CrashError(BaseException):
        pass

    async with a_place() as (world, mirror):
        async with agent(world, token="qa") as qa:
            assert (await apply(qa, await prepared(qa, ("emulator", "37.1.11")))).data["state"] == "succeeded"
        await asyncio.to_thread(world.stop)
        kind = host_kind(platform.system(), platform.machine())
        setup = Setup(world.home / "devices" / "sdk", host=kind, world=DeviceWorld(), base_url=mirror.url)
        await setup.open()
        plan = await setup.prepare((await setup.catalogue()).revision, (("emulator", "37.2.5"),))
        rename, seen = Path.rename, itertools.count(1)

        def crashing(path: Path, target: Path) -> Path:
            if next(seen) == 2:
                raise CrashError
            return rename(path, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", crashing)
            patch.setattr("devices.sdk.setup.shutil.rmtree", lambda *_a, **_k: None)
            with pytest.raises(CrashError):
                await setup.apply(plan, frozenset((DIGEST,)))
        await asyncio.to_thread(world.start)
        async with agent(world, token="qa") as qa:
            assert (await inventory(qa))["recoveryRequired"] is True
            refused = await manage(qa, type="cleanup")
            assert (refused.data["state"], refused.result["reason"]) == ("failed", "recovery_needed")
            assert (await manage(qa, type="recover")).data["state"] == "succeeded"
            found = await inventory(qa)
            assert (found["recoveryRequired"], [row["revision"] for row in found["installed"]]) == (False, ["37.2.5"])
            assert "preview" in (world.home / "devices" / "sdk" / "sdk" / "emulator" / "emulator").read_text()


async def test_an_mcp_client_hears_how_far_a_setup_has_come() -> None:
    """Through the real helper: each package of a plan is told while it is fetched, then the receipt comes."""
    async with a_place() as (world, _), mcp_agent(world, LOMI_CLIENT_TOKEN="qa") as helper:
        listed = (await helper.call_tool("lomi_workspace_list", {})).structured_content
        where = {"workspaceId": listed["data"]["items"][0]["id"]}
        bound = (await helper.call_tool("lomi_connect", where)).structured_content["data"]
        page = await helper.call_tool(PLAN, {**where, "action": {"type": "catalog"}})
        action = {
            "type": "prepare",
            "catalogRevision": page.structured_content["data"]["catalog"]["catalogRevision"],
            "packages": [{"id": IMAGE, "revision": "7"}],
        }
        plan = (await helper.call_tool(PLAN, {**where, "action": action})).structured_content["data"]["prepared"]
        keyed = {**where, "retryEpoch": bound["retryEpoch"], "requestKey": "one", "waitMs": 15000}
        told: list[str] = []

        async def progress(_: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        given = {**keyed, "planId": plan["planId"], "planRevision": plan["revision"]}
        done = await helper.call_tool(APPLY, given, progress_callback=progress)
        assert done.structured_content["data"]["state"] == "succeeded", done.structured_content
        assert any(f"{IMAGE} 7, 2 of 2" in words for words in told), told


async def test_a_persons_own_sdk_is_used_and_never_written(tmp_path: Path) -> None:
    """With ANDROID_HOME its images and its emulator serve phones of ours; not one file of it changes."""
    own = tmp_path / "sdk"
    image, emulator = own.joinpath(*IMAGE.split(";")), own / "emulator"
    for folder, path, major in ((image, IMAGE, 9), (emulator, "emulator", 36)):
        folder.mkdir(parents=True)
        (folder / "package.xml").write_text(
            f'<r><localPackage path="{path}"><revision><major>{major}</major></revision>'
            "<display-name>own</display-name></localPackage></r>"
        )
    (emulator / "emulator").write_text("#!/bin/sh\nexit 1\n")
    (emulator / "emulator").chmod(0o755)
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    with opened_world(policy_text(client()), start=False) as world:
        await asyncio.to_thread(world.start, more={"ANDROID_HOME": str(own)})
        async with agent(world, token="qa") as qa:
            device, _ = await created(qa, image=IMAGE)
            (row,) = (await inventory(qa))["devices"]
            assert (row["image"], row["imageRevision"]) == (IMAGE, "9")
            config = next((world.home / "devices" / "sdk" / "avd").glob("*.avd/config.ini")).read_text()
            assert f"image.sysdir.1={image}/" in config
            _, start = await started(qa, device)
            assert start.result["reason"] in ("no_kvm", "no_memory", "no_space", "emulator_exited"), start.raw
    assert {path: path.stat().st_mtime_ns for path in own.rglob("*")} == before
