"""What can go wrong with setting up and managing an SDK."""

from devices.faults import DeviceFault


class SetupFailed(DeviceFault):
    """A setup step that was refused or failed; effect none means that the SDK is as it was.

    Reasons: catalogue_invalid, catalogue_unreachable, package_unknown, plan_unknown, plan_changed, plan_expired,
    too_many_plans, too_many_licences, licence_changed, licence_missing, download_failed, download_size,
    checksum_mismatch, archive_hostile, no_space, install_failed, nothing_to_roll_back, package_in_use,
    manifest_changed, recovery_required, management_busy, catalogue_changed.
    """


class ManageRefused(DeviceFault):
    """A change to devices that was refused before anything changed.

    Reasons: devices_changed, device_unknown, device_running, other_generation, wrong_confirmation, bad_name,
    name_taken, image_unknown, profile_unknown, bad_hardware, data_size_fixed, metadata_unknown, metadata_changed,
    metadata_damaged, unsupported_reset, avd_failed.
    """
