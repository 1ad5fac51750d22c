"""What an act leaves: its receipt, what was seen afterwards, and when."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from lomi.contract.artifact import Artifact
from lomi.contract.codes import EffectState, OperationState
from lomi.contract.model import Failure, Observation, Result

ResultT_co = TypeVar("ResultT_co", bound=Result, covariant=True)

MOST_KEPT = 4096
"""Acts that a session and each of its targets remember; older ones are only in the broker's ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act(Generic[ResultT_co]):
    """One mutation with its receipt as it stood when the call ended.

    Attributes:
        tool: the tool that was called.
        operation_id: the receipt's id; `lomi receipts` and `lomi_operation_get` know it.
        state: where the operation stands; `succeeded` unless an error carries this act.
        effect: what is known of its effect.
        result: the receipt's result; None where it has none, or failed.
        failure: why it failed, or None.
        observation: what was seen afterwards, never stored; None where the call took none.
        generation: the life that it acted on, None for acts on the layout.
        at: Unix time of its end as this client saw it.
        took_s: seconds from the call to its end.
    """

    tool: str
    operation_id: str
    state: OperationState
    effect: EffectState
    result: ResultT_co | None
    failure: Failure | None
    observation: Observation | None
    generation: str | None
    at: float
    took_s: float

    @property
    def changed(self) -> tuple[str, ...]:
        """The lines of the observation: what is different since the act, newest facts first."""
        return self.observation.lines if self.observation is not None else ()

    @property
    def settled(self) -> bool | None:
        """Whether the target had come to rest; None without an observation."""
        return self.observation.settled if self.observation is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A picture as PNG, and the artifact under which the broker keeps the same bytes for a day."""

    png: bytes
    artifact: Artifact
