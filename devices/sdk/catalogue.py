"""Google's repository format, all versions of it, read within bounds into packages that fit this host."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from urllib.parse import urljoin, urlsplit
from xml.etree.ElementTree import Element, ParseError  # only the type; reading goes through defusedxml

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import fromstring  # type: ignore[import-untyped]

from devices.sdk.faults import SetupFailed

MAX_DOCUMENT = 8 << 20
_MAX_PACKAGES = 4096
_MAX_LICENCE = 1 << 20
_PATH = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._+-]*(;[A-Za-z0-9][A-Za-z0-9._+-]*)*$")
_CHECKSUM = re.compile(r"^[0-9a-f]{40}$|^[0-9a-f]{64}$")

Revision = tuple[int, int, int, int]
"""Major, minor, micro, preview; a release counts as preview 2**31 so that it sorts above its previews."""
_RELEASE = 1 << 31


@dataclass(frozen=True, slots=True)
class HostKind:
    """What archives must fit: `os` linux, macosx or windows; `arch` x64 or aarch64."""

    os: str
    arch: str


@dataclass(frozen=True, slots=True)
class Archive:
    """One complete download: absolute URL, bytes, and a hex checksum of type sha1 or sha256."""

    url: str
    size: int
    checksum: str
    checksum_type: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package as offered for this host."""

    path: str
    revision: Revision
    name: str
    archive: Archive
    licence: str | None
    channel: int
    dependencies: tuple[tuple[str, Revision | None], ...]
    obsolete: bool
    api: str | None
    tag: str | None
    abi: str | None

    @property
    def version(self) -> str:
        """The revision as people write it."""
        return revision_text(self.revision)


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence text, trimmed as Google trims it, and the SHA-1 by which SDK tools remember an acceptance."""

    id: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything offered to this host. `revision` is a SHA-256 over all of it."""

    packages: tuple[Package, ...]
    licences: tuple[Licence, ...]

    @property
    def revision(self) -> str:
        """64 hex digits that change when anything offered changes."""
        rows = [asdict(package) for package in self.packages] + [asdict(licence) for licence in self.licences]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()

    def find(self, path: str, version: str | None = None, *, channel: int = 3) -> Package | None:
        """The newest package of a path that is not obsolete, on a channel no less stable than `channel`."""
        fitting = [
            one
            for one in self.packages
            if one.path == path and one.channel <= channel and (version is None or one.version == version)
        ]
        return max(fitting, key=lambda one: (not one.obsolete, one.revision), default=None)

    def licence(self, identifier: str) -> Licence | None:
        """A licence by its id."""
        return next((one for one in self.licences if one.id == identifier), None)


def merged(parts: Iterable[Catalogue]) -> Catalogue:
    """One catalogue of several documents; the first text of a licence id counts, a different one is refused.

    Raises:
        SetupFailed: reason catalogue_invalid.
    """
    packages: list[Package] = []
    licences: dict[str, Licence] = {}
    for part in parts:
        packages += part.packages
        for licence in part.licences:
            if licences.setdefault(licence.id, licence).digest != licence.digest:
                raise SetupFailed("catalogue_invalid", f"two texts for licence {licence.id}")
    ordered = sorted(packages, key=lambda one: (one.path, one.revision, one.channel))
    return Catalogue(tuple(ordered), tuple(licences[key] for key in sorted(licences)))


def read_repository(document: bytes, base_url: str, host: HostKind) -> Catalogue:
    """Read a repository or system-image document of any schema version.

    Raises:
        SetupFailed: reason catalogue_invalid.
    """
    root = _parse(document)
    licences = tuple(_licence(one) for one in root if _local(one) == "license" and one.get("id"))
    channels = {one.get("id", ""): _channel(one) for one in root if _local(one) == "channel"}
    packages: list[Package] = []
    for element in root:
        if _local(element) == "remotePackage":
            if len(packages) >= _MAX_PACKAGES:
                raise SetupFailed("catalogue_invalid", f"more than {_MAX_PACKAGES} packages")
            package = _package(element, base_url, host, channels)
            if package is not None:
                packages.append(package)
    return Catalogue(tuple(packages), licences)


def read_sites(document: bytes, base_url: str) -> tuple[str, ...]:
    """The absolute addresses of the system-image documents that an add-ons list names.

    Raises:
        SetupFailed: reason catalogue_invalid.
    """
    sites = []
    for element in _parse(document):
        kind = next((value for key, value in element.attrib.items() if key.endswith("type")), "")
        if _local(element) in {"site", "sys-img-site"} and ("sysImg" in kind or _local(element) == "sys-img-site"):
            address = urljoin(base_url, _text(element, "url"))
            if urlsplit(address).netloc == urlsplit(base_url).netloc:
                sites.append(address)
    return tuple(sites[:64])


