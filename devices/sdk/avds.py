"""AVDs as files: written directly, read back, and judged by what is on disk."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from devices.sdk.faults import ManageRefused
from devices.sdk.profiles import Profile
from devices.spec import Display

_GPU = {"auto": "auto", "host": "host", "software": "swiftshader_indirect"}
_KEPT_BY_WIPE = frozenset(("config.ini",))


class Hardware(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a device is given: MiB of memory, processors, GiB of storage, and how it draws and boots."""

    ram_mib: int = 2048
    cpu_count: int = 2
    data_gib: int = 6
    gpu: str = "auto"
    quick_boot: bool = False

    def check(self) -> "Hardware":
        """Itself, when every value is one that can be run.

        Raises:
            ManageRefused: reason bad_hardware with the field's name.
        """
        bounds = {"ram_mib": (512, 16384), "cpu_count": (1, 16), "data_gib": (2, 64)}
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise ManageRefused("bad_hardware", f"{name} is outside {low}..{high}", fields={"field": name})
        if self.gpu not in _GPU:
            raise ManageRefused("bad_hardware", "gpu is auto, host or software", fields={"field": "gpu"})
        return self


class Image(msgspec.Struct, frozen=True):
    """A system image a device can boot; `folder` is its place in the SDK, if it has one."""

    id: str
    revision: str
    api: int
    abi: str
    tag: str
    folder: str | None = None
    simulated: bool = False


def config_of(name: str, label: str, image: Image, profile: Profile, hardware: Hardware) -> dict[str, str]:
    """The keys of `config.ini`."""
    arch = {"x86_64": "x86_64", "arm64-v8a": "arm64", "x86": "x86"}.get(image.abi, image.abi)
    keys = {
        "AvdId": name,
        "PlayStore.enabled": "false",
        "abi.type": image.abi,
        "avd.ini.displayname": label,
        "avd.ini.encoding": "UTF-8",
        "disk.dataPartition.size": f"{hardware.data_gib}G",
        "fastboot.forceColdBoot": "no" if hardware.quick_boot else "yes",
        "fastboot.forceFastBoot": "yes" if hardware.quick_boot else "no",
        "hw.audioInput": "no",
        "hw.camera.back": "none",
        "hw.camera.front": "none",
        "hw.cpu.arch": arch,
        "hw.cpu.ncore": str(hardware.cpu_count),
        "hw.device.manufacturer": profile.maker,
        "hw.device.name": profile.id,
        "hw.gpu.enabled": "yes",
        "hw.gpu.mode": _GPU[hardware.gpu],
        "hw.keyboard": "yes",
        "hw.lcd.density": str(profile.display.density),
        "hw.lcd.height": str(profile.display.height),
        "hw.lcd.width": str(profile.display.width),
        "hw.mainKeys": "no",
        "hw.ramSize": str(hardware.ram_mib),
        "showDeviceFrame": "no",
        "tag.id": image.tag,
    }
    if image.folder is not None:
        keys["image.sysdir.1"] = f"{image.folder}/"
    return keys


def write_avd(avd_home: Path, name: str, config: Mapping[str, str], *, api: int) -> None:
    """Write both files of an AVD and read them back; blocking.

    Raises:
        ManageRefused: reason avd_failed when what is on disk is not what was asked for.
    """
    directory = avd_home / f"{name}.avd"
    directory.mkdir(parents=True, exist_ok=True)
    pointer = {"avd.ini.encoding": "UTF-8", "path": str(directory), "path.rel": f"avd/{name}.avd",
               "target": f"android-{api}"}  # fmt: skip
    _write(directory / "config.ini", config)
    _write(avd_home / f"{name}.ini", pointer)
    if read_ini(directory / "config.ini") != dict(config) or read_ini(avd_home / f"{name}.ini") != pointer:
        raise ManageRefused("avd_failed", "the files on disk are not what was written", effect="partial")


def read_ini(path: Path) -> dict[str, str]:
    """The keys of an ini file; both `k=v` and `k = v` occur."""
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def display_of(config: Mapping[str, str]) -> Display:
    """The hardware display that a `config.ini` describes."""
    numbers = [int(config.get(key, "0") or 0) for key in ("hw.lcd.width", "hw.lcd.height", "hw.lcd.density")]
    return Display(numbers[0] or 720, numbers[1] or 1280, numbers[2] or 320)


def wipe_avd(avd_home: Path, name: str) -> None:
    """Remove everything a device stored, keeping its configuration; blocking."""
    for path in (avd_home / f"{name}.avd").iterdir():
        if path.name in _KEPT_BY_WIPE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def delete_avd(avd_home: Path, name: str) -> None:
    """Remove an AVD, its pointer first so that nothing half-deleted is ever listed; blocking."""
    (avd_home / f"{name}.ini").unlink(missing_ok=True)
    shutil.rmtree(avd_home / f"{name}.avd", ignore_errors=True)


def _write(path: Path, keys: Mapping[str, str]) -> None:
    staged = path.with_name(path.name + ".new")
    staged.write_text("".join(f"{key}={value}\n" for key, value in keys.items()), encoding="utf-8")
    staged.replace(path)
