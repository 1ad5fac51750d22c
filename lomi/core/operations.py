"""The state machine of an operation: which moves are allowed, and which effects go with which state.

The store's triggers hold the same rules again; a test compares the two over every pair.
"""

from lomi.contract.codes import TERMINAL_STATES, EffectState, OperationState

_S = OperationState
_E = EffectState

MOVES: dict[OperationState, frozenset[OperationState]] = {
    _S.QUEUED: frozenset({_S.AWAITING_USER, _S.RUNNING, _S.CANCELLED, _S.FAILED}),
    _S.AWAITING_USER: frozenset({_S.QUEUED, _S.CANCELLED, _S.FAILED}),
    _S.RUNNING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLING, _S.OUTCOME_UNKNOWN}),
    _S.CANCELLING: frozenset({_S.CANCELLED, _S.SUCCEEDED, _S.FAILED, _S.OUTCOME_UNKNOWN}),
} | {state: frozenset() for state in TERMINAL_STATES}
"""Every allowed move. After a decision a receipt goes awaiting_user -> queued -> running."""

EFFECTS: dict[OperationState, frozenset[EffectState]] = {
    _S.QUEUED: frozenset({_E.NONE}),
    _S.AWAITING_USER: frozenset({_E.NONE}),
    _S.RUNNING: frozenset({_E.NONE, _E.PARTIAL}),
    _S.CANCELLING: frozenset({_E.NONE, _E.PARTIAL}),
    _S.SUCCEEDED: frozenset({_E.COMPLETE}),
    _S.FAILED: frozenset({_E.NONE, _E.PARTIAL, _E.COMPLETE}),
    _S.CANCELLED: frozenset({_E.NONE, _E.PARTIAL}),
    _S.OUTCOME_UNKNOWN: frozenset({_E.UNKNOWN}),
}
"""The effects a receipt may show in each state."""

RESERVED_STATES = frozenset({_S.QUEUED, _S.AWAITING_USER, _S.RUNNING})
"""The states in which a receipt may be reserved; `running` when nothing is waited for: then one commit does both."""

_UNDISPATCHED = frozenset({_S.QUEUED, _S.AWAITING_USER})


def move_allowed(before: OperationState, after: OperationState, effect: EffectState) -> bool:
    """Whether a receipt in state `before` may go to `after` with `effect`. What was never dispatched has no effect."""
    if after not in MOVES[before] or effect not in EFFECTS[after]:
        return False
    return before not in _UNDISPATCHED or effect is _E.NONE


def recovered(state: OperationState) -> tuple[OperationState, EffectState] | None:
    """What a restart makes of a stored state: None leaves it; running work is never said to have failed."""
    if state in _UNDISPATCHED:
        return _S.CANCELLED, _E.NONE
    if state in TERMINAL_STATES:
        return None
    return _S.OUTCOME_UNKNOWN, _E.UNKNOWN
