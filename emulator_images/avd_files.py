"""Writes the files that make an AVD of an image: `NAME.ini` and `NAME.avd/config.ini`."""

import os
import re
from pathlib import Path

from emulator_images.images import Image

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ARCHITECTURES = {"x86_64": "x86_64", "x86": "x86", "arm64-v8a": "arm64", "armeabi-v7a": "arm"}


class BadAvdNameError(Exception):
    """Raised for a name that the emulator would not take."""


class AvdExistsError(Exception):
    """Raised when an AVD of that name is there already."""


def create_avd(image: Image, avd_home: Path, name: str, *, replace: bool = False) -> Path:
    """Write the AVD and return its directory; with `replace` the two files of an existing one are written anew.

    Raises:
        BadAvdNameError: the name has characters that AVD names may not have.
        AvdExistsError: there is one, and `replace` was not asked for.
    """
    if _NAME.fullmatch(name) is None:
        raise BadAvdNameError(f"{name!r} is no AVD name: letters, digits, '.', '_' and '-' only, at most 64")
    directory = avd_home / f"{name}.avd"
    pointer = avd_home / f"{name}.ini"
    if pointer.exists() and not replace:
        raise AvdExistsError(f"there is an AVD named {name} in {avd_home} already")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _publish(directory / "config.ini", config(image, name))
    _publish(
        pointer,
        {
            "avd.ini.encoding": "UTF-8",
            "path": str(directory),
            "path.rel": f"avd/{name}.avd",
            "target": f"android-{image.api}",
        },
    )
    return directory


def config(image: Image, name: str) -> dict[str, str]:
    """The AVD's `config.ini` as keys and values."""
    hardware = image.hardware
    landscape = hardware.width > hardware.height
    pairs = {
        "AvdId": name,
        "avd.ini.displayname": name.replace("_", " "),
        "avd.ini.encoding": "UTF-8",
        "abi.type": image.abi,
        "hw.cpu.arch": _ARCHITECTURES.get(image.abi, image.abi),
        "hw.cpu.ncore": str(hardware.cores),
        "hw.ramSize": str(hardware.ram_mib),
        "vm.heapSize": "256",
        "disk.dataPartition.size": f"{hardware.data_mib}M",
        "tag.id": image.tag,
        "tag.display": image.tag_display,
        "target": f"android-{image.api}",
        "hw.lcd.width": str(hardware.width),
        "hw.lcd.height": str(hardware.height),
        "hw.lcd.density": str(hardware.density),
        "hw.initialOrientation": "landscape" if landscape else "portrait",
        "hw.gpu.enabled": "yes",
        "hw.gpu.mode": "swiftshader_indirect",
        "hw.keyboard": "yes" if hardware.keyboard else "no",
        "hw.mainKeys": "no",
        "hw.audioInput": "no",
        "hw.audioOutput": "no",
        "hw.camera.back": "none",
        "hw.camera.front": "none",
        "PlayStore.enabled": "false",
        "fastboot.forceColdBoot": "yes",
        "fastboot.forceFastBoot": "no",
        "runtime.network.speed": "full",
        "runtime.network.latency": "none",
        "showDeviceFrame": "no",
        "skin.name": f"{hardware.width}x{hardware.height}",
        "skin.path": "_no_skin",
        "lomi.image": image.name,
    }
    if image.package is not None:
        pairs["image.sysdir.1"] = image.package.replace(";", "/") + "/"
    return pairs


def _publish(path: Path, pairs: dict[str, str]) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text("".join(f"{key}={value}\n" for key, value in pairs.items()), encoding="utf-8")
    draft.replace(path)
