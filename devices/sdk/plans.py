"""Immutable setup plans: exactly what would be downloaded, from where, under which licences."""

import hashlib
import json
from dataclasses import asdict, dataclass

from devices.sdk.catalogue import Catalogue, Licence, Package, Revision
from devices.sdk.faults import SetupFailed
from devices.sdk.swap import Manifest

_MAX_PACKAGES = 64
_MAX_LICENCES, _LICENCE_BYTES = 16, 1 << 20
PLAN_SECONDS = 1800.0
MAX_PLANS = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """Packages in the order of installation, and the licences they come under.

    `revision` is a SHA-256 over all of it and the target: a decision is bound to it. `expires` is monotonic seconds.
    """

    id: str
    packages: tuple[Package, ...]
    licences: tuple[Licence, ...]
    target: str
    expires: float

    @property
    def download_bytes(self) -> int:
        """The sum of all downloads."""
        return sum(package.archive.size for package in self.packages)

    @property
    def revision(self) -> str:
        """64 hex digits over everything a person would agree to."""
        content = {
            "packages": [asdict(one) for one in self.packages],
            "licences": [asdict(one) for one in self.licences],
            "target": self.target,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def resolve(
    catalogue: Catalogue, wanted: tuple[tuple[str, str], ...], manifest: Manifest, *, channel: int = 0
) -> tuple[Package, ...]:
    """The wanted (path, version) packages with what they depend on, dependencies first, without what is installed.

    A wanted version is taken from any channel, a dependency only from `channel` or a more stable one.

    Raises:
        SetupFailed: reason package_unknown.
    """
    order: list[Package] = []
    open_paths: set[str] = set()

    def visit(package: Package) -> None:
        if package.path in open_paths or len(order) >= _MAX_PACKAGES:
            return
        open_paths.add(package.path)
        for path, least in package.dependencies:
            have = manifest.package(path)
            if have is not None and _at_least(have.version, least, catalogue, path):
                continue
            found = catalogue.find(path, channel=channel)
            if found is None or (least is not None and found.revision < least):
                raise SetupFailed("package_unknown", f"nothing satisfies {path}", fields={"package": path})
            visit(found)
        order.append(package)

    for path, version in wanted:
        found = catalogue.find(path, version)
        if found is None:
            raise SetupFailed("package_unknown", f"{path} {version} is not offered", fields={"package": path})
        visit(found)
    return tuple(package for package in order if not _same(manifest, package))


def licences_of(catalogue: Catalogue, packages: tuple[Package, ...]) -> tuple[Licence, ...]:
    """The texts the packages come under, once each.

    Raises:
        SetupFailed: reason catalogue_invalid when a text is missing, too_many_licences when there are more than a
            person can be shown: 16 texts, 1 MiB.
    """
    found = []
    for identifier in dict.fromkeys(package.licence for package in packages if package.licence):
        licence = catalogue.licence(identifier)
        if licence is None:
            raise SetupFailed("catalogue_invalid", f"no text for licence {identifier}")
        found.append(licence)
    if len(found) > _MAX_LICENCES or sum(len(one.text.encode()) for one in found) > _LICENCE_BYTES:
        raise SetupFailed("too_many_licences", "prepare fewer packages at once", fields={"limit": _MAX_LICENCES})
    return tuple(found)


def _same(manifest: Manifest, package: Package) -> bool:
    have = manifest.package(package.path)
    return have is not None and have.checksum == package.archive.checksum


def _at_least(version: str, least: Revision | None, catalogue: Catalogue, path: str) -> bool:
    if least is None:
        return True
    offered = catalogue.find(path, version)
    numbers = [int(part) for part in version.split(" ", 1)[0].split(".") if part.isdigit()]
    have = offered.revision if offered is not None else (*[*numbers, -1, -1, -1][:3], least[3])
    return tuple(have) >= tuple(least)
