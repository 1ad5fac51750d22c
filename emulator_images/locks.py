"""The lock file: which revision and content each image has, once and for all.

Real images are locked from what a catalogue offers; paper images from their own sources. A lock is never changed
behind anybody's back: a catalogue that offers something else for a locked image is drift, and refused.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from emulator_images.images import Image

_SOURCES = Path(__file__).parent / "paper"
_SOURCE_KINDS = frozenset({".py", ".toml"})


class Offer(msgspec.Struct, frozen=True):
    """What a catalogue offers for a package: revision, absolute URL, size in bytes, checksum as `sha1:...`."""

    package: str
    revision: str
    url: str
    size: int
    checksum: str


class Locked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One image's entry: `checksum` pins the content; the rest says where it came from."""

    checksum: str
    revision: str = ""
    package: str = ""
    url: str = ""
    size: int = 0


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lock file: entries by image name."""

    version: int = 1
    images: dict[str, Locked] = {}


class BadLockError(Exception):
    """Raised when a lock file is not valid; says why."""


class NotOfferedError(Exception):
    """Raised when a catalogue does not offer an image's package; carries the image's name."""

    def __init__(self, image: Image) -> None:
        super().__init__(f"the catalogue does not offer {image.package} for image {image.name}")
        self.image = image.name


class ImageDriftError(Exception):
    """Raised when an image is locked to other content than is there now; carries both checksums."""

    def __init__(self, name: str, locked: Locked, found: Locked) -> None:
        super().__init__(
            f"image {name} is locked to {locked.checksum} (revision {locked.revision or '-'}), "
            f"but {found.checksum} (revision {found.revision or '-'}) is offered now"
        )
        self.name = name
        self.locked = locked
        self.found = found


def read_lock(path: Path) -> Lock:
    """Read a lock file; an empty lock when there is none.

    Raises:
        BadLockError: the file is not valid.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Lock)
    except FileNotFoundError:
        return Lock()
    except msgspec.ValidationError as error:
        raise BadLockError(f"{path}: {error}") from error
    except msgspec.DecodeError as error:
        raise BadLockError(f"{path}: {error}") from error


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock file in one step, entries sorted, so that it can be kept under version control."""
    text = msgspec.json.format(msgspec.json.encode(lock, order="sorted"), indent=2) + b"\n"
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(text)
    draft.replace(path)


def with_locked(
    lock: Lock, images: Iterable[Image], offers: Callable[[str], Offer | None], *, renew: bool = False
) -> Lock:
    """The lock with these images locked to what is offered now; `renew` replaces entries on purpose.

    Raises:
        NotOfferedError: a package is not offered.
        ImageDriftError: an image is locked to something else and `renew` was not asked for.
    """
    entries = dict(lock.images)
    for image in images:
        found = _found(image, offers)
        held = entries.get(image.name)
        if held is not None and held.checksum != found.checksum and not renew:
            raise ImageDriftError(image.name, held, found)
        entries[image.name] = found
    return Lock(version=lock.version, images=entries)


def _found(image: Image, offers: Callable[[str], Offer | None]) -> Locked:
    if image.package is None:
        return Locked(checksum=paper_digest())
    offer = offers(image.package)
    if offer is None:
        raise NotOfferedError(image)
    return Locked(
        checksum=offer.checksum, revision=offer.revision, package=offer.package, url=offer.url, size=offer.size
    )


def apply_lock(images: Mapping[str, Image], lock: Lock) -> Mapping[str, Image]:
    """The images with revision and checksum of the lock filled in."""

    def pinned(image: Image) -> Image:
        entry = lock.images.get(image.name)
        if entry is None:
            return image
        return msgspec.structs.replace(image, revision=entry.revision or None, checksum=entry.checksum)

    return MappingProxyType({name: pinned(image) for name, image in images.items()})


def paper_digest(sources: Path = _SOURCES) -> str:
    """The content of paper images: one SHA-256 over the names and bytes of paper's sources, as `sha256:...`."""
    digest = hashlib.sha256()
    for path in sorted(sources.rglob("*")):
        if path.suffix in _SOURCE_KINDS and path.is_file():
            name = path.relative_to(sources).as_posix().encode()
            content = path.read_bytes()
            digest.update(b"%d %s %d " % (len(name), name, len(content)) + content)
    return f"sha256:{digest.hexdigest()}"
