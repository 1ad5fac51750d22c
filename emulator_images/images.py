"""The image manifest: what a phone is made of and when it counts as ready, by name."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

MANIFEST = Path(__file__).parent / "manifest.toml"
PAPER_COMMAND = (sys.executable, "-m", "emulator_images.paper")
EMULATOR_IN_SDK = "emulator/emulator"


class Hardware(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The virtual hardware: display in unrotated pixels and dots per inch, sizes in MiB, whether keys are real."""

    width: int
    height: int
    density: int
    cores: int
    ram_mib: int
    data_mib: int
    keyboard: bool


class ReadyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ready after `stable_polls` polls in a row, `poll_seconds` apart, in which boot flag and services answer."""

    stable_polls: int
    poll_seconds: float
    boot_seconds: float
    services: tuple[str, ...] = ("package", "input", "window")


class Image(msgspec.Struct, frozen=True):
    """One reproducible image.

    `command` starts its emulator: for real images a path inside the SDK, to be made absolute by whoever knows the SDK.
    `package`, `revision` and `checksum` (as `sha1:...` or `sha256:...`) pin a real image's content; for paper the
    checksum is that of its sources. `ram_mib` and `disk_mib` are what one running device takes from the host. Before
    use, `locale` and `timezone` are passed on the command line and animations are switched off unless `animations`.
    """

    name: str
    simulated: bool
    command: tuple[str, ...]
    api: int
    abi: str
    tag: str
    tag_display: str
    hardware: Hardware
    arguments: tuple[str, ...]
    locale: str
    timezone: str
    animations: bool
    ready: ReadyRule
    ram_mib: int
    disk_mib: int
    package: str | None = None
    revision: str | None = None
    checksum: str | None = None

    @property
    def locked(self) -> bool:
        """Whether the content is pinned."""
        return self.checksum is not None

    def boot_arguments(self) -> tuple[str, ...]:
        """The emulator's flags for this image, without AVD name and ports."""
        return (*self.arguments, "-change-locale", self.locale, "-timezone", self.timezone)


class UnknownImageError(Exception):
    """Raised when no image has the wanted name; carries the names there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no image is named {name!r}; known are {', '.join(known)}")
        self.name = name
        self.known = known


class BadManifestError(Exception):
    """Raised when the manifest file is not valid; says why."""


class _Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Literal["paper", "real"]
    apis: tuple[int, ...]
    abis: tuple[str, ...]
    arguments: tuple[str, ...]
    locale: str
    timezone: str
    animations: bool
    ram_mib: int
    disk_mib: int
    hardware: Hardware
    ready: ReadyRule
    package: str | None = None
    tag: str = "default"
    tag_display: str = "Simulated"

    def image(self, api: int, abi: str) -> Image:
        """The image of one API level and ABI."""

        def filled(text: str) -> str:
            return text.replace("{api}", str(api)).replace("{abi}", abi)

        paper = self.kind == "paper"
        return Image(
            name=filled(self.name),
            simulated=paper,
            command=PAPER_COMMAND if paper else (EMULATOR_IN_SDK,),
            api=api,
            abi=abi,
            tag=self.tag,
            tag_display=self.tag_display,
            hardware=self.hardware,
            arguments=self.arguments,
            locale=self.locale,
            timezone=self.timezone,
            animations=self.animations,
            ready=self.ready,
            ram_mib=self.ram_mib,
            disk_mib=self.disk_mib,
            package=filled(self.package) if self.package else None,
        )


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    family: tuple[_Family, ...]


def load_images(manifest: Path = MANIFEST) -> Mapping[str, Image]:
    """Every image of a manifest by name, in manifest order, real ones unlocked.

    Raises:
        BadManifestError: the file is missing or not valid.
    """
    try:
        families = msgspec.convert(tomllib.loads(manifest.read_text("utf-8")), _Manifest).family
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadManifestError(f"{manifest}: {error}") from error
    images = [family.image(api, abi) for family in families for api in family.apis for abi in family.abis]
    return MappingProxyType({image.name: image for image in images})


def find_image(images: Mapping[str, Image], name: str) -> Image:
    """The image of a name.

    Raises:
        UnknownImageError: there is none.
    """
    if name not in images:
        raise UnknownImageError(name, tuple(images))
    return images[name]
