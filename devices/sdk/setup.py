"""A private SDK: its catalogue, its plans, its packages. Nothing outside its folder is ever touched."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from urllib.parse import urljoin
from xml.sax.saxutils import escape, quoteattr

from devices.sdk import licences, plans
from devices.sdk.catalogue import Catalogue, HostKind, Package, merged, read_repository, read_sites
from devices.sdk.faults import SetupFailed
from devices.sdk.fetch import fetch_archive, fetch_document
from devices.sdk.metadata import Damage, MetadataFile
from devices.sdk.plans import MAX_PLANS, PLAN_SECONDS, Plan
from devices.sdk.swap import Installed, Manifest, Swaps
from devices.sdk.unpack import unpack
from devices.world import World
from lomi.disk.private import private_directory

GOOGLE = "https://dl.google.com/android/repository/"
TOOLS = ("platform-tools", "emulator")
_REPOSITORIES = tuple(f"repository2-{version}.xml" for version in (3, 2, 1))
_SITES = tuple(f"addons_list-{version}.xml" for version in (5, 4, 3))
"""Newest schema first; mirrors may have older ones only."""
_NOT_FOUND = 404
_DOCUMENT_LIMIT = 8 << 20
_AT_ONCE = 4
_SPARE = 1 << 30
"""Bytes that stay free beside what a plan unpacks."""


class Setup:
    """One private SDK below `root`. Calls that change it run one at a time."""

    def __init__(self, root: Path, *, host: HostKind, world: World, base_url: str = GOOGLE) -> None:
        self.sdk = root / "sdk"
        self._root = root
        self._host = host
        self._world = world
        self._base = base_url
        self._catalogue: Catalogue | None = None
        self._plans: dict[str, Plan] = {}
        self._turn = asyncio.Lock()
        self._manifest = MetadataFile(root / "manifest.json", Manifest, Manifest())
        self._swaps = Swaps(root / "swap.json")

    async def open(self) -> None:
        """Make the folders; call it once."""
        await asyncio.to_thread(self._make_folders)

    @property
    def recovery_required(self) -> bool:
        """Whether an interrupted change must be recovered before anything else."""
        return self._swaps.unfinished

    @property
    def busy(self) -> bool:
        """Whether a change is under way."""
        return self._turn.locked()

    async def manifest(self) -> tuple[Manifest, str]:
        """What is installed, and the revision of that.

        Raises:
            ManageRefused: reason metadata_damaged.
        """
        return await asyncio.to_thread(self._manifest.read)

    async def catalogue(self, *, refresh: bool = False, within: float = 40.0) -> Catalogue:
        """Everything offered, fetched when it is not known or `refresh` asks.

        Raises:
            SetupFailed: catalogue_unreachable or catalogue_invalid.
        """
        if self._catalogue is None or refresh:
            try:
                async with asyncio.timeout(within):
                    self._catalogue = await self._fetch_catalogue(within)
            except TimeoutError:
                raise SetupFailed("catalogue_unreachable", f"not read within {within:g} s") from None
        return self._catalogue

    async def prepare(
        self, catalogue_revision: str, wanted: tuple[tuple[str, str], ...], *, tools: bool = False
    ) -> Plan:
        """Save an immutable plan for (path, version) packages, with the emulator and adb when `tools` asks.

        Raises:
            SetupFailed: catalogue_changed, package_unknown or too_many_plans.
        """
        catalogue = await self.catalogue()
        if catalogue.revision != catalogue_revision:
            raise SetupFailed("catalogue_changed", "the catalogue is not the one that was seen")
        manifest, _ = await self.manifest()
        needed = list(wanted)
        for path in TOOLS if tools else ():
            newest = catalogue.find(path, channel=0)
            if newest is not None and path not in {name for name, _ in wanted}:
                needed.append((path, newest.version))
        packages = plans.resolve(catalogue, tuple(needed), manifest)
        now = self._world.monotonic()
        self._plans = {key: plan for key, plan in self._plans.items() if plan.expires > now}
        if len(self._plans) >= MAX_PLANS:
            raise SetupFailed("too_many_plans", f"{MAX_PLANS} plans are saved", fields={"limit": MAX_PLANS})
        plan = Plan(
            id=self._world.token(),
            packages=packages,
            licences=plans.licences_of(catalogue, packages),
            target=str(self.sdk),
            expires=now + PLAN_SECONDS,
        )
        self._plans[plan.id] = plan
        return plan

    def plan(self, plan_id: str, revision: str) -> Plan:
        """A saved plan that is still what it was.

        Raises:
            SetupFailed: plan_unknown, plan_expired or plan_changed.
        """
        plan = self._plans.get(plan_id)
        if plan is None:
            raise SetupFailed("plan_unknown", "no such plan")
        if plan.expires <= self._world.monotonic():
            raise SetupFailed("plan_expired", "the plan is too old")
        if plan.revision != revision:
            raise SetupFailed("plan_changed", "the plan has another revision")
        return plan

    async def apply(
        self,
        plan: Plan,
        agreed: frozenset[str],
        *,
        effect: AbstractAsyncContextManager[None] | None = None,
        progress: Callable[[int, Package], Awaitable[None]] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> str:
        """Download, verify, unpack and install a plan; `agreed` are the licence digests a person said yes to.

        `progress` hears each package and how many are in before it. Packages installed before a failure stay; the
        manifest says which. Answers with the manifest's revision.

        Raises:
            SetupFailed: management_busy, recovery_required, licence_missing or no_space before anything is done;
                otherwise download, checksum, archive and install failures, effect partial once a package is in.
        """
        licences.check_consent(plan.licences, agreed)
        async with self._exclusive():
            await asyncio.to_thread(self._check_room, plan)
            async with effect or nullcontext():
                for licence in plan.licences:
                    await asyncio.to_thread(licences.remember, self.sdk, licence)
                for number, package in enumerate(plan.packages):
                    if progress is not None:
                        await progress(number, package)
                    try:
                        await self._install(package, cancelled)
                    except SetupFailed as fault:
                        fault.effect = "partial" if number else "none"
                        raise
                    except OSError as broken:
                        raise SetupFailed("install_failed", str(broken), effect="partial") from broken
            self._plans.pop(plan.id, None)
            return (await self.manifest())[1]

    async def remove(
        self,
        path: str,
        expected_revision: str,
        *,
        in_use: Callable[[str], bool],
        effect: AbstractAsyncContextManager[None] | None = None,
    ) -> str:
        """Remove a package and its older copy; answers with the manifest's revision.

        Raises:
            SetupFailed: manifest_changed, package_unknown or package_in_use before anything is done.
        """
        async with self._exclusive():
            manifest = await self._expected(expected_revision)
            if manifest.package(path) is None:
                raise SetupFailed("package_unknown", f"{path} is not installed")
            if in_use(path):
                raise SetupFailed("package_in_use", f"a device uses {path}")
            async with effect or nullcontext():
                revision = await asyncio.to_thread(self._manifest.write, manifest.without(path))
                await asyncio.to_thread(self._delete, path)
            return revision

    async def roll_back(
        self,
        path: str,
        expected_revision: str,
        *,
        in_use: Callable[[str], bool],
        effect: AbstractAsyncContextManager[None] | None = None,
    ) -> str:
        """Put the older copy of a package back; answers with the manifest's revision.

        Raises:
            SetupFailed: manifest_changed, nothing_to_roll_back or package_in_use before anything is done.
        """
        async with self._exclusive():
            after = (await self._expected(expected_revision)).rolled_back(path)
            if in_use(path):
                raise SetupFailed("package_in_use", f"a device uses {path}")
            async with effect or nullcontext():
                return await asyncio.to_thread(self._swap, self._older(path), path, after, keep_older=False)

    async def recover(self, *, effect: AbstractAsyncContextManager[None] | None = None) -> str:
        """Finish or undo an interrupted change; answers with the manifest's revision."""
        async with self._exclusive(recovering=True), effect or nullcontext():
            return await asyncio.to_thread(self._recover)

    async def damage(self) -> tuple[Damage, ...]:
        """The manifest, when it needs `restore_metadata`."""
        found = await asyncio.to_thread(self._manifest.damage)
        return () if found is None else (found,)

    async def restore_metadata(
        self, digest: str, *, reset: bool, effect: AbstractAsyncContextManager[None] | None = None
    ) -> str:
        """Put the manifest's backup back, or with `reset` begin an empty one; answers with its revision.

        Raises:
            ManageRefused: metadata_unknown or metadata_changed.
            SetupFailed: management_busy.
        """
        async with self._exclusive(recovering=True), effect or nullcontext():
            return await asyncio.to_thread(self._manifest.restore, digest, reset=reset)

    async def clean_up(self, *, effect: AbstractAsyncContextManager[None] | None = None) -> None:
        """Remove downloads and staged folders that no plan needs."""
        async with self._exclusive(), effect or nullcontext():
            for name in ("downloads", "staging"):
                await asyncio.to_thread(shutil.rmtree, self._root / name, ignore_errors=True)
            await asyncio.to_thread(self._make_folders)

    def _exclusive(self, *, recovering: bool = False) -> AbstractAsyncContextManager[None]:
        return _Exclusive(self._turn, recovery=self.recovery_required and not recovering)

    def _make_folders(self) -> None:
        for folder in (self._root, self._root / "downloads", self._root / "staging", self._root / "older"):
            private_directory(folder)
        self.sdk.mkdir(exist_ok=True)

    async def _expected(self, revision: str) -> Manifest:
        manifest, have = await self.manifest()
        if have != revision:
            raise SetupFailed("manifest_changed", "the installed packages are not those that were seen")
        return manifest

    async def _fetch_catalogue(self, within: float) -> Catalogue:
        async def read(url: str) -> Catalogue:
            document = await fetch_document(url, limit=_DOCUMENT_LIMIT, within=within)
            return await asyncio.to_thread(read_repository, document, url, self._host)

        async def newest(names: tuple[str, ...]) -> tuple[bytes, str]:
            for name in names:
                url = urljoin(self._base, name)
                try:
                    return await fetch_document(url, limit=_DOCUMENT_LIMIT, within=within), url
                except SetupFailed as fault:
                    if fault.fields.get("status") != _NOT_FOUND or name == names[-1]:
                        raise
            raise AssertionError("the last name answers or raises")

        document, url = await newest(_REPOSITORIES)
        parts = [await asyncio.to_thread(read_repository, document, url, self._host)]
        parts += await _all_of([read(site) for site in read_sites(*await newest(_SITES))])
        return merged(parts)

    def _check_room(self, plan: Plan) -> None:
        have = shutil.disk_usage(self._root).free
        need = sum(package.archive.size for package in plan.packages) * 4 + (_SPARE if plan.packages else 0)
        if have < need:
            raise SetupFailed("no_space", "not enough free bytes", fields={"need": need, "have": have})

    async def _install(self, package: Package, cancelled: Callable[[], bool]) -> None:
        download = self._root / "downloads" / f"{package.archive.checksum}.zip"
        staged = self._root / "staging" / self._world.token()
        await fetch_archive(package.archive, download, cancelled=cancelled)
        manifest, _ = await self.manifest()
        try:
            await asyncio.to_thread(unpack, download, staged)
            (staged / "package.xml").write_text(local_package_xml(package), encoding="utf-8")
            new = Installed(package.path, package.version, package.archive.checksum, package.licence)
            await asyncio.to_thread(self._swap, staged, package.path, manifest.with_package(new), keep_older=True)
        finally:
            await asyncio.to_thread(shutil.rmtree, staged, ignore_errors=True)
        download.unlink(missing_ok=True)

    def _swap(self, staged: Path, path: str, after: Manifest, *, keep_older: bool) -> str:
        older = self._older(path) if keep_older else self._root / "staging" / self._world.token()
        self._swaps.begin(staged, self._folder(path), older, after)
        revision = self._manifest.write(after)
        self._swaps.finish()
        if not keep_older:
            shutil.rmtree(older, ignore_errors=True)
        return revision

    def _recover(self) -> str:
        after = self._swaps.recover()
        if after is not None:
            self._manifest.write(after)
        self._swaps.finish()
        return self._manifest.read()[1]

    def _delete(self, path: str) -> None:
        for folder in (self._folder(path), self._older(path)):
            shutil.rmtree(folder, ignore_errors=True)

    def _folder(self, path: str) -> Path:
        return self.sdk.joinpath(*path.split(";"))

    def _older(self, path: str) -> Path:
        return self._root / "older" / path.replace(";", "--")


