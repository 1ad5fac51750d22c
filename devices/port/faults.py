"""Device faults as refusals, with what they prove about the effect."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from devices.faults import DeviceFault
from devices.sdk.faults import ManageRefused, SetupFailed
from lomi.contract.codes import Details, EffectState, ErrorCode, OperationState
from lomi.contract.model import Observation
from lomi.contract.tools import REASONS
from lomi.core.port import Outcome
from lomi.core.refusal import EffectFailed, Refusal, failure_of

_NUMBERS, _WORDS = ("need", "have", "limit"), ("stage", "state")
_CALLED = {
    "archive_hostile": "archive_refused",
    "bad_hardware": "out_of_range",
    "bad_name": "malformed",
    "catalogue_changed": "catalog_changed",
    "catalogue_invalid": "catalog_invalid",
    "catalogue_unreachable": "catalog_unreachable",
    "checksum_mismatch": "download_corrupt",
    "device_unknown": "not_found",
    "download_size": "download_corrupt",
    "install_failed": "setup_failed",
    "licence_missing": "licence_changed",
    "manifest_changed": "devices_changed",
    "name_taken": "already_exists",
    "nothing_to_roll_back": "no_rollback",
    "plan_expired": "plan_unknown",
    "recovery_required": "recovery_needed",
    "too_many_devices": "limit_full",
    "too_many_licences": "limit_full",
    "too_many_plans": "limit_full",
    "unsupported_reset": "reset_unsupported",
    "wrong_confirmation": "confirmation_wrong",
}
"""What set-up and management call a case, and what the contract does."""
_FIELDS = {
    "bad_name": "/action/name",
    "name_taken": "/action/name",
    "image_unknown": "/action/image",
    "profile_unknown": "/action/profile",
    "data_size_fixed": "/action/hardware/dataGib",
}
_HARDWARE = {"ram_mib": "ramMib", "cpu_count": "cpuCount", "data_gib": "dataGib", "gpu": "gpu"}


def _field(fault: DeviceFault) -> str | None:
    if fault.reason == "bad_hardware":
        return f"/action/hardware/{_HARDWARE[str(fault.fields['field'])]}"
    return _FIELDS.get(fault.reason) if isinstance(fault, ManageRefused) else None


def refusal_of(fault: DeviceFault, *, evidence: str | None = None) -> Refusal:
    """The documented case that a fault is; `evidence` is the artifact that holds its last words."""
    of_setup = isinstance(fault, SetupFailed | ManageRefused)
    name = _CALLED.get(fault.reason, fault.reason) if of_setup else fault.reason
    reason = REASONS.get(name)
    facts: dict[str, int | str] = {
        key: value for key, value in fault.fields.items() if key in _NUMBERS and isinstance(value, int)
    }
    facts |= {key: str(value) for key, value in fault.fields.items() if key in _WORDS}
    if "code" in fault.fields:
        facts["state"] = str(fault.fields["code"])
    if evidence is not None:
        facts["evidence_artifact_id"] = evidence
    details = Details(**facts) if facts else None  # type: ignore[arg-type]
    return Refusal(reason.code if reason else ErrorCode.APP_UNAVAILABLE, name, field=_field(fault), details=details)


@contextmanager
def reading() -> Iterator[None]:
    """Turn a fault of a read into its refusal."""
    try:
        yield
    except DeviceFault as fault:
        raise refusal_of(fault) from fault


@contextmanager
def acting() -> Iterator[None]:
    """Turn a fault of an act into its refusal: proof that nothing or only a part was done goes along."""
    try:
        yield
    except DeviceFault as fault:
        raise ended(fault) from fault


def ended(fault: DeviceFault, *, evidence: str | None = None) -> Refusal | EffectFailed:
    """A fault of an act as what a handler raises."""
    refusal = refusal_of(fault, evidence=evidence)
    return refusal if fault.effect == "unknown" else EffectFailed(refusal, partial=fault.effect == "partial")


def unsure(fault: DeviceFault, observe: Callable[[], Awaitable[Observation]]) -> Outcome:
    """A fault after an act whose effect is partial or unknown, as its end; what is there is looked for all the same."""
    known = fault.effect == "partial"
    return Outcome(
        result=failure_of(refusal_of(fault)),
        state=OperationState.FAILED if known else OperationState.OUTCOME_UNKNOWN,
        effect=EffectState.PARTIAL if known else EffectState.UNKNOWN,
        observe=observe,
    )
