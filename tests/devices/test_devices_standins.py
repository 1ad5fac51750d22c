"""Contract tests: the way of a person's SDK, with stand-ins for Google's tools and a local mirror."""

import io
import zipfile
from pathlib import Path

import pytest
from device_rig import DISPLAY, FAST, Stored, a_fleet
from sdk_mirror import a_mirror, package, zipped
from standin_sdk import EMULATOR, command_line_tools

from devices.sdk import tools
from devices.sdk.faults import SetupFailed
from devices.spec import DeviceSpec, StopRule
from devices.world import World

IMAGE = "system-images;android-34;aosp_atd;x86_64"
SYSTEM = zipped({"system.img": b"not Android"}, top="x86_64")


def emulator_archive() -> bytes:
    """The archive of an emulator that can be executed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        entry = zipfile.ZipInfo("emulator/emulator")
        entry.external_attr = 0o100755 << 16
        archive.writestr(entry, EMULATOR)
    return out.getvalue()


@pytest.mark.parametrize("front_end", ["sdkmanager", "android"])
async def test_a_phone_is_made_by_googles_tools_and_lives_as_ours(tmp_path: Path, front_end: str) -> None:
    """Installed by either front end, made by avdmanager, run by the SDK's emulator: started, seen, observed gone."""
    sdk, avd_home, emulator = tmp_path / "sdk", tmp_path / "avd", emulator_archive()
    avd_home.mkdir()
    command_line_tools(sdk, front_end, "avdmanager")
    (sdk / "licenses").mkdir()
    (sdk / "licenses" / "sim-license").write_text("\nagreed to before\n")
    ends, world = tools.front_ends(sdk), World()
    async with a_mirror() as mirror:
        environment = {"PATH": "/usr/bin:/bin", "SDK_TEST_BASE_URL": mirror.url}
        mirror.files |= {"/e.zip": emulator, "/s.zip": SYSTEM, "/bad.zip": SYSTEM, "/cut.zip": SYSTEM[:-9]}
        mirror.publish(
            package("emulator", emulator, "e.zip", version="36"),
            package(IMAGE, SYSTEM, "s.zip", version="7"),
            package("bad", SYSTEM, "bad.zip", checksum="1" * 40),
            package("cut", SYSTEM, "cut.zip"),
            package("preview", SYSTEM, "s.zip", channel=3),
        )
        for name in ("bad", "cut", "preview"):
            with pytest.raises(SetupFailed) as failure:
                await tools.install_with_tool(sdk, ends, name, environment=environment, world=world)
            assert failure.value.reason == "install_failed"
            assert ("checksum" in failure.value.evidence) == (name != "preview")
            assert not (sdk / name).exists()
        for name, version in (("emulator", "36"), (IMAGE, "7")):
            found = await tools.install_with_tool(sdk, ends, name, environment=environment, world=world)
            assert (found.path, found.version) == (name, version)
    await tools.create_with_tool(
        sdk, ends, avd_home, name="made", image=IMAGE, device="pixel", environment=environment, world=world
    )
    emulator_path = tools.front_ends(sdk).emulator
    assert emulator_path is not None
    spec = DeviceSpec(
        device_id="id-made",
        name="made",
        command=(str(emulator_path),),
        avd_home=avd_home,
        display=DISPLAY,
        environment=(("PATH", "/usr/bin:/bin"), ("ANDROID_HOME", str(sdk))),
        arguments=("-no-window", "-no-audio", "-gpu", "swiftshader_indirect", "-no-snapshot"),
        readiness=FAST,
        stopping=StopRule(exit_s=5.0),
        grpc=True,
    )
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        phone = fleet.phone(spec)
        running = await phone.start()
        assert running.identity == stored.identities[0]
        assert (await phone.eyes.snapshot()).tree.nodes
        assert (await phone.eyes.capture()).full.width == DISPLAY.width
        assert phone.without_engine is None
        await phone.stop()
        assert phone.phase == "stopped"
        assert list((avd_home / "made.avd").glob("*.lock")) == []


async def test_a_licence_that_nobody_agreed_to_is_not_agreed_to_for_them(tmp_path: Path) -> None:
    """Sdkmanager asks on its standard input; nothing answers yes there, and nothing is installed."""
    sdk = tmp_path / "sdk"
    command_line_tools(sdk, "sdkmanager")
    async with a_mirror() as mirror:
        mirror.files["/s.zip"] = SYSTEM
        mirror.publish(package(IMAGE, SYSTEM, "s.zip"))
        environment = {"PATH": "/usr/bin:/bin", "SDK_TEST_BASE_URL": mirror.url}
        with pytest.raises(SetupFailed) as failure:
            await tools.install_with_tool(
                sdk, tools.front_ends(sdk), IMAGE, environment=environment, world=World(), within=20
            )
    assert "license is not accepted" in failure.value.evidence
    assert not (sdk / "system-images").exists()