class _Exclusive(AbstractAsyncContextManager[None]):
    """One change at a time: a second one is refused, not queued."""

    def __init__(self, turn: asyncio.Lock, *, recovery: bool) -> None:
        self._turn = turn
        self._recovery = recovery

    async def __aenter__(self) -> None:
        if self._turn.locked():
            raise SetupFailed("management_busy", "another change is under way")
        if self._recovery:
            raise SetupFailed("recovery_required", "an interrupted change must be recovered first")
        await self._turn.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._turn.release()


async def _all_of(reads: list[Coroutine[None, None, Catalogue]]) -> list[Catalogue]:
    """All results in order, a few at a time; the first fault is raised once every read has ended.

    Raises:
        SetupFailed: a read failed.
    """
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(read: Coroutine[None, None, Catalogue]) -> Catalogue | SetupFailed:
        async with places:
            try:
                return await read
            except SetupFailed as fault:
                return fault

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(read)) for read in reads]
    parts: list[Catalogue] = []
    for task in tasks:
        result = task.result()
        if isinstance(result, SetupFailed):
            raise result
        parts.append(result)
    return parts


def local_package_xml(package: Package) -> str:
    """The `package.xml` by which SDK tools know an installed package."""
    major, minor, micro, preview = package.revision
    parts = [("major", major), ("minor", minor), ("micro", micro), ("preview", preview if preview < 1 << 31 else -1)]
    revision = "".join(f"<{name}>{number}</{name}>" for name, number in parts if number >= 0)
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
        '<ns2:repository xmlns:ns2="http://schemas.android.com/repository/android/common/01" '
        'xmlns:ns3="http://schemas.android.com/repository/android/generic/01" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f'<localPackage path={quoteattr(package.path)} obsolete="false">'
        '<type-details xsi:type="ns3:genericDetailsType"/>'
        f"<revision>{revision}</revision><display-name>{escape(package.name)}</display-name>"
        "</localPackage></ns2:repository>\n"
    )


def host_kind(system: str, machine: str) -> HostKind:
    """The archive names for what `platform.system()` and `platform.machine()` say."""
    systems: Mapping[str, str] = {"Linux": "linux", "Darwin": "macosx", "Windows": "windows"}
    arch = "aarch64" if machine.lower() in {"arm64", "aarch64"} else "x64"
    return HostKind(systems.get(system, "linux"), arch)
