"""A refusal: the one exception by which a rule or a handler says no."""

from lomi.contract.codes import Details, ErrorCode
from lomi.contract.model import Failure
from lomi.contract.tools import REASONS


class Refusal(Exception):  # noqa: N818  a refusal is an answer, not a fault
    """Raised when a call is refused before any effect.

    `reason` is one of the documented ones, `field` a JSON pointer.
    """

    def __init__(
        self, code: ErrorCode, reason: str | None = None, *, field: str | None = None, details: Details | None = None
    ) -> None:
        super().__init__(f"{code}" + (f" ({reason})" if reason else ""))
        self.code = code
        self.reason = reason
        self.field = field
        self.details = details


class EffectFailed(Exception):  # noqa: N818
    """Raised inside `permit.effect()` by a handler that can PROVE what became of the effect: `partial` or none of it.

    Any other exception inside an effect settles outcome_unknown.
    """

    def __init__(self, refusal: Refusal, *, partial: bool) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.partial = partial


def failure_of(refusal: Refusal) -> Failure:
    """A refusal as the failure result of a receipt, with its fixed hint."""
    reason = REASONS.get(refusal.reason) if refusal.reason else None
    return Failure(
        code=refusal.code,
        reason=refusal.reason,
        field=refusal.field,
        hint=reason.hint if reason else None,
        details=refusal.details,
    )
