"""Reasons of the Android family."""

from lomi.contract.codes import ErrorCode, Reason

_C = ErrorCode
_DOCTOR = "run `lomi doctor` for what is missing."

_LAUNCH = (
    Reason("no_sdk", _C.HOST_UNQUALIFIED, "No Android SDK is set up; use a paper phone, or " + _DOCTOR),
    Reason("no_emulator", _C.HOST_UNQUALIFIED, "The image's emulator command is missing; " + _DOCTOR),
    Reason("no_avd", _C.TARGET_NOT_FOUND, "The phone's AVD is missing; create it with lomi_android_device_manage."),
    Reason(
        "no_kvm", _C.HOST_UNQUALIFIED, "This host has no usable KVM; use a paper phone, or ask the owner to " + _DOCTOR
    ),
    Reason("no_space", _C.RESOURCE_EXHAUSTED, "Free disk space: details.need bytes are needed, details.have are free."),
    Reason("no_memory", _C.RESOURCE_EXHAUSTED, "Stop another phone first: too little memory is free."),
    Reason("no_port", _C.RESOURCE_EXHAUSTED, "No pair of ports is free; stop another phone first."),
    Reason("port_taken", _C.RESOURCE_EXHAUSTED, "Another process took the phone's ports; start again."),
    Reason("avd_locked", _C.TARGET_BUSY, "Another process uses this AVD; it is left alone. Stop it there first."),
    Reason(
        "avd_locked_stale", _C.TARGET_BUSY, "A dead process left a lock that is not ours; ask the owner to remove it."
    ),
    Reason(
        "avd_image_corrupt", _C.ARTIFACT_INVALID, "The phone's disk image is damaged; wipe the phone, then start again."
    ),
    Reason("emulator_exited", _C.APP_UNAVAILABLE, "The emulator ended; its last words are the evidence artifact."),
    Reason(
        "boot_timeout", _C.DEADLINE_EXCEEDED, "The phone did not get past details.stage; stop it, then start again."
    ),
    Reason("boot_loop", _C.DEADLINE_EXCEEDED, "The phone restarts over and over; wipe it or use another image."),
    Reason(
        "not_recorded",
        _C.STORAGE_UNAVAILABLE,
        "The phone's life could not be stored, so it was ended; run `lomi doctor`.",
    ),
    Reason("host_error", _C.APP_UNAVAILABLE, "This host failed beside the emulator; see `lomi logs`."),
    Reason("adb_unauthorized", _C.APP_UNAVAILABLE, "The phone refuses our key; wipe it, then start again."),
    Reason("wrong_device", _C.STALE_GENERATION, "Another device answers in this phone's place; start it again."),
    Reason("system_dialog", _C.TARGET_BUSY, "A system dialog is in front; take a snapshot and answer it."),
    Reason("started_by_person", _C.TARGET_BUSY, "A person started this phone; ask them."),
    Reason(
        "stop_unconfirmed",
        _C.OUTCOME_UNKNOWN,
        "The phone could not be observed gone; it is still owned. Stop it again.",
    ),
)

_CHANNEL = (
    Reason("not_running", _C.STALE_GENERATION, "Start the phone first."),
    Reason("other_generation", _C.STALE_GENERATION, "List the phones and use the running generation."),
    Reason("offline", _C.APP_UNAVAILABLE, "The phone is offline; wait for it, or stop and start it."),
    Reason("channel_lost", _C.APP_UNAVAILABLE, "The connection to the phone broke; list the phones, then observe."),
    Reason("adb_timeout", _C.DEADLINE_EXCEEDED, "The phone did not answer in time; observe before trying again."),
    Reason("adb_refused", _C.APP_UNAVAILABLE, "adb refused the request; see `lomi logs`."),
)

_PLACE = (Reason("socket_path_too_long", _C.HOST_UNQUALIFIED, "Ask the owner to choose a shorter LOMI_HOME."),)

_INPUT = (
    Reason("outside_display", _C.RESOURCE_EXHAUSTED, "Use coordinates inside the unrotated hardware display."),
    Reason(
        "input_failed", _C.OUTCOME_UNKNOWN, "The phone refused or lost the input; take a snapshot to see what happened."
    ),
    Reason("bad_key", _C.UNSUPPORTED_CAPABILITY, "This phone has no such key."),
    Reason("bad_input", _C.RESOURCE_EXHAUSTED, "This gesture can't be made; see the tool's documentation."),
    Reason("keys_held", _C.RESOURCE_EXHAUSTED, "Lift a held key first; at most 8 are held."),
    Reason("finger_state", _C.REVISION_CONFLICT, "A finger goes down, moves, then up; send the phases in that order."),
    Reason("display_off", _C.TARGET_BUSY, "The display is off; send navigation `power` first."),
    Reason("text_needs_ime", _C.UNSUPPORTED_CAPABILITY, "This phone can only take ASCII text; nothing was typed."),
    Reason("text_too_long", _C.RESOURCE_EXHAUSTED, "Send the text in shorter pieces."),
    Reason(
        "text_differs",
        _C.OUTCOME_UNKNOWN,
        "The fields hold something else than was typed: the app cut or changed it; take a snapshot before going on.",
    ),
    Reason(
        "text_not_confirmed", _C.OUTCOME_UNKNOWN, "The text could not be read back; take a snapshot before going on."
    ),
)

