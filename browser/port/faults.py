"""Browser errors as refusals, with what they prove about the effect."""

from collections.abc import Iterator
from contextlib import contextmanager

from browser.errors import BrowserError
from lomi.contract.codes import Details, ErrorCode
from lomi.contract.tools import REASONS
from lomi.core.refusal import EffectFailed, Refusal


def refusal_of(error: BrowserError) -> Refusal:
    """The documented case that an error is."""
    reason = REASONS.get(error.reason)
    said = error.details
    covered = said.get("by") or said.get("covered_by") or said.get("name")
    details = Details(covered_by=str(covered)[:200]) if error.reason == "covered" and covered else None
    if "dialog" in said:
        details = Details(current=str(said["dialog"]))
    if details is None and "error" in said:
        details = Details(state=str(said["error"])[:100])
    return Refusal(reason.code if reason else ErrorCode.OUTCOME_UNKNOWN, error.reason, details=details)


@contextmanager
def reading() -> Iterator[None]:
    """Turn an error of a read into its refusal."""
    try:
        yield
    except BrowserError as error:
        raise refusal_of(error) from error


@contextmanager
def acting() -> Iterator[None]:
    """Turn an error of an action into its refusal; one that proves that nothing was done says so."""
    try:
        yield
    except BrowserError as error:
        if error.proves_no_effect:
            raise EffectFailed(refusal_of(error), partial=False) from error
        raise refusal_of(error) from error
