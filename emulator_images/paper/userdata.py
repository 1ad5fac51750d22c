"""What a phone keeps from one run to the next, as the real emulator's userdata image does: apps, settings, files."""

import os
from pathlib import Path

import msgspec

from emulator_images.paper.files import SavedFile
from emulator_images.paper.packages import Installed
from emulator_images.paper.phone import Phone

FILE_NAME = "userdata.json"


class _UserData(msgspec.Struct, frozen=True):
    settings: tuple[tuple[str, str, str], ...]
    installed: tuple[Installed, ...]
    present: tuple[str, ...]
    permissions: dict[str, dict[str, bool]]
    files: tuple[SavedFile, ...]


def save(phone: Phone, directory: Path) -> None:
    """Write the user data of a phone that has stopped."""
    packages = phone.packages.all()
    kept = _UserData(
        settings=tuple((space, key, value) for (space, key), value in sorted(phone.settings.items())),
        installed=tuple(package for package in packages if package.sideloaded),
        present=tuple(package.name for package in packages),
        permissions={package.name: package.permissions for package in packages if package.permissions},
        files=phone.files.saved(),
    )
    draft = directory / f".{FILE_NAME}.{os.getpid()}"
    draft.write_bytes(msgspec.json.encode(kept))
    draft.replace(directory / FILE_NAME)


def restore(phone: Phone, directory: Path) -> bool:
    """Give a new phone the user data of its AVD; false, and a phone like new, when there is none or it is damaged."""
    try:
        kept = msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=_UserData)
    except (OSError, msgspec.DecodeError):
        phone.files.restore((), directory)
        return False
    phone.settings.update({(space, key): value for space, key, value in kept.settings})
    for package in kept.installed:
        phone.packages.put(package)
    for package in phone.packages.all():
        if package.third_party and package.name not in kept.present and package.name in phone.described:
            phone.packages.remove(package.name)
        package.permissions.update(kept.permissions.get(package.name, {}))
    phone.files.restore(kept.files, directory)
    return True
