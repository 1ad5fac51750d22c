"""What became of an act: a pure function of how the handler ended and whether an effect had begun."""

import asyncio
from dataclasses import dataclass

from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.contract.model import Data, Result
from lomi.core.port import Outcome
from lomi.core.refusal import EffectFailed, Refusal, failure_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The terminal state of an operation."""

    state: OperationState
    effect: EffectState
    result: Result | Data | None


def refused(refusal: Refusal) -> Settlement:
    """Nothing was done."""
    return Settlement(state=OperationState.FAILED, effect=EffectState.NONE, result=failure_of(refusal))


def cancelled(code: ErrorCode | None = None, reason: str | None = None) -> Settlement:
    """Nothing was done and the request is withdrawn."""
    result = failure_of(Refusal(code, reason)) if code is not None else None
    return Settlement(state=OperationState.CANCELLED, effect=EffectState.NONE, result=result)


def unknown(reason: str | None) -> Settlement:
    """An effect had begun and nobody can say what became of it."""
    return Settlement(
        state=OperationState.OUTCOME_UNKNOWN,
        effect=EffectState.UNKNOWN,
        result=failure_of(Refusal(ErrorCode.OUTCOME_UNKNOWN, reason)),
    )


def settlement_of(ended: Outcome | BaseException, *, effect_begun: bool, cancel_asked: bool) -> Settlement:
    """Classify how a handler ended: before the effect failed/none; inside it unknown unless there is proof."""
    match ended:
        case Outcome():
            return Settlement(state=ended.state, effect=ended.effect, result=ended.result)
        case EffectFailed():
            effect = EffectState.PARTIAL if ended.partial else EffectState.NONE
            return Settlement(state=OperationState.FAILED, effect=effect, result=failure_of(ended.refusal))
        case Refusal() if not effect_begun:
            return refused(ended)
        case asyncio.CancelledError() if not effect_begun and cancel_asked:
            return cancelled()
        case TimeoutError() if not effect_begun:
            return refused(Refusal(ErrorCode.DEADLINE_EXCEEDED, "deadline"))
        case TimeoutError():
            return unknown("deadline_in_effect")
        case Refusal():
            return unknown(ended.reason)
        case asyncio.CancelledError():
            if effect_begun:
                return unknown("cancelled_in_effect")
            return refused(Refusal(ErrorCode.APP_CLOSING, "closing"))
        case _ if not effect_begun:
            return refused(Refusal(ErrorCode.APP_UNAVAILABLE, "adapter_failed_before"))
        case _:
            return unknown("adapter_failed")
