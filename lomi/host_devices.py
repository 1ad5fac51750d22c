"""Part of the composition root: the images of the policy's devices as what the device library starts."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devices.spec import DeviceSpec, Display, Needs, Readiness
from lomi.broker.policy import DevicePolicy

_PAPER_READINESS = Readiness(stable_polls=2, poll_s=0.1, process_s=20, adb_s=20, boot_s=60)


def specs_for(
    state: Path, devices: Mapping[str, DevicePolicy], environment: Mapping[str, str]
) -> Callable[[Path], Sequence[DeviceSpec]]:
    """What `devices.adapter` asks for once it knows where the keys are; `devices` are keyed by device id."""

    def specs(user_home: Path) -> Sequence[DeviceSpec]:
        avd_home = state / "avd"
        avd_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [_spec(avd_home, user_home, device_id, device, environment) for device_id, device in devices.items()]

    return specs


def _spec(
    avd_home: Path, user_home: Path, device_id: str, device: DevicePolicy, environment: Mapping[str, str]
) -> DeviceSpec:
    api = device.image.removeprefix("paper-")
    _write_avd(avd_home, device.name, api)
    kept = {name: value for name, value in environment.items() if name in ("PATH", "LANG", "TMPDIR") or name.startswith("PAPER_")}
    places = {
        "HOME": str(user_home),
        "ANDROID_EMULATOR_HOME": str(user_home),
        "XDG_RUNTIME_DIR": str(user_home),
    }
    return DeviceSpec(
        device_id=device_id,
        name=device.name,
        command=(sys.executable, "-m", "emulator_images.paper"),
        avd_home=avd_home,
        display=Display(720, 1280, 320),
        environment=tuple({**kept, **places}.items()),
        needs=Needs(ram_bytes=64 << 20, disk_bytes=16 << 20),
        readiness=_PAPER_READINESS,
        simulated=True,
    )


def _write_avd(avd_home: Path, name: str, api: str) -> None:
    directory = avd_home / f"{name}.avd"
    directory.mkdir(mode=0o700, exist_ok=True)
    config = {"avd.ini.encoding": "UTF-8", "abi.type": "x86_64", "hw.lcd.width": "720", "hw.lcd.height": "1280", "hw.lcd.density": "320"}
    (directory / "config.ini").write_text("".join(f"{k}={v}\n" for k, v in config.items()), encoding="utf-8")
    (avd_home / f"{name}.ini").write_text(
        f"avd.ini.encoding=UTF-8\npath={directory}\npath.rel=avd/{name}.avd\ntarget=android-{api}\n", encoding="utf-8"
    )
