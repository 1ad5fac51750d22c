"""What a run of the demo leaves, as values: calls with their receipts, pictures, steps, findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["phone", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A mutation's receipt as its call saw it."""

    operation_id: str
    state: str
    effect_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One tool call. `started_s` counts from the start of the run; `text` is what a model reads."""

    number: int
    tool: str
    arguments: Mapping[str, object]
    started_s: float
    took_s: float
    text: str
    is_error: bool
    receipt: Receipt | None
    observed: tuple[str, ...]
    settled: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG that a tool sent, and the file of the report folder that holds it."""

    side: Side
    name: str
    png: bytes
    width: int
    height: int


@dataclass(slots=True, kw_only=True)
class Step:
    """One step of the story. `problem` says in one line why it failed; `ended_s` is None while it runs."""

    key: str
    title: str
    told: str
    started_s: float
    ended_s: float | None = None
    calls: list[CallRecord] = field(default_factory=list)
    pictures: dict[Side, Picture] = field(default_factory=dict)
    problem: str | None = None

    @property
    def took_s(self) -> float:
        """Seconds from start to end, 0 while it runs."""
        return 0.0 if self.ended_s is None else self.ended_s - self.started_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an effect's own record says: `found` against `expected`, both in words."""

    key: str
    title: str
    source: str
    expected: str
    found: str
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A whole run. `facts`: name and value of what it ran on; `total_s`: from start to the last process's end."""

    started_at: str
    total_s: float
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]
    facts: tuple[tuple[str, str], ...]
    simulated: tuple[str, ...]

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """Every call, in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def good(self) -> bool:
        """Whether every step ran and every finding is as expected."""
        return all(step.problem is None for step in self.steps) and all(finding.good for finding in self.findings)


class DemoFailedError(Exception):
    """Raised when a step can't go on; the message is one line for a person."""
