"""What a person reads before a set-up or management job: whole, in lines that nothing fetched can forge."""

from devices.sdk.book import ManagedDevice
from devices.sdk.plans import Plan as SetupPlan
from lomi.contract.android_setup import (
    CleanUp,
    CreateDevice,
    DeviceManageInput,
    Hardware,
    ModifyDevice,
    RecoverSetup,
    RemovePackage,
    RestoreMetadata,
    RollbackPackage,
)
from lomi.core.port import Plan

RESET_PHRASE = "reset preferences"


def setup_consent(plan: SetupPlan) -> Plan:
    """Every download and the full text of every licence; the binding names each text's digest."""
    lines = [f"into {plan.target}", f"{plan.download_bytes} bytes in {len(plan.packages)} downloads"]
    for package in plan.packages:
        archive = package.archive
        lines.append(f"package {package.path} {package.version}, {archive.size} bytes, licence {package.licence}")
        lines.append(f"  from {archive.url}, {archive.checksum_type} {archive.checksum}")
    for licence in plan.licences:
        lines.append(f"licence {licence.id}, sha1 {licence.digest}; allowing this agrees to the whole text:")
        lines += [f"  | {line}" for line in licence.text.splitlines()]
    return Plan(
        title="Download and install Android packages, agreeing to their licences",
        lines=tuple(lines),
        binding=(
            ("plan", plan.id),
            ("revision", plan.revision),
            *((f"licence {licence.id}", licence.digest) for licence in plan.licences),
        ),
    )


def manage_consent(given: DeviceManageInput, device: ManagedDevice | None) -> Plan:
    """One change of a phone, of a package or of the set-up itself."""
    action = given.action
    binding: list[tuple[str, str]] = [("action", action.__struct_config__.tag)]  # type: ignore[list-item]
    phrase: str | None = None
    if device is not None:
        binding += [("device", device.device_id), ("name", device.name)]
    match action:
        case CreateDevice():
            title = "Create a phone"
            lines = [f"name {action.name}", f"image {action.image}", *_hardware(action.profile, action.hardware)]
        case ModifyDevice():
            title = "Change a phone"
            lines = [f"phone {_named(device)}", f"new name {action.name}", *_hardware(action.profile, action.hardware)]
        case RecoverSetup():
            title, lines = "Recover the Android set-up", ["finish or undo the interrupted installation"]
        case CleanUp():
            title, lines = "Clean up the Android set-up", ["remove downloads and files that no phone names"]
        case RestoreMetadata():
            how = "forget it and begin an empty one" if action.reset else "put its backup back"
            title, lines = "Restore a metadata file", [f"file {action.file}, sha256 {action.digest}", how]
            binding += [("file", action.file), ("digest", action.digest)]
            phrase = RESET_PHRASE if action.reset else None
        case RemovePackage() | RollbackPackage():
            removing = isinstance(action, RemovePackage)
            title = "Remove an Android package" if removing else "Put an earlier Android package back"
            lines = [f"package {action.package_id}"]
            binding += [("package", action.package_id), ("revision", action.expected_manifest_revision)]
        case _:
            deleting = type(action).__name__ == "DeleteDevice"
            title = "Delete a phone and its files" if deleting else "Erase everything on a phone"
            lines, phrase = [f"phone {_named(device)}"], action.confirmation
    if phrase is not None:
        lines.append(f"confirmed by the words: {phrase}")
        binding.append(("phrase", phrase))
    return Plan(title=title, lines=tuple(lines), binding=tuple(binding), phrase=phrase)


def _named(device: ManagedDevice | None) -> str:
    return "-" if device is None else f"{device.name} ({device.device_id}), image {device.image}"


def _hardware(profile: str, hardware: Hardware) -> list[str]:
    return [
        f"profile {profile}",
        f"{hardware.ram_mib} MiB of memory, {hardware.cpu_count} processors, {hardware.data_gib} GiB of storage",
        f"graphics {hardware.gpu}, quick boot {'on' if hardware.quick_boot else 'off'}",
    ]