def revision_text(revision: Revision) -> str:
    """`37.1.11`, `1`, `35.0.0 rc1`: trailing zero parts that a document left out stay out."""
    major, minor, micro, preview = revision
    parts = [major] + ([minor, micro] if minor >= 0 and micro >= 0 else [minor] if minor >= 0 else [])
    text = ".".join(str(part) for part in parts)
    return text if preview == _RELEASE else f"{text} rc{preview}"


def read_revision(element: Element | None) -> Revision | None:
    """The revision in an element's parts; a missing minor or micro part is -1."""
    if element is None:
        return None
    parts = {_local(part): (part.text or "").strip() for part in element}
    numbers = [parts.get(name, "") for name in ("major", "minor", "micro", "preview")]
    if not numbers[0].isdigit():
        return None
    major, minor, micro = (int(text) if text.isdigit() else -1 for text in numbers[:3])
    return major, minor, micro, int(numbers[3]) if numbers[3].isdigit() else _RELEASE


def trimmed_licence(text: str) -> str:
    """A licence text as SDK tools hash it: indents dropped, single line breaks and runs of blanks made one blank."""
    text = re.sub(r"(?<=\s)[ \t]*", "", text)
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return re.sub(r" +", " ", text).strip()


def child(element: Element, name: str) -> Element | None:
    """The first child of that local name, whatever its namespace."""
    return next((one for one in element if _local(one) == name), None)


def parse_local_package(document: bytes) -> tuple[str, Revision, str] | None:
    """Path, revision and display name out of an installed `package.xml`; None when it is none."""
    try:
        root = _parse(document)
    except SetupFailed:
        return None
    package = child(root, "localPackage")
    revision = None if package is None else read_revision(child(package, "revision"))
    if package is None or revision is None:
        return None
    return package.get("path", ""), revision, _text(package, "display-name")


def _parse(document: bytes) -> Element:
    if len(document) > MAX_DOCUMENT:
        raise SetupFailed("catalogue_invalid", f"a document of more than {MAX_DOCUMENT} bytes")
    try:
        root: Element = fromstring(document, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as broken:
        raise SetupFailed("catalogue_invalid", f"not readable: {broken}") from broken
    return root


def _package(element: Element, base_url: str, host: HostKind, channels: dict[str, int]) -> Package | None:
    path, revision = element.get("path", ""), read_revision(child(element, "revision"))
    archive = _archive(element, base_url, host)
    if not _PATH.fullmatch(path) or len(path) > 256 or revision is None or archive is None:
        return None
    licence, channel = child(element, "uses-license"), child(element, "channelRef")
    details = child(element, "type-details")
    tag = None if details is None else child(details, "tag")
    return Package(
        path=path,
        revision=revision,
        name=_text(element, "display-name")[:200],
        archive=archive,
        licence=None if licence is None else licence.get("ref"),
        channel=0 if channel is None else channels.get(channel.get("ref", ""), 3),
        dependencies=tuple(_dependencies(element)),
        obsolete=element.get("obsolete") == "true",
        api=None if details is None else (_text(details, "api-level") or None),
        tag=None if tag is None else (_text(tag, "id") or None),
        abi=None if details is None else (_text(details, "abi") or None),
    )


def _archive(element: Element, base_url: str, host: HostKind) -> Archive | None:
    archives = child(element, "archives")
    for one in archives if archives is not None else ():
        complete = child(one, "complete")
        if complete is None or not _fits(one, host):
            continue
        checksum = child(complete, "checksum")
        digest = "" if checksum is None else (checksum.text or "").strip().lower()
        size, url = _text(complete, "size"), _text(complete, "url")
        if _CHECKSUM.fullmatch(digest) and size.isdigit() and url:
            kind = "sha1" if len(digest) == 40 else "sha256"
            return Archive(urljoin(base_url, url), int(size), digest, kind)
    return None


def _fits(archive: Element, host: HostKind) -> bool:
    """No word about the host means every host; `host-bits` 32 of old documents never fits."""
    system, arch, bits = _text(archive, "host-os"), _text(archive, "host-arch"), _text(archive, "host-bits")
    return (not system or system == host.os) and (not arch or arch == host.arch) and bits != "32"


def _dependencies(element: Element) -> Iterator[tuple[str, Revision | None]]:
    for one in child(element, "dependencies") or ():
        if _local(one) == "dependency" and one.get("path"):
            yield one.get("path", ""), read_revision(child(one, "min-revision"))


def _licence(element: Element) -> Licence:
    text = trimmed_licence((element.text or "")[:_MAX_LICENCE])
    return Licence(element.get("id", ""), text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _channel(element: Element) -> int:
    number = element.get("id", "").rpartition("-")[2]
    return int(number) if number.isdigit() else 3


def _text(element: Element, name: str) -> str:
    found = child(element, name)
    return "" if found is None else (found.text or "").strip()


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]
