"""The prompt's question for a typed phrase: only its exact words allow."""

import pytest

from lomi.broker.deciders import DecisionRequest, plan_hash
from lomi.cli.prompt import PromptDecider
from lomi.core.grant import Grant
from lomi.core.port import Plan

PLAN = Plan(title="Delete a phone", lines=("phone One",), binding=(("name", "One"),), phrase="One")


class Typed:
    """A terminal at which one line is typed."""

    def __init__(self, line: str) -> None:
        self._line = line
        self.shown = ""

    def absent(self) -> str | None:
        """Somebody is there."""
        return None

    def show(self, text: str) -> None:
        self.shown += text + "\n"

    def forget_typed(self) -> None:
        """Nothing was typed."""

    async def line(self) -> str:
        return self._line


@pytest.mark.parametrize(
    ("line", "verdict"), [("One", "approved"), ("one", "declined"), ("y", "declined"), ("", "declined")]
)
async def test_a_phrase_must_be_typed_exactly(line: str, verdict: str) -> None:
    """A yes is not enough where a phrase is asked, and the person is told the exact words."""
    grant = Grant(scopes=frozenset(), workspaces=frozenset())
    terminal = Typed(line)
    decider = PromptDecider(terminal, lambda: grant)
    hashed = plan_hash("lomi_android_device_manage", PLAN)
    decision = await decider.decide(
        DecisionRequest(
            operation_id="f" * 40,
            tool="lomi_android_device_manage",
            session_label="qa",
            grant=grant,
            plan=PLAN,
            plan_hash=hashed,
            expires_s=10,
        )
    )
    assert (decision.verdict, decision.plan_hash) == (verdict, hashed)
    assert "type exactly: One" in terminal.shown


def test_the_phrase_is_part_of_what_is_decided() -> None:
    """A plan with another phrase is another plan."""
    other = Plan(title=PLAN.title, lines=PLAN.lines, binding=PLAN.binding, phrase="Two")
    assert plan_hash("t", PLAN) != plan_hash("t", other)
