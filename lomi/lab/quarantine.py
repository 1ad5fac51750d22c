"""Tests that run and are reported, but don't decide: by pattern, with a reason, until a day."""

from collections.abc import Iterable
from datetime import date
from fnmatch import fnmatchcase

from lomi.lab.plan import NeedsRule, Quarantine
from lomi.lab.shard import Needs, PlannedTest


def matches(pattern: str, test: str) -> bool:
    """Whether a pattern means a test: its exact id, or `*` and `?` as in file names; brackets mean themselves."""
    return test == pattern or fnmatchcase(test, pattern.replace("[", "[[]"))


def reason_for(test: PlannedTest, rules: Iterable[Quarantine], today: date) -> str | None:
    """Why a test is in quarantine today; None when it is not. On its last day a rule still counts."""
    for rule in rules:
        if matches(rule.test, test.id) and (rule.until is None or today <= rule.until):
            return rule.reason
    return None


def warnings(tests: Iterable[PlannedTest], rules: Iterable[Quarantine], today: date) -> tuple[str, ...]:
    """What is odd about the rules: those that mean no test, and those that are over."""
    ids = [test.id for test in tests]
    found: list[str] = []
    for rule in rules:
        if not any(matches(rule.test, test) for test in ids):
            found.append(f"the quarantine of {rule.test} means no test of this plan")
        elif rule.until is not None and today > rule.until:
            found.append(f"the quarantine of {rule.test} was over on {rule.until.isoformat()}: it counts again")
    return tuple(found)


def needs_of(test: PlannedTest, rules: Iterable[NeedsRule], phones: int) -> Needs:
    """What a test must hold: as the first rule that means it says, else one phone where the plan has any."""
    for rule in rules:
        if matches(rule.test, test.id):
            return Needs(phones=rule.phones)
    return Needs(phones=min(1, phones))
