"""The private SDK and the managed phones of one home, shared by the handlers: one job changes them at a time."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devices.faults import DeviceFault
from devices.port.faults import reading
from devices.sdk.avds import Image
from devices.sdk.book import DeviceBook, ManagedDevice
from devices.sdk.catalogue import HostKind
from devices.sdk.metadata import Damage
from devices.sdk.setup import Setup
from devices.sdk.swap import Manifest
from devices.spec import DeviceSpec
from devices.world import World
from lomi.contract.android_setup import AndroidManagement
from lomi.contract.codes import ErrorCode
from lomi.core.port import Outcome, Permit
from lomi.core.refusal import Refusal

ImagesOf = Callable[[Path, Manifest], Mapping[str, Image]]
"""Every image that can be booted now, by id, given the private SDK and what is installed in it; blocks."""
SpecOf = Callable[[ManagedDevice, Image, Path, Path], DeviceSpec]
"""A managed phone as what starts it, given the folder of AVDs and the folder of the keys that it must trust."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkSetting:
    """What the composition root knows: where the SDK lies, whom to ask for packages, and what can be booted.

    `names` are the phones of this broker by id, for its owner; the managed ones are kept current in it.
    """

    root: Path
    repository: str
    host: HostKind
    images_of: ImagesOf
    spec_of: SpecOf
    most_devices: int
    names: dict[str, str]


class SdkRoom:
    """Set-up and book of one home. `devices` and `devices_revision` are the book's last known state."""

    def __init__(self, setting: SdkSetting, user_home: Path) -> None:
        world = World()
        self.images: dict[str, Image] = {}
        self.setup = Setup(setting.root, host=setting.host, world=world, base_url=setting.repository)
        self.book = DeviceBook(setting.root, images=self.images, world=world, limit=setting.most_devices)
        self.devices: tuple[ManagedDevice, ...] = ()
        self.devices_revision: str | None = None
        self._setting = setting
        self._user_home = user_home
        self._job: str | None = None
        self._held: str | None = None

    async def open(self) -> tuple[DeviceSpec, ...]:
        """Make the folders and read what is there; answers with the phones whose image can be booted."""
        await self.setup.open()
        await self.book.open()
        await self.reload()
        return tuple(spec for device in self.devices if (spec := self.spec(device)) is not None)

    async def reload(self) -> None:
        """Read images and phones anew; damaged metadata leaves the revision unknown and no phones."""
        try:
            manifest, _ = await self.setup.manifest()
        except DeviceFault:
            manifest = Manifest()
        found = await asyncio.to_thread(self._setting.images_of, self.setup.sdk, manifest)
        self.images.clear()
        self.images.update(found)
        try:
            known, self.devices_revision = await self.book.read()
        except DeviceFault:
            known, self.devices_revision = None, None
        for device in self.devices:
            self._setting.names.pop(device.device_id, None)
        self.devices = known.items if known is not None else ()
        self._setting.names.update({device.device_id: device.name for device in self.devices})

    def spec(self, device: ManagedDevice) -> DeviceSpec | None:
        """What starts a phone, None while its image is not there."""
        image = self.images.get(device.image)
        return None if image is None else self._setting.spec_of(device, image, self.book.avd_home, self._user_home)

    def device(self, device_id: str) -> ManagedDevice | None:
        """A managed phone by id."""
        return next((one for one in self.devices if one.device_id == device_id), None)

    def wire_revision(self) -> str | None:
        """The book's revision as the contract's decimal: the first 64 bits of the digest."""
        return None if self.devices_revision is None else str(int(self.devices_revision[:16], 16))

    async def manifest(self) -> tuple[Manifest, str | None]:
        """What is installed, with its revision; None where the file is damaged."""
        try:
            return await self.setup.manifest()
        except DeviceFault:
            return Manifest(), None

    async def damages(self) -> tuple[Damage, ...]:
        """Metadata files that need `restore_metadata`."""
        return (*await self.book.damage(), *await self.setup.damage())

    def check_free(self, operation_id: str | None) -> None:
        """Refuse a second job.

        Raises:
            Refusal: TARGET_BUSY (management_busy).
        """
        if self._job is not None and self._job != operation_id:
            raise Refusal(ErrorCode.TARGET_BUSY, "management_busy")

    def check_not_held(self, device_id: str) -> None:
        """Refuse to start a phone that a job is changing.

        Raises:
            Refusal: TARGET_BUSY (management_busy).
        """
        if self._held == device_id:
            raise Refusal(ErrorCode.TARGET_BUSY, "management_busy", field="/deviceId")

    @contextmanager
    def job(self, operation_id: str, device_id: str | None = None) -> Iterator[None]:
        """Be the one job, which holds at most one phone.

        Raises:
            Refusal: TARGET_BUSY (management_busy).
        """
        self.check_free(operation_id)
        self._job, self._held = operation_id, device_id
        try:
            yield
        finally:
            self._job, self._held = None, None

    def expect(self, wire_revision: str) -> str:
        """The book's revision, when it is the one that the caller saw.

        Raises:
            Refusal: TARGET_BUSY (metadata_damaged) or REVISION_CONFLICT (devices_changed).
        """
        if self.devices_revision is None:
            raise Refusal(ErrorCode.TARGET_BUSY, "metadata_damaged")
        if self.wire_revision() != wire_revision:
            raise Refusal(ErrorCode.REVISION_CONFLICT, "devices_changed", field="/action/expectedDevicesRevision")
        return self.devices_revision

    async def expect_manifest(self, revision: str) -> Manifest:
        """What is installed, when it is what the caller saw.

        Raises:
            Refusal: REVISION_CONFLICT (devices_changed), or TARGET_BUSY (metadata_damaged).
        """
        with reading():
            manifest, have = await self.setup.manifest()
        if have != revision:
            raise Refusal(ErrorCode.REVISION_CONFLICT, "devices_changed", field="/action/expectedManifestRevision")
        return manifest

    async def done(self, workspace_id: str, permit: Permit, *, device_id: str | None = None) -> Outcome:
        """A job that was carried out, with the revisions after it."""
        _, manifest_revision = await self.manifest()
        return Outcome(
            result=AndroidManagement(
                workspace_id=workspace_id,
                native_operation_id=permit.operation_id,
                device_id=device_id,
                devices_revision=self.wire_revision(),
                manifest_revision=manifest_revision,
            )
        )
