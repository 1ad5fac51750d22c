"""Which image a name means, and why it can't be played here."""

import os
from pathlib import Path

from emulator_images.images import EMULATOR_IN_SDK, Image, find_image, load_images


def resolved(name: str) -> Image:
    """The image of this name; `paper` is the newest simulated one.

    Raises:
        UnknownImageError: there is none.
    """
    images = load_images()
    if name == "paper":
        return max((image for image in images.values() if image.simulated), key=lambda image: image.api)
    return find_image(images, name)


def absent(image: Image) -> str:
    """Why it can't be played on this machine; empty when it can."""
    if image.simulated:
        return ""
    sdk = os.environ.get("ANDROID_HOME", "")
    if not sdk or not (Path(sdk) / EMULATOR_IN_SDK).is_file():
        return f"{image.name} is a real image and ANDROID_HOME names no SDK with an emulator"
    assert image.package is not None
    if not Path(sdk, *image.package.split(";")).is_dir():
        return f"{image.package} is not installed in {sdk}"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "/dev/kvm can't be used"
    return ""
