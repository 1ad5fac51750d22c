"""Whether a test is tried again: a decision as a value, made from an attempt and what was tried before."""

from typing import Literal, NamedTuple

from lomi.lab.shard import Attempt


class RetryPolicy(NamedTuple):
    """Attempts allowed beyond the first: after failures of the test, of the lab, and in the whole run."""

    failed: int = 0
    infra: int = 2
    most: int = 100


class Decision(NamedTuple):
    """Try again or not, and why in a few words."""

    again: bool
    why: str


def decide(attempts: tuple[Attempt, ...], policy: RetryPolicy, used: int) -> Decision:
    """What follows the last of a test's attempts; `used` counts the retries of the whole run so far."""
    last = attempts[-1].verdict
    if last in ("passed", "skipped"):
        return Decision(again=False, why="")
    same = sum(attempt.verdict == last for attempt in attempts)
    allowed = policy.failed if last == "failed" else policy.infra
    kind = "failure of the test" if last == "failed" else "failure of the lab"
    if same > allowed:
        return Decision(again=False, why=f"{allowed} retries after a {kind} were allowed")
    if used >= policy.most:
        return Decision(again=False, why=f"the run's {policy.most} retries were used up")
    return Decision(again=True, why=f"retry {same} of {allowed} after a {kind}")


def verdict_of(attempts: tuple[Attempt, ...]) -> Literal["passed", "failed", "infra_error", "skipped"]:
    """What all attempts together say: a pass or a skip ends a test, a failure weighs more than one of the lab."""
    verdicts = [attempt.verdict for attempt in attempts]
    if verdicts[-1] in ("passed", "skipped"):
        return verdicts[-1]
    return "failed" if "failed" in verdicts else "infra_error"
