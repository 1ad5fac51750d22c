"""Android set-up tools: plan, apply, and manage phones and packages."""

from typing import Annotated, Literal

import msgspec

from lomi.contract.bounds import LINE, Decimal, Hex64, Id, OutOfBounds, Uuid, items, number, text
from lomi.contract.definition import define
from lomi.contract.model import Data, KeyedInput, Model, Result, WorkspaceInput

_Name = Annotated[str, text(128, shortest=1, pattern=LINE, shown=False)]
_PackageId = Annotated[str, text(256, shortest=1, shown=False)]


class Inventory(Model, frozen=True, kw_only=True, tag_field="type", tag="inventory"):
    """What is there."""


class Catalog(Model, frozen=True, kw_only=True, tag_field="type", tag="catalog"):
    """A page of what can be downloaded; past the first page `expectedCatalogRevision` is needed."""

    refresh: bool = False
    offset: Annotated[int, number(0, 4096)] = 0
    limit: Annotated[int, number(1, 32)] = 32
    expected_catalog_revision: Hex64 | None = None


class PackageChoice(Model, frozen=True, kw_only=True):
    """One exact package."""

    id: _PackageId
    revision: Annotated[str, text(64, shortest=1, shown=False)]


class Prepare(Model, frozen=True, kw_only=True, tag_field="type", tag="prepare"):
    """Save a plan for these packages; `prepareTools` adds the SDK's own tools."""

    catalog_revision: Hex64
    packages: Annotated[tuple[PackageChoice, ...], items(16)]
    prepare_tools: bool = False


class SetupPlanInput(WorkspaceInput, frozen=True, kw_only=True):
    """What to observe or to prepare."""

    action: Inventory | Catalog | Prepare


class Hardware(Model, frozen=True, kw_only=True):
    """A phone's hardware. Sizes in MiB and GiB."""

    ram_mib: Annotated[int, number(512, 65_536)]
    cpu_count: Annotated[int, number(1, 64)]
    data_gib: Annotated[int, number(1, 1024)]
    gpu: Literal["auto", "host", "software"]
    quick_boot: bool


class ManagedDevice(Model, frozen=True, kw_only=True):
    """A phone as it is defined."""

    device_id: str
    name: str
    image: str
    image_revision: str
    profile: str
    hardware: Hardware
    generation: str | None
    process_alive: bool


class InstalledPackage(Model, frozen=True, kw_only=True):
    """A package on disk."""

    id: str
    revision: str


class HardwareProfile(Model, frozen=True, kw_only=True):
    """A display and the Android versions that it fits."""

    id: str
    name: str
    width: int
    height: int
    min_api: int
    min_minor_api: int


class Recovery(Model, frozen=True, kw_only=True):
    """A metadata file that needs a person's decision."""

    file: Literal["devices", "preferences"]
    digest: str
    backup_revision: str | None


class InventoryView(Model, frozen=True, kw_only=True):
    """Phones, packages, profiles, and what needs recovery."""

    devices_revision: str | None
    manifest_revision: str | None
    host_qualified: bool
    devices: tuple[ManagedDevice, ...]
    installed: tuple[InstalledPackage, ...]
    profiles: tuple[HardwareProfile, ...]
    recovery_required: bool
    recovery: tuple[Recovery, ...]
    rollbacks: tuple[InstalledPackage, ...]


class CatalogPackage(Model, frozen=True, kw_only=True):
    """One package that can be downloaded.

    `bytes` is the size of the archive, `checksum` as the repository states it.
    """

    id: str
    revision: str
    name: str
    url: str
    bytes: int
    checksum: str
    license_id: str | None
    dependencies: tuple[str, ...]


class CatalogView(Model, frozen=True, kw_only=True):
    """A page of the catalogue."""

    catalog_revision: str
    packages: tuple[CatalogPackage, ...]
    next_offset: int | None


class PlanLicense(Model, frozen=True, kw_only=True):
    """A licence that must be consented to, by the digest of its text."""

    id: str
    digest: str


class PreparedPlan(Model, frozen=True, kw_only=True):
    """A saved plan; it can't change, and it expires."""

    plan_id: str
    revision: str
    downloads: tuple[CatalogPackage, ...]
    licenses: tuple[PlanLicense, ...]
    download_bytes: int
    target: str
    expires_in_seconds: int


class AndroidSetup(Data, frozen=True, kw_only=True, tag_field="kind", tag="android_setup"):
    """The one part that was asked for."""

    inventory: InventoryView | msgspec.UnsetType = msgspec.UNSET
    catalog: CatalogView | msgspec.UnsetType = msgspec.UNSET
    prepared: PreparedPlan | msgspec.UnsetType = msgspec.UNSET


class SetupApplyInput(KeyedInput, frozen=True, kw_only=True):
    """The saved plan to carry out."""

    plan_id: Id
    plan_revision: Hex64


class CreateDevice(Model, frozen=True, kw_only=True, tag_field="type", tag="create"):
    """A new phone."""

    expected_devices_revision: Decimal
    name: _Name
    image: _PackageId
    profile: _Name
    hardware: Hardware


