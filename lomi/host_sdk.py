"""Part of the composition root: the images that managed phones can be made from, and how each is started.

`LOMI_ANDROID_REPOSITORY` names a mirror in Google's repository format instead of Google itself, as a base address
(`http://mirror.example/android/repository/`). `ANDROID_HOME` names a person's own SDK, which is only read: its emulator
and its system images can be used where the private SDK has none.
"""

import platform
import re
from collections.abc import Mapping
from pathlib import Path

from devices.port.sdk_room import SdkSetting
from devices.sdk.avds import Image
from devices.sdk.book import ManagedDevice
from devices.sdk.profiles import profile
from devices.sdk.setup import GOOGLE, host_kind
from devices.sdk.swap import Manifest
from devices.sdk.tools import installed_in
from devices.spec import DeviceSpec, Display, Needs, Readiness
from emulator_images.images import EMULATOR_IN_SDK, PAPER_COMMAND, load_images

REPOSITORY = "LOMI_ANDROID_REPOSITORY"
_SYSTEM_IMAGE = re.compile(r"system-images;android-(\d+)(?:\.\d+)?(?:-ext\d+)?;([^;]+);([^;]+)")
_MIB, _GIB = 1 << 20, 1 << 30
_EMULATOR_RAM = 1536 * _MIB
"""What the emulator itself takes beside the phone's memory."""
_HEADLESS = ("-no-window", "-no-audio", "-no-boot-anim", "-no-metrics", "-camera-back", "none", "-camera-front", "none")
_GPU = {"auto": "auto", "host": "host", "software": "swiftshader_indirect"}

PAPER_GRPC = "PAPER_GRPC"
"""Set to 1, simulated phones serve the emulator's gRPC too; it costs each of them the memory of grpcio."""


def sdk_setting(root: Path, environment: Mapping[str, str], most_devices: int, names: dict[str, str]) -> SdkSetting:
    """What the Android adapter needs for set-up and management below `root`; it keeps `names` current."""
    own = _own_sdk(environment)
    emulated = _Emulated(environment, own)
    return SdkSetting(
        root=root,
        repository=environment.get(REPOSITORY) or GOOGLE,
        host=host_kind(platform.system(), platform.machine()),
        images_of=lambda sdk, manifest: {**_paper(), **_read_only(own), **_installed(sdk, manifest)},
        spec_of=lambda device, image, avds, user_home: emulated.spec(device, image, avds, user_home, root / "sdk"),
        most_devices=most_devices,
        names=names,
    )


def _own_sdk(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("ANDROID_HOME") or environment.get("ANDROID_SDK_ROOT")
    return Path(named) if named else None


def _paper() -> dict[str, Image]:
    """The simulated phones; each image's API level is its revision."""
    return {
        name: Image(name, str(image.api), image.api, image.abi, image.tag, simulated=True)
        for name, image in load_images().items()
        if image.simulated
    }


def _image(path: str, revision: str, folder: Path) -> dict[str, Image]:
    """A package as an image, if it is one. Its folder is absolute: the emulator may come from another SDK."""
    found = _SYSTEM_IMAGE.fullmatch(path)
    if found is None:
        return {}
    return {path: Image(path, revision, int(found[1]), found[3], found[2], str(folder))}


def _installed(sdk: Path, manifest: Manifest) -> dict[str, Image]:
    found: dict[str, Image] = {}
    for package in manifest.installed:
        found |= _image(package.path, package.version, sdk.joinpath(*package.path.split(";")))
    return found


def _read_only(own: Path | None) -> dict[str, Image]:
    found: dict[str, Image] = {}
    for package in installed_in(own) if own is not None and own.is_dir() else ():
        found |= _image(package.path, package.version, package.folder)
    return found


class _Emulated:
    """Describes managed phones."""

    def __init__(self, environment: Mapping[str, str], own: Path | None) -> None:
        self._environment = environment
        self._own = own

    def spec(self, device: ManagedDevice, image: Image, avd_home: Path, user_home: Path, sdk: Path) -> DeviceSpec:
        """What starts the phone."""
        hardware, kind = device.hardware, profile(device.profile)
        places = dict.fromkeys(("HOME", "ANDROID_EMULATOR_HOME", "XDG_RUNTIME_DIR"), str(user_home))
        using = sdk if (sdk / EMULATOR_IN_SDK).is_file() or self._own is None else self._own
        kept = inherited(self._environment)
        if not image.simulated:
            kept |= {"ANDROID_HOME": str(using), "ANDROID_SDK_ROOT": str(using)}
        return DeviceSpec(
            device_id=device.device_id,
            name=device.avd,
            label=device.name,
            command=PAPER_COMMAND if image.simulated else (str(using / EMULATOR_IN_SDK),),
            avd_home=avd_home,
            display=kind.display if kind is not None else Display(720, 1280, 320),
            environment=tuple({**kept, **places}.items()),
            arguments=_arguments(device, simulated=image.simulated),
            needs=_needs(device, simulated=image.simulated),
            readiness=Readiness(stable_polls=2, poll_s=0.1, boot_s=60.0) if image.simulated else Readiness(),
            simulated=image.simulated,
            grpc=not image.simulated or self._environment.get(PAPER_GRPC) == "1",
            quick_boot=hardware.quick_boot and not image.simulated,
        )


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What an emulator inherits."""
    kept = ("PATH", "LANG", "TMPDIR", "ANDROID_HOME", "ANDROID_SDK_ROOT")
    return {name: value for name, value in environment.items() if name in kept or name.startswith("PAPER_")}


def _arguments(device: ManagedDevice, *, simulated: bool) -> tuple[str, ...]:
    if simulated:
        return ("-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot")
    cold = () if device.hardware.quick_boot else ("-no-snapshot",)
    return (*_HEADLESS, "-gpu", _GPU[device.hardware.gpu], *cold)


def _needs(device: ManagedDevice, *, simulated: bool) -> Needs:
    if simulated:
        return Needs(ram_bytes=64 * _MIB, disk_bytes=16 * _MIB)
    hardware = device.hardware
    return Needs(ram_bytes=hardware.ram_mib * _MIB + _EMULATOR_RAM, disk_bytes=(hardware.data_gib + 2) * _GIB, kvm=True)
