"""Changes of managed phones and packages: each decided by a person, each the only one at its time."""

from collections.abc import Awaitable, Callable
from typing import Any

from devices.port.consent import manage_consent
from devices.port.faults import acting
from devices.port.lives import Lives
from devices.port.sdk_room import SdkRoom
from devices.sdk.avds import Hardware
from devices.sdk.book import ManagedDevice
from lomi.contract import android_setup as wire
from lomi.contract.codes import ErrorCode
from lomi.core.port import Call, Ledger, Outcome, Permit, Plan, ResourceKey
from lomi.core.refusal import Refusal

_OfPhone = wire.ModifyDevice | wire.WipeDevice | wire.DeleteDevice
_OfPackage = wire.RemovePackage | wire.RollbackPackage
_Change = Callable[[Any, Permit], Awaitable[ManagedDevice | None]]
ManageCall = Call[wire.DeviceManageInput]


class AndroidManage:
    """The handler of `lomi_android_device_manage`."""

    def __init__(self, room: SdkRoom, lives: Lives, ledger: Ledger) -> None:
        self._room = room
        self._lives = lives
        self._ledger = ledger

    def check(self, call: ManageCall) -> None:
        """What lives in memory: no other job, and a phone in sight that is stopped in the life that was named."""
        self._room.check_free(call.operation_id)
        action = call.input.action
        if isinstance(action, _OfPhone):
            self._check_phone(call, action)

    def _check_phone(self, call: ManageCall, action: _OfPhone) -> None:
        device_id = action.device_id
        if not call.grant.admits_device(device_id) or self._room.device(device_id) is None:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/action/deviceId")
        current = self._ledger.current(ResourceKey("android", device_id))
        if action.generation is not None and action.generation != current:
            reason = "generation_ended" if current is None else "generation_replaced"
            raise Refusal(ErrorCode.STALE_GENERATION, reason, field="/action/generation")
        phone = self._lives.known(device_id)
        if phone is not None and (phone.process_alive or phone.phase in ("starting", "booting")):
            raise Refusal(ErrorCode.TARGET_BUSY, "phone_running", field="/action/deviceId")

    async def consent(self, call: ManageCall) -> Plan:
        """What a person decides on, if the caller saw what is there and confirmed it."""
        action, device = call.input.action, None
        if isinstance(action, wire.CreateDevice | _OfPhone):
            self._room.expect(action.expected_devices_revision)
        if isinstance(action, _OfPhone):
            device = self._room.device(action.device_id)
        if isinstance(action, wire.WipeDevice | wire.DeleteDevice) and (
            device is None or device.name != action.confirmation
        ):
            raise Refusal(ErrorCode.REVISION_CONFLICT, "confirmation_wrong", field="/action/confirmation")
        if isinstance(action, _OfPackage):
            await self._room.expect_manifest(action.expected_manifest_revision)
        return manage_consent(call.input, device)

    async def act(self, call: ManageCall, permit: Permit) -> Outcome:
        """Make the one change; the book and the set-up check every revision and confirmation once more."""
        action = call.input.action
        held = action.device_id if isinstance(action, _OfPhone) else None
        with self._room.job(permit.operation_id, held):
            try:
                with acting():
                    made = await self._change(action)(action, permit)
            finally:
                await self._lives.refresh(self._room)
            device_id = made.device_id if made is not None else held
            if made is not None:
                self._ledger.admit_device(call.session_id, made.device_id)
            return await self._room.done(call.input.workspace_id, permit, device_id=device_id)

    def _change(self, action: wire.DeviceAction | wire.SetupAction) -> _Change:
        changes: dict[type, _Change] = {
            wire.CreateDevice: self._create,
            wire.ModifyDevice: self._modify,
            wire.WipeDevice: self._wipe,
            wire.DeleteDevice: self._delete,
            wire.RecoverSetup: self._recover,
            wire.CleanUp: self._clean_up,
            wire.RestoreMetadata: self._restore,
            wire.RemovePackage: self._remove,
            wire.RollbackPackage: self._roll_back,
        }
        return changes[type(action)]

    async def _create(self, action: wire.CreateDevice, permit: Permit) -> ManagedDevice:
        device, _ = await self._room.book.create(
            self._room.expect(action.expected_devices_revision),
            name=action.name,
            image=action.image,
            profile_id=action.profile,
            hardware=_hardware(action.hardware),
            effect=permit.effect(),
        )
        return device

    async def _modify(self, action: wire.ModifyDevice, permit: Permit) -> None:
        await self._room.book.modify(
            self._room.expect(action.expected_devices_revision),
            action.device_id,
            name=action.name,
            profile_id=action.profile,
            hardware=_hardware(action.hardware),
            effect=permit.effect(),
        )

    async def _wipe(self, action: wire.WipeDevice, permit: Permit) -> None:
        await self._room.book.wipe(
            self._room.expect(action.expected_devices_revision),
            action.device_id,
            confirmation=action.confirmation,
            effect=permit.effect(),
        )

    async def _delete(self, action: wire.DeleteDevice, permit: Permit) -> None:
        await self._room.book.delete(
            self._room.expect(action.expected_devices_revision),
            action.device_id,
            confirmation=action.confirmation,
            effect=permit.effect(),
        )

    async def _recover(self, _: wire.RecoverSetup, permit: Permit) -> None:
        await self._room.setup.recover(effect=permit.effect())

    async def _clean_up(self, _: wire.CleanUp, permit: Permit) -> None:
        await self._room.setup.clean_up(effect=permit.effect())
        await self._room.book.clean_up(effect=permit.effect())

    async def _restore(self, action: wire.RestoreMetadata, permit: Permit) -> None:
        if action.file == "devices":
            await self._room.book.restore_metadata("devices", action.digest, reset=action.reset, effect=permit.effect())
        else:
            await self._room.setup.restore_metadata(action.digest, reset=action.reset, effect=permit.effect())

    async def _remove(self, action: wire.RemovePackage, permit: Permit) -> None:
        await self._room.setup.remove(
            action.package_id, action.expected_manifest_revision, in_use=self._in_use, effect=permit.effect()
        )

    async def _roll_back(self, action: wire.RollbackPackage, permit: Permit) -> None:
        running = self._lives.packages_in_use(self._room)
        await self._room.setup.roll_back(
            action.package_id,
            action.expected_manifest_revision,
            in_use=lambda path: path in running,
            effect=permit.effect(),
        )

    def _in_use(self, path: str) -> bool:
        return path in self._lives.packages_in_use(self._room) or any(d.image == path for d in self._room.devices)


def _hardware(given: wire.Hardware) -> Hardware:
    return Hardware(
        ram_mib=given.ram_mib,
        cpu_count=given.cpu_count,
        data_gib=given.data_gib,
        gpu=given.gpu,
        quick_boot=given.quick_boot,
    )
