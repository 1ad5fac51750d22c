"""Ordered input: each lease's inputSequence, exactly last + 1, with a bounded ledger of what was answered."""

from collections import OrderedDict
from typing import Generic, TypeVar

from lomi.contract.codes import Details, ErrorCode
from lomi.core.refusal import Refusal

A = TypeVar("A")
"""What is remembered of an input: an operation or an acknowledgement."""


class InputLedger(Generic[A]):
    """The last `depth` inputs of one lease. `old_code` is what an input older than the ledger is refused with."""

    def __init__(self, depth: int, old_code: ErrorCode) -> None:
        self._depth = depth
        self._old_code = old_code
        self._last = 0
        self._answers: OrderedDict[int, tuple[bytes, A]] = OrderedDict()

    @property
    def last(self) -> int:
        """The last admitted sequence; the next must be one more."""
        return self._last

    def replay(self, sequence: int, fingerprint: bytes) -> A | None:
        """What was answered to this input, or None when it is the next one.

        Raises:
            Refusal: IDEMPOTENCY_CONFLICT for other content, REVISION_CONFLICT for a gap, the old code for
            one forgotten.
        """
        field = "/inputSequence"
        if sequence == self._last + 1:
            return None
        if sequence > self._last + 1:
            raise Refusal(
                ErrorCode.REVISION_CONFLICT, "sequence_gap", field=field, details=Details(current=str(self._last))
            )
        known = self._answers.get(sequence)
        if known is None:
            raise Refusal(self._old_code, "sequence_old", field=field, details=Details(current=str(self._last)))
        if known[0] != fingerprint:
            raise Refusal(ErrorCode.IDEMPOTENCY_CONFLICT, "key_reused", field=field)
        return known[1]

    def newest(self) -> A | None:
        """What was answered to the last input."""
        known = self._answers.get(self._last)
        return known[1] if known else None

    def admit(self, sequence: int, fingerprint: bytes, answer: A) -> None:
        """Note the next input."""
        self._last = sequence
        self._answers[sequence] = (fingerprint, answer)
        while len(self._answers) > self._depth:
            self._answers.popitem(last=False)

    def withdraw(self, sequence: int) -> None:
        """Forget the last input since it never came to exist: its reservation could not be stored."""
        if sequence == self._last:
            self._last -= 1
            self._answers.pop(sequence, None)
