"""The managed devices: who exists, made from what, and every change to that with its confirmation."""

import asyncio
import re
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec

from devices.sdk import avds
from devices.sdk.avds import Hardware, Image
from devices.sdk.faults import ManageRefused
from devices.sdk.metadata import Damage, MetadataFile
from devices.sdk.profiles import Profile, profile
from devices.world import World
from lomi.disk.private import private_directory

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?$")
_MAX_DEVICES = 64
Effect = AbstractAsyncContextManager[None]


class ManagedDevice(msgspec.Struct, frozen=True):
    """One device: `device_id` is a UUID, `avd` the name of its files, `image` and its revision what it boots."""

    device_id: str
    name: str
    avd: str
    image: str
    image_revision: str
    profile: str
    hardware: Hardware


class Devices(msgspec.Struct, frozen=True):
    """All managed devices."""

    items: tuple[ManagedDevice, ...] = ()


class DeviceBook:
    """The devices of one home; changes run one at a time and name the revision they were decided on.

    `images` are what can be booted now, by id; the composition root knows them. A device must be stopped for every
    change: the caller refuses a running one before it comes here.
    """

    def __init__(self, root: Path, *, images: Mapping[str, Image], world: World, limit: int = _MAX_DEVICES) -> None:
        self.avd_home = root / "avd"
        self._root = root
        self._images = images
        self._world = world
        self._limit = limit
        self._file = MetadataFile(root / "devices.json", Devices, Devices())
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Make the folders; call it once."""
        await asyncio.to_thread(private_directory, self._root)
        await asyncio.to_thread(private_directory, self.avd_home)

    async def read(self) -> tuple[Devices, str]:
        """The devices and their revision.

        Raises:
            ManageRefused: reason metadata_damaged.
        """
        return await asyncio.to_thread(self._file.read)

    async def damage(self) -> tuple[Damage, ...]:
        """Metadata files that need `restore_metadata`."""
        found = await asyncio.to_thread(self._file.damage)
        return () if found is None else (found,)

    async def create(
        self,
        expected_revision: str,
        *,
        name: str,
        image: str,
        profile_id: str,
        hardware: Hardware,
        effect: Effect | None = None,
    ) -> tuple[ManagedDevice, str]:
        """Make a device; answers with it and the new revision.

        Raises:
            ManageRefused: devices_changed, bad_name, name_taken, image_unknown, profile_unknown, bad_hardware or
                too_many_devices before anything is done.
        """
        async with self._turn:
            known = await self._expected(expected_revision)
            found, kind = self._image(image), self._profile(profile_id, image)
            self._check_name(name, known, but=None)
            hardware.check()
            if len(known.items) >= self._limit:
                raise ManageRefused("too_many_devices", f"{self._limit} devices exist", fields={"limit": self._limit})
            token = self._world.token()
            device = ManagedDevice(
                device_id=str(uuid.UUID(hex=token, version=4)),
                name=name,
                avd=f"lomi_{token[:12]}",
                image=found.id,
                image_revision=found.revision,
                profile=kind.id,
                hardware=hardware,
            )
            async with effect or nullcontext():
                await self._write_avd(device, found, kind)
                revision = await self._store(Devices((*known.items, device)))
            return device, revision

    async def modify(
        self,
        expected_revision: str,
        device_id: str,
        *,
        name: str,
        profile_id: str,
        hardware: Hardware,
        effect: Effect | None = None,
    ) -> str:
        """Change a device's name, profile or hardware; answers with the new revision.

        Raises:
            ManageRefused: as for `create`, device_unknown, or data_size_fixed: storage cannot change its size.
        """
        async with self._turn:
            known = await self._expected(expected_revision)
            device = self._device(known, device_id)
            found, kind = self._image(device.image), self._profile(profile_id, device.image)
            self._check_name(name, known, but=device_id)
            hardware.check()
            if hardware.data_gib != device.hardware.data_gib:
                raise ManageRefused("data_size_fixed", "the size of the storage cannot change")
            changed = msgspec.structs.replace(device, name=name, profile=kind.id, hardware=hardware)
            async with effect or nullcontext():
                await self._write_avd(changed, found, kind)
                rest = (changed if one.device_id == device_id else one for one in known.items)
                return await self._store(Devices(tuple(rest)))

    async def wipe(
        self, expected_revision: str, device_id: str, *, confirmation: str, effect: Effect | None = None
    ) -> str:
        """Remove what a device stored; `confirmation` is its exact name.

        Raises:
            ManageRefused: devices_changed, device_unknown or wrong_confirmation before anything is done.
        """
        async with self._turn:
            device = self._confirmed(await self._expected(expected_revision), device_id, confirmation)
            async with effect or nullcontext():
                await asyncio.to_thread(avds.wipe_avd, self.avd_home, device.avd)
            return expected_revision

    async def delete(
        self, expected_revision: str, device_id: str, *, confirmation: str, effect: Effect | None = None
    ) -> str:
        """Remove a device and its files; `confirmation` is its exact name. Answers with the new revision.

        Raises:
            ManageRefused: devices_changed, device_unknown or wrong_confirmation before anything is done.
        """
        async with self._turn:
            known = await self._expected(expected_revision)
            device = self._confirmed(known, device_id, confirmation)
            async with effect or nullcontext():
                revision = await self._store(Devices(tuple(one for one in known.items if one.device_id != device_id)))
                await asyncio.to_thread(avds.delete_avd, self.avd_home, device.avd)
            return revision

    async def restore_metadata(self, file: str, digest: str, *, reset: bool, effect: Effect | None = None) -> str:
        """Put a damaged file's backup back. The devices file is never reset: its devices would be lost.

        Raises:
            ManageRefused: metadata_unknown, metadata_changed or unsupported_reset.
        """
        if file != self._file.path.stem:
            raise ManageRefused("metadata_unknown", f"no file {file}")
        if reset:
            raise ManageRefused("unsupported_reset", "the devices file is not reset")
        async with self._turn, effect or nullcontext():
            return await asyncio.to_thread(self._file.restore, digest, reset=False)

    async def clean_up(self, *, effect: Effect | None = None) -> tuple[str, ...]:
        """Remove AVD files of ours that no device names, left by an interrupted change; answers with their names."""
        async with self._turn, effect or nullcontext():
            known, _ = await self.read()
            named = {device.avd for device in known.items}
            stems = await asyncio.to_thread(lambda: {path.stem for path in self.avd_home.glob("lomi_*")})
            orphans = tuple(sorted(stems - named))
            for name in orphans:
                await asyncio.to_thread(avds.delete_avd, self.avd_home, name)
            return orphans

    async def uses(self, image: str) -> bool:
        """Whether a device boots this image."""
        known, _ = await self.read()
        return any(device.image == image for device in known.items)

    async def _expected(self, revision: str) -> Devices:
        known, have = await self.read()
        if have != revision:
            raise ManageRefused("devices_changed", "the devices are not those that were seen")
        return known

    async def _store(self, devices: Devices) -> str:
        return await asyncio.to_thread(self._file.write, devices)

    async def _write_avd(self, device: ManagedDevice, image: Image, kind: Profile) -> None:
        config = avds.config_of(device.avd, device.name, image, kind, device.hardware)
        await asyncio.to_thread(avds.write_avd, self.avd_home, device.avd, config, api=image.api)

    def _image(self, identifier: str) -> Image:
        found = self._images.get(identifier)
        if found is None:
            raise ManageRefused("image_unknown", f"no image {identifier}")
        return found

    def _profile(self, identifier: str, image: str) -> Profile:
        found = profile(identifier)
        if found is None or found.min_api > self._image(image).api:
            raise ManageRefused("profile_unknown", f"no profile {identifier} for this image")
        return found

    def _device(self, known: Devices, device_id: str) -> ManagedDevice:
        for device in known.items:
            if device.device_id == device_id:
                return device
        raise ManageRefused("device_unknown", "no such device")

    def _confirmed(self, known: Devices, device_id: str, confirmation: str) -> ManagedDevice:
        device = self._device(known, device_id)
        if device.name != confirmation:
            raise ManageRefused("wrong_confirmation", "the confirmation is not the device's name")
        return device

    def _check_name(self, name: str, known: Devices, *, but: str | None) -> None:
        if not _NAME.fullmatch(name):
            raise ManageRefused("bad_name", "letters, digits, blank, dot, dash and underscore; 1 to 64 of them")
        if any(one.name == name and one.device_id != but for one in known.items):
            raise ManageRefused("name_taken", "another device has this name")
