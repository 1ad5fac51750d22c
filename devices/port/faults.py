"""Device faults as refusals, with what they prove about the effect."""

from collections.abc import Iterator
from contextlib import contextmanager

from devices.faults import DeviceFault
from lomi.contract.codes import Details, ErrorCode
from lomi.contract.tools import REASONS
from lomi.core.refusal import EffectFailed, Refusal

_SAME_NAME = ("need", "have", "limit", "stage", "state")


def refusal_of(fault: DeviceFault) -> Refusal:
    """The documented case that a fault is."""
    reason = REASONS.get(fault.reason)
    facts = {name: value for name, value in fault.fields.items() if name in _SAME_NAME}
    if "code" in fault.fields:
        facts["state"] = str(fault.fields["code"])
    details = Details(**facts) if facts else None  # type: ignore[arg-type]
    return Refusal(reason.code if reason else ErrorCode.APP_UNAVAILABLE, fault.reason, details=details)


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
        if fault.effect == "unknown":
            raise refusal_of(fault) from fault
        raise EffectFailed(refusal_of(fault), partial=fault.effect == "partial") from fault
