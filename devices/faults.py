"""What can go wrong on a device, each with a closed reason and evidence about the effect."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Effect = Literal["none", "partial", "unknown"]
"""What is proven about the device: nothing was done, part of it was done, or nobody can say."""


class DeviceFault(Exception):  # noqa: N818 - the subclasses read as what happened
    """A refused or failed device call.

    `reason` is snake_case from a closed list per class; `effect` is the evidence about what reached the device, and
    matters only when the fault left an entered effect; `fields` are small closed facts (numbers, names) that may be
    shown to the caller; `evidence` is a longer untrusted text (a stderr tail) fit for an artifact.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        effect: Effect = "none",
        evidence: str = "",
        fields: Mapping[str, str | int] | None = None,
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.effect: Effect = effect
        self.evidence = evidence
        self.fields: Mapping[str, str | int] = MappingProxyType(dict(fields or {}))


class LaunchRefused(DeviceFault):
    """Preflight said no; no process was started.

    Reasons: no_emulator, no_avd, no_kvm, no_space, no_memory, no_port, avd_locked, avd_locked_stale.
    """


class EmulatorExited(DeviceFault):
    """The emulator process ended before the device was ready, or while it was in use.

    Reasons: avd_locked, avd_locked_stale, avd_image_corrupt, no_kvm, no_space, no_memory, port_taken, no_avd,
    emulator_exited; not_recorded and host_error when it was ended because of a failure on our side.
    """


class BootFailed(DeviceFault):
    """A boot stage missed its deadline; the process was ended unless `effect` says unknown.

    Reasons: boot_timeout (field stage), boot_loop, adb_unauthorized, wrong_device, system_dialog.
    """


class StopUnconfirmed(DeviceFault):
    """The device could not be observed gone; it is still owned. Reason: stop_unconfirmed."""


class NotRunning(DeviceFault):
    """The device has no running generation, or another one. Reasons: not_running, other_generation, offline."""


class ChannelLost(DeviceFault):
    """The way to the device broke or a deadline passed. Reasons: channel_lost, adb_timeout, adb_refused."""


class TargetRefused(DeviceFault):
    """A target that must not be acted on; nothing was sent.

    Reasons: stale_ref, unknown_ref, unknown_snapshot, offscreen, outside_display, covered.
    """


class InputFailed(DeviceFault):
    """The device refused or lost an input. Reasons: input_failed, bad_key, bad_input, display_off."""


class TextRefused(DeviceFault):
    """Text that cannot be typed exactly, or was not.

    Reasons: text_needs_ime, text_too_long, text_differs, text_not_confirmed.
    """


class CaptureFailed(DeviceFault):
    """No picture that may be shown as one.

    Reasons: capture_invalid, capture_truncated, capture_secure, display_off, renderer_disabled, capture_too_large.
    """


class TreeUnavailable(DeviceFault):
    """No hierarchy could be read, which is not an empty one. Reasons: tree_unavailable, tree_hostile, tree_not_idle."""


class PackageRefused(DeviceFault):
    """A package call that failed.

    Reasons: bad_name, not_installed, shared_uid, no_launcher, not_delivered, install_failed (field code), no_process,
    bad_cursor, bad_priority, bad_apk.
    """