_VIEW = (
    Reason("capture_truncated", _C.OUTCOME_UNKNOWN, "The phone sent only a part of the picture; try again."),
    Reason("capture_secure", _C.UNSUPPORTED_CAPABILITY, "A secure window is in front, which Android never shows."),
    Reason(
        "capture_uniform",
        _C.OUTCOME_UNKNOWN,
        "The picture has one colour only; the display may be off. Take a snapshot.",
    ),
    Reason(
        "renderer_disabled", _C.UNSUPPORTED_CAPABILITY, "This image draws nothing; use snapshots, or another image."
    ),
    Reason(
        "tree_unavailable", _C.OUTCOME_UNKNOWN, "No hierarchy could be read, which is not an empty screen; try again."
    ),
    Reason("tree_hostile", _C.RESOURCE_EXHAUSTED, "The hierarchy is over its bounds; take a screenshot instead."),
    Reason("tree_not_idle", _C.DEADLINE_EXCEEDED, "The screen never came to rest; take a screenshot, or try again."),
)

_PACKAGES = (
    Reason("bad_name", _C.RESOURCE_EXHAUSTED, "Give a package or activity name in the form Android knows."),
    Reason(
        "not_installed", _C.TARGET_NOT_FOUND, "That app is not installed; install it with lomi_android_install_apk."
    ),
    Reason("shared_uid", _C.SCOPE_DENIED, "Apps that share a user id are not offered."),
    Reason("no_launcher", _C.UNSUPPORTED_CAPABILITY, "That app has no launcher; name an activity."),
    Reason("install_failed", _C.ARTIFACT_INVALID, "The installer refused the APK; see installerFailure."),
    Reason("bad_apk", _C.ARTIFACT_INVALID, "The file is no APK that can be installed; build it again."),
    Reason("install_pending", _C.TARGET_BUSY, "An installation on this phone is waiting or running; wait for it."),
    Reason("no_process", _C.TARGET_NOT_FOUND, "That app does not run; launch it first."),
    Reason("bad_priority", _C.RESOURCE_EXHAUSTED, "Use one of V, D, I, W, E, F."),
    Reason("bad_cursor", _C.CURSOR_EXPIRED, "Read again without a cursor."),
)

_SETUP = (
    Reason("catalog_changed", _C.REVISION_CONFLICT, "The catalogue changed; read it again from offset 0."),
    Reason(
        "catalog_unreachable", _C.APP_UNAVAILABLE, "Google's repository or its mirror did not answer; try again later."
    ),
    Reason("package_unknown", _C.TARGET_NOT_FOUND, "Use a package id and revision of the catalogue."),
    Reason("plan_unknown", _C.TARGET_NOT_FOUND, "Prepare a new plan; plans end after 1800 s."),
    Reason("plan_changed", _C.REVISION_CONFLICT, "Use the revision that the plan was saved with."),
    Reason("licence_changed", _C.REVISION_CONFLICT, "A licence text changed; prepare a new plan."),
    Reason("download_corrupt", _C.ARTIFACT_INVALID, "Size or checksum did not match; nothing was unpacked. Try again."),
    Reason("management_busy", _C.TARGET_BUSY, "Another set-up or management job runs; wait for it."),
    Reason("phone_running", _C.TARGET_BUSY, "Stop the phone first."),
    Reason("devices_changed", _C.REVISION_CONFLICT, "Read the inventory again and use its revisions."),
    Reason("confirmation_wrong", _C.REVISION_CONFLICT, "Give the phone's exact name as the confirmation."),
    Reason("package_in_use", _C.TARGET_BUSY, "A phone uses this package; delete or change the phone first."),
    Reason("no_rollback", _C.TARGET_NOT_FOUND, "No earlier copy of this package is kept."),
    Reason("recovery_needed", _C.TARGET_BUSY, "An interrupted job must be recovered first, with action `recover`."),
    Reason(
        "catalog_invalid",
        _C.APP_UNAVAILABLE,
        "The repository's documents can't be believed; ask the owner to check it.",
    ),
    Reason("download_failed", _C.APP_UNAVAILABLE, "The download broke off; what came is kept. Apply the plan again."),
    Reason(
        "archive_refused", _C.ARTIFACT_INVALID, "The archive is damaged or would leave its folder; see `lomi logs`."
    ),
    Reason(
        "setup_failed", _C.APP_UNAVAILABLE, "A package could not be put in place; read the inventory, then recover."
    ),
    Reason(
        "avd_failed", _C.APP_UNAVAILABLE, "The phone's files could not be written; read the inventory, then clean up."
    ),
    Reason("image_unknown", _C.TARGET_NOT_FOUND, "Use an image that the inventory's text names, or install it first."),
    Reason("profile_unknown", _C.TARGET_NOT_FOUND, "Use a profile of the inventory that fits the image's Android."),
    Reason(
        "metadata_damaged", _C.TARGET_BUSY, "A metadata file can't be read; restore it with action restore_metadata."
    ),
    Reason("metadata_unknown", _C.TARGET_NOT_FOUND, "Nothing is damaged there, or no whole backup of it is kept."),
    Reason("metadata_changed", _C.REVISION_CONFLICT, "Read the inventory again and use its digest."),
    Reason("reset_unsupported", _C.UNSUPPORTED_CAPABILITY, "The list of phones is never reset; restore its backup."),
    Reason("data_size_fixed", _C.UNSUPPORTED_CAPABILITY, "dataGib can't change; create another phone."),
)

REASONS = (*_LAUNCH, *_CHANNEL, *_PLACE, *_INPUT, *_VIEW, *_PACKAGES, *_SETUP)