class ModifyDevice(Model, frozen=True, kw_only=True, tag_field="type", tag="modify"):
    """Another name, profile or hardware; `dataGib` can't change."""

    expected_devices_revision: Decimal
    device_id: Uuid
    generation: Uuid | None = None
    name: _Name
    profile: _Name
    hardware: Hardware


class WipeDevice(Model, frozen=True, kw_only=True, tag_field="type", tag="wipe"):
    """Erase a phone's data; `confirmation` is its exact name."""

    expected_devices_revision: Decimal
    device_id: Uuid
    generation: Uuid | None = None
    confirmation: _Name


class DeleteDevice(Model, frozen=True, kw_only=True, tag_field="type", tag="delete"):
    """Delete a phone; `confirmation` is its exact name."""

    expected_devices_revision: Decimal
    device_id: Uuid
    generation: Uuid | None = None
    confirmation: _Name


class RecoverSetup(Model, frozen=True, kw_only=True, tag_field="type", tag="recover"):
    """Finish or undo an interrupted installation."""


class CleanUp(Model, frozen=True, kw_only=True, tag_field="type", tag="cleanup"):
    """Remove what interrupted work left behind."""


class RestoreMetadata(Model, frozen=True, kw_only=True, tag_field="type", tag="restore_metadata"):
    """Put a damaged metadata file back from its backup, or reset it."""

    file: Literal["devices", "preferences"]
    digest: Hex64
    reset: bool


class RemovePackage(Model, frozen=True, kw_only=True, tag_field="type", tag="remove_package"):
    """Remove an installed package."""

    package_id: _PackageId
    expected_manifest_revision: Id


class RollbackPackage(Model, frozen=True, kw_only=True, tag_field="type", tag="rollback_package"):
    """Put back the one earlier copy of a package."""

    package_id: _PackageId
    expected_manifest_revision: Id


DeviceAction = CreateDevice | ModifyDevice | WipeDevice | DeleteDevice
SetupAction = RecoverSetup | CleanUp | RestoreMetadata | RemovePackage | RollbackPackage


class DeviceManageInput(KeyedInput, frozen=True, kw_only=True):
    """One change, at most 8 KiB."""

    action: DeviceAction | SetupAction


class AndroidManagement(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_management"):
    """A change that was carried out, with the revisions after it."""

    workspace_id: str
    native_operation_id: str
    device_id: str | None
    devices_revision: str | None
    manifest_revision: str | None


ACTION_BYTES = 8 * 1024


def _plan_rule(given: SetupPlanInput) -> None:
    action = given.action
    if isinstance(action, Catalog) and action.offset > 0 and action.expected_catalog_revision is None:
        raise OutOfBounds("/action/expectedCatalogRevision", "field_needed")


def _plan_scopes(given: SetupPlanInput) -> tuple[str, ...]:
    return () if isinstance(given.action, Inventory) else ("android.setup",)


def _inventory_scopes(given: SetupPlanInput) -> tuple[str, ...]:
    return ("android.setup", "android.manage") if isinstance(given.action, Inventory) else ()


def _manage_rule(given: DeviceManageInput) -> None:
    if len(msgspec.json.encode(given.action)) > ACTION_BYTES:
        raise OutOfBounds("/action", "too_long", limit=ACTION_BYTES)


def _manage_scopes(given: DeviceManageInput) -> tuple[str, ...]:
    return ("android.manage",) if isinstance(given.action, DeviceAction) else ("android.setup",)


TOOLS = (
    define(
        name="lomi_android_setup_plan",
        family="android",
        purpose="Observe the inventory or the download catalogue, or save a plan of what to install.",
        input=SetupPlanInput,
        results=(AndroidSetup,),
        scopes=("android.read",),
        more_scopes=_plan_scopes,
        either_scopes=_inventory_scopes,
        more_scopes_text=("inventory: android.setup or android.manage", "catalog, prepare: android.setup"),
        rule=_plan_rule,
        open_world=True,
        deadline_s=45.0,
        queue="none",
        notes=("At most 8 plans are kept, each for 1800 s.",),
    ),
    define(
        name="lomi_android_setup_apply",
        family="android",
        purpose="Download and install a saved plan, after a person has consented to each licence.",
        input=SetupApplyInput,
        results=(AndroidManagement,),
        scopes=("android.read", "android.setup"),
        mutation=True,
        destructive=True,
        open_world=True,
        deadline_s=7200.0,
        decision_s=600.0,
        notes=("One management job at a time.", "Consent is given to each digest and is never an argument."),
    ),
    define(
        name="lomi_android_device_manage",
        family="android",
        purpose="Create, change, wipe, delete or repair phones and packages, after a decision.",
        input=DeviceManageInput,
        results=(AndroidManagement,),
        scopes=("android.read",),
        more_scopes=_manage_scopes,
        more_scopes_text=(
            "create, modify, wipe, delete: android.manage",
            "recover, cleanup, restore_metadata, remove_package, rollback_package: android.setup",
        ),
        rule=_manage_rule,
        mutation=True,
        destructive=True,
        deadline_s=7200.0,
        decision_s=600.0,
        notes=("The phone must be stopped and its generation must match.",),
    ),
)
