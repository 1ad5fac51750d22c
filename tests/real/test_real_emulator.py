"""The device library on Google's emulator: the assertions of the simulated phone, skipped unless a guest has booted."""

import itertools
import os
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devices.faults import BootFailed, EmulatorExited, LaunchRefused
from devices.fleet import open_fleet
from devices.hands import PointAt
from devices.phone import Phone
from devices.sdk.avds import Hardware, Image, config_of, display_of, write_avd
from devices.sdk.profiles import profile
from devices.sdk.tools import front_ends, installed_in
from devices.spec import UNBORN, DeviceSpec, Identity, Needs

SETTINGS = "com.android.settings"


def sdk_or_skip() -> tuple[Path, Image]:
    """The person's SDK, read only, and an installed system image of this machine's kind."""
    home = os.environ.get("ANDROID_HOME", "")
    if not home or front_ends(Path(home)).emulator is None:
        pytest.skip("ANDROID_HOME names no SDK with an emulator")
    abi = "arm64-v8a" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
    for found in reversed(installed_in(Path(home))):
        parts = found.path.split(";")
        if parts[0] == "system-images" and parts[-1] == abi:
            api = int(parts[1].removeprefix("android-").split("-")[0].split(".")[0])
            return Path(home), Image(found.path, found.version, api, abi, parts[2], "/".join(parts))
    pytest.skip(f"no {abi} system image in {home}")


@asynccontextmanager
async def booted(tmp: Path) -> AsyncIterator[Phone]:
    """A real device from a fresh AVD, or a skip with the reason why no guest booted."""
    sdk, image = sdk_or_skip()
    kind = profile("medium_phone")
    assert kind is not None
    config = config_of("lomi_real", "Lomi real", image, kind, Hardware())
    write_avd(tmp / "avd", "lomi_real", config, api=image.api)
    numbers = itertools.count(1)

    async def generation(device_id: str) -> str:
        return f"{device_id}-{next(numbers)}"

    async def store(identity: Identity) -> None:
        assert identity.process == UNBORN or identity.process.pid

    spec = DeviceSpec(
        device_id="real",
        name="lomi_real",
        command=(str(front_ends(sdk).emulator),),
        avd_home=tmp / "avd",
        display=display_of(config),
        environment=(("ANDROID_HOME", str(sdk)), ("ANDROID_SDK_ROOT", str(sdk))),
        arguments=("-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot", "-no-metrics", "-gpu", "swiftshader"),
        needs=Needs(ram_bytes=3 << 30, disk_bytes=8 << 30, kvm=True),
    )
    async with open_fleet(tmp / "f", next_generation=generation, on_identity=store) as fleet:
        phone = fleet.phone(spec)
        try:
            await phone.start()
        except (LaunchRefused, EmulatorExited, BootFailed) as fault:
            pytest.skip(f"no guest booted: {fault}")
        yield phone


@pytest.mark.deep
@pytest.mark.timeout(900)
async def test_a_real_device_is_started_looked_at_acted_on_and_stopped(tmp_path: Path) -> None:
    """Launch, snapshot, tap, capture in two rotations, and an observed stop on Google's emulator."""
    async with booted(tmp_path) as phone:
        await phone.packages.launch(SETTINGS)
        before = await phone.eyes.snapshot()
        assert before.tree.nodes
        assert 0 < len(before.outline().text.encode()) <= 1000
        await phone.hands.tap(PointAt(phone.spec.display.width // 2, phone.spec.display.height // 2))
        assert (await phone.eyes.observe(before, within=5)).snapshot is not None
        for turns in (1, 0):
            await phone.hands.rotate(turns)
            capture = await phone.eyes.capture()
            assert not capture.uniform
        await phone.stop()
        assert phone.phase == "stopped"
