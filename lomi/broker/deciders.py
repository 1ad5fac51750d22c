"""Decisions: one interface, and the policy's answer to it. The prompt and the workbench bring their own."""

import hashlib
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from lomi.core.grant import Grant
from lomi.core.port import Plan

Verdict = Literal["approved", "declined", "not_decided_here", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """One plan for one decision. `plan_hash` binds the answer to every word of the plan."""

    operation_id: str
    tool: str
    session_label: str
    grant: Grant
    plan: Plan
    plan_hash: str
    expires_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer, used once. `by` goes into the receipt."""

    verdict: Verdict
    plan_hash: str
    by: str


class Decider(Protocol):
    """Whoever may decide here."""

    async def decide(self, request: DecisionRequest) -> Decision:
        """Answer, or wait for a person to. The broker bounds the wait."""
        ...


class PolicyDecider:
    """Takes exactly the decisions that the session's policy entry names in `decide`; refuses every other at once."""

    async def decide(self, request: DecisionRequest) -> Decision:
        """Approve a tool that the policy names; nobody else is there to ask."""
        verdict: Verdict = "approved" if request.tool in request.grant.decide else "not_decided_here"
        return Decision(verdict=verdict, plan_hash=request.plan_hash, by="policy")


def plan_hash(tool: str, plan: Plan) -> str:
    """SHA-256 over the whole plan."""
    body = msgspec.json.encode([tool, plan.title, plan.lines, plan.binding, plan.phrase], order="deterministic")
    return hashlib.sha256(body).hexdigest()
