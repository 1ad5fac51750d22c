"""The set-up tools: inventory, catalogue, saved plans, and carrying one out after a person's consent."""

from collections.abc import Callable

import msgspec

from devices.port.consent import setup_consent
from devices.port.faults import acting, reading
from devices.port.lives import Lives
from devices.port.sdk_room import SdkRoom
from devices.sdk.book import ManagedDevice
from devices.sdk.catalogue import Package
from devices.sdk.faults import SetupFailed
from devices.sdk.plans import Plan as SetupPlan
from devices.sdk.profiles import PROFILES
from lomi.contract import android_setup as wire
from lomi.contract.codes import Details, EffectState, ErrorCode, OperationState
from lomi.core.grant import Grant
from lomi.core.port import Call, Ledger, Outcome, Permit, Plan, Reply, ResourceKey
from lomi.core.refusal import EffectFailed, Refusal

_PAGE_BYTES = 44 * 1024
"""Of the 48 KiB of a reply; the rest is the envelope's."""


class AndroidSetup:
    """Handlers of `lomi_android_setup_plan` and `lomi_android_setup_apply`."""

    def __init__(self, room: SdkRoom, lives: Lives, ledger: Ledger, monotonic: Callable[[], float]) -> None:
        self._room = room
        self._lives = lives
        self._ledger = ledger
        self._monotonic = monotonic

    async def read(self, call: Call[wire.SetupPlanInput]) -> Reply:
        """The one part that was asked for."""
        match call.input.action:
            case wire.Inventory():
                return await self._inventory(call.grant)
            case wire.Catalog() as page:
                with reading():
                    return await self._catalogue(page)
            case wire.Prepare() as wanted:
                with reading():
                    return await self._prepare(wanted)

    async def _inventory(self, grant: Grant) -> Reply:
        room = self._room
        manifest, revision = await room.manifest()
        view = wire.InventoryView(
            devices_revision=room.wire_revision(),
            manifest_revision=revision,
            host_qualified=True,
            devices=tuple(self._device(one) for one in room.devices if grant.admits_device(one.device_id)),
            installed=tuple(wire.InstalledPackage(id=one.path, revision=one.version) for one in manifest.installed),
            profiles=tuple(
                wire.HardwareProfile(
                    id=one.id,
                    name=one.name,
                    width=one.display.width,
                    height=one.display.height,
                    min_api=one.min_api,
                    min_minor_api=0,
                )
                for one in PROFILES
            ),
            recovery_required=room.setup.recovery_required,
            recovery=tuple(
                wire.Recovery(
                    file="devices" if one.file == "devices" else "preferences",
                    digest=one.digest,
                    backup_revision=one.backup_revision,
                )
                for one in await room.damages()
            ),
            rollbacks=tuple(wire.InstalledPackage(id=one.path, revision=one.version) for one in manifest.rollbacks),
        )
        lines = [f"devicesRevision {view.devices_revision}", f"manifestRevision {view.manifest_revision}"]
        lines += [f"phone {one.name} {one.device_id}: image {one.image}" for one in view.devices]
        lines += [f"installed {one.id} {one.revision}" for one in view.installed]
        lines += [f"earlier copy {one.id} {one.revision}" for one in view.rollbacks]
        lines += [f"damaged {one.file} {one.digest}" for one in view.recovery]
        lines += ["recovery is needed: action `recover`"] if view.recovery_required else []
        lines.append("profiles: " + ", ".join(one.id for one in view.profiles))
        lines.append("images to create from: " + ", ".join(sorted(room.images)))
        return Reply(data=wire.AndroidSetup(inventory=view), text="\n".join(lines))

    def _device(self, device: ManagedDevice) -> wire.ManagedDevice:
        phone, hardware = self._lives.known(device.device_id), device.hardware
        return wire.ManagedDevice(
            device_id=device.device_id,
            name=device.name,
            image=device.image,
            image_revision=device.image_revision,
            profile=device.profile,
            hardware=wire.Hardware(
                ram_mib=hardware.ram_mib,
                cpu_count=hardware.cpu_count,
                data_gib=hardware.data_gib,
                gpu=hardware.gpu,  # type: ignore[arg-type]  # checked when the phone was made
                quick_boot=hardware.quick_boot,
            ),
            generation=self._ledger.current(ResourceKey("android", device.device_id)),
            process_alive=phone is not None and phone.process_alive,
        )

    async def _catalogue(self, page: wire.Catalog) -> Reply:
        catalogue = await self._room.setup.catalogue(refresh=page.refresh)
        if page.expected_catalog_revision not in (None, catalogue.revision):
            raise Refusal(ErrorCode.REVISION_CONFLICT, "catalog_changed", field="/action/expectedCatalogRevision")
        rows: list[wire.CatalogPackage] = []
        size = 0
        for package in catalogue.packages[page.offset : page.offset + page.limit]:
            row = _row(package)
            size += len(msgspec.json.encode(row)) + 1
            if rows and size > _PAGE_BYTES:
                break
            rows.append(row)
        after = page.offset + len(rows)
        view = wire.CatalogView(
            catalog_revision=catalogue.revision,
            packages=tuple(rows),
            next_offset=after if after < len(catalogue.packages) else None,
        )
        lines = [f"catalogRevision {view.catalog_revision}"]
        lines += [f"{row.id} {row.revision}: {row.name}, {row.bytes} bytes" for row in rows]
        lines.append(f"next offset {after}" if view.next_offset is not None else "end of the catalogue")
        return Reply(data=wire.AndroidSetup(catalog=view), text="\n".join(lines))

    async def _prepare(self, wanted: wire.Prepare) -> Reply:
        choices = tuple((one.id, one.revision) for one in wanted.packages)
        setup = self._room.setup
        plan = await setup.prepare(wanted.catalog_revision, choices, tools=wanted.prepare_tools)
        view = wire.PreparedPlan(
            plan_id=plan.id,
            revision=plan.revision,
            downloads=tuple(_row(package) for package in plan.packages),
            licenses=tuple(wire.PlanLicense(id=one.id, digest=one.digest) for one in plan.licences),
            download_bytes=plan.download_bytes,
            target=plan.target,
            expires_in_seconds=max(0, round(plan.expires - self._monotonic())),
        )
        lines = [f"planId {view.plan_id}", f"planRevision {view.revision}"]
        lines += [f"download {row.id} {row.revision}, {row.bytes} bytes" for row in view.downloads]
        lines += [f"licence {one.id} {one.digest}: a person must agree" for one in view.licenses]
        return Reply(data=wire.AndroidSetup(prepared=view), text="\n".join(lines))

    def check(self, call: Call[wire.SetupApplyInput]) -> None:
        """One job at a time."""
        self._room.check_free(call.operation_id)

    def _plan(self, given: wire.SetupApplyInput) -> SetupPlan:
        return self._room.setup.plan(given.plan_id, given.plan_revision)

    async def consent(self, call: Call[wire.SetupApplyInput]) -> Plan:
        """What a person decides on: downloads, and every licence whole."""
        with reading():
            return setup_consent(self._plan(call.input))

    async def apply(self, call: Call[wire.SetupApplyInput], permit: Permit) -> Outcome:
        """Carry the plan out. The revision holds the digests of the very texts that were agreed to."""
        room, stop = self._room, _Stop(permit)
        with room.job(permit.operation_id):
            try:
                with acting():
                    plan = self._plan(call.input)
                    self._check_unused(plan)
                    agreed = frozenset(licence.digest for licence in plan.licences)
                    await self._installed(plan, agreed, permit, stop)
            except _Stopped as stopped:
                if permit.cancelling:
                    effect = EffectState.PARTIAL if stopped.partial else EffectState.NONE
                    return Outcome(result=None, state=OperationState.CANCELLED, effect=effect)
                ended = Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
                raise EffectFailed(ended, partial=stopped.partial) from stopped
            finally:
                stop.asked_by_end = True
                await self._lives.refresh(room)
        return await room.done(call.input.workspace_id, permit)

    async def _installed(self, plan: SetupPlan, agreed: frozenset[str], permit: Permit, stop: "_Stop") -> None:
        async def progress(number: int, package: Package) -> None:
            count, size = len(plan.packages), package.archive.size
            await permit.report(f"{package.path} {package.version}, {number + 1} of {count}, {size} bytes")

        try:
            await self._room.setup.apply(plan, agreed, effect=permit.effect(), progress=progress, cancelled=stop)
        except SetupFailed as fault:
            if stop():
                raise _Stopped(partial=fault.effect == "partial") from fault
            raise

    def _check_unused(self, plan: SetupPlan) -> None:
        used = self._lives.packages_in_use(self._room)
        for package in plan.packages:
            if package.path in used:
                raise Refusal(ErrorCode.TARGET_BUSY, "phone_running", details=Details(state=package.path))


def _row(package: Package) -> wire.CatalogPackage:
    return wire.CatalogPackage(
        id=package.path,
        revision=package.version,
        name=package.name,
        url=package.archive.url,
        bytes=package.archive.size,
        checksum=f"{package.archive.checksum_type}:{package.archive.checksum}",
        license_id=package.licence,
        dependencies=tuple(path for path, _ in package.dependencies),
    )


class _Stop:
    """Whether a download should end: asked between reads, in its thread."""

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self.asked_by_end = False

    def __call__(self) -> bool:
        return self.asked_by_end or self._permit.cancelling or self._permit.revoked


class _Stopped(Exception):  # noqa: N818  it is an answer
    """Raised when a job ended since it was asked to."""

    def __init__(self, *, partial: bool) -> None:
        super().__init__("stopped")
        self.partial = partial
