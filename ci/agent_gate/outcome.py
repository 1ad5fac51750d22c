"""What came of a task, and the table that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lomi.cli.shown import printable

LOMI = "lomi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One task with one server. `reasons` are empty where it passed; `seconds` are those of the conversation."""

    server: str
    task: str
    title: str
    reasons: tuple[str, ...]
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    retries: int = 0
    applicable: bool = True

    @property
    def passed(self) -> bool:
        """Whether it was run and everything is as it must be."""
        return self.applicable and not self.reasons

    @property
    def result(self) -> str:
        """One word."""
        return "-" if not self.applicable else "pass" if self.passed else "FAIL"


def head_of(width: int) -> str:
    """The columns' names."""
    return f"{'task':{width}}  result  calls   tokens in  tokens out  seconds"


def line_of(outcome: Outcome, width: int) -> str:
    """One row, and below it why it failed; what others wrote in a reason is made harmless to a terminal."""
    if not outcome.applicable:
        return f"{outcome.task:{width}}  {outcome.result:6}  needs {', '.join(outcome.reasons)}"
    row = (
        f"{outcome.task:{width}}  {outcome.result:6} {outcome.calls:6d}  {outcome.input_tokens:10,d}"
        f"  {outcome.output_tokens:10,d}  {outcome.seconds:7.1f}"
    )
    return "\n".join([row, *(f"    {printable(reason)}" for reason in outcome.reasons)])


def totals_of(outcomes: Sequence[Outcome], width: int) -> str:
    """The sums over what was run."""
    run = [one for one in outcomes if one.applicable]
    return _sums(run, f"{sum(one.passed for one in run)} of {len(run)} passed", width)


def comparison_of(outcomes: Sequence[Outcome], width: int) -> list[str]:
    """The sums of each server over the tasks that all of them were tried on; empty for a single server."""
    servers = list(dict.fromkeys(one.server for one in outcomes))
    tried = [{one.task for one in outcomes if one.server == server and one.applicable} for server in servers]
    common = set[str].intersection(*tried) if tried else set[str]()
    if len(servers) < 2 or not common:
        return []
    lines = [f"The {len(common)} tasks that all of them were tried on:"]
    for server in servers:
        run = [one for one in outcomes if one.server == server and one.task in common]
        lines.append(_sums(run, f"{server}, {sum(one.passed for one in run)} passed", width))
    return lines


def _sums(run: Sequence[Outcome], said: str, width: int) -> str:
    calls, seconds = sum(one.calls for one in run), sum(one.seconds for one in run)
    tokens_in, tokens_out = sum(one.input_tokens for one in run), sum(one.output_tokens for one in run)
    return f"{said:{width}}  {'':6} {calls:6d}  {tokens_in:10,d}  {tokens_out:10,d}  {seconds:7.1f}"
