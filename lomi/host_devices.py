"""Part of the composition root: the images of the policy's devices as what the device library starts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devices.spec import DeviceSpec, Display, Needs, Readiness
from emulator_images.avd_files import create_avd
from emulator_images.images import Image, find_image, load_images
from lomi.broker.policy import DevicePolicy
from lomi.host_sdk import PAPER_GRPC, inherited

_MIB = 1 << 20


def specs_for(
    state: Path, devices: Mapping[str, DevicePolicy], environment: Mapping[str, str]
) -> Callable[[Path], Sequence[DeviceSpec]]:
    """What `devices.adapter` asks for once it knows where the keys are; `devices` are keyed by device id.

    Raises:
        UnknownImageError: a device names an image that there is not.
    """
    images = load_images()
    chosen = {device_id: find_image(images, device.image) for device_id, device in devices.items()}

    def specs(user_home: Path) -> Sequence[DeviceSpec]:
        avd_home = state / "avd"
        avd_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [
            _spec(device_id, device.name, chosen[device_id], avd_home, _environment(user_home, environment))
            for device_id, device in devices.items()
        ]

    return specs


def _environment(user_home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What an emulator inherits, and the places that it must use: ours, never the user's own."""
    places = ("HOME", "ANDROID_EMULATOR_HOME", "XDG_RUNTIME_DIR")
    return {**inherited(environment), **dict.fromkeys(places, str(user_home))}


def _command(image: Image, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The emulator to start; that of a real image lies in the SDK that `ANDROID_HOME` names."""
    if image.simulated:
        return image.command
    sdk = Path(environment.get("ANDROID_HOME") or environment.get("ANDROID_SDK_ROOT") or "/nonexistent")
    return (str(sdk / image.command[0]), *image.command[1:])


def _spec(device_id: str, name: str, image: Image, avd_home: Path, environment: Mapping[str, str]) -> DeviceSpec:
    create_avd(image, avd_home, name, replace=True)
    hardware, ready = image.hardware, image.ready
    return DeviceSpec(
        device_id=device_id,
        name=name,
        command=_command(image, environment),
        avd_home=avd_home,
        display=Display(hardware.width, hardware.height, hardware.density),
        environment=tuple(environment.items()),
        arguments=image.boot_arguments(),
        needs=Needs(ram_bytes=image.ram_mib * _MIB, disk_bytes=image.disk_mib * _MIB, kvm=not image.simulated),
        readiness=Readiness(
            services=ready.services,
            stable_polls=ready.stable_polls,
            poll_s=ready.poll_seconds,
            boot_s=ready.boot_seconds,
        ),
        simulated=image.simulated,
        grpc=not image.simulated or environment.get(PAPER_GRPC) == "1",
    )
