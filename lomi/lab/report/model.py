"""A finished run as one value: what `report.json` holds, and what the other forms are made from."""

import msgspec

from lomi.lab.book import STATES, State
from lomi.lab.shard import Artifact, Attempt, Segment

VERSION = 1
_INERT = (".gif", ".jpeg", ".jpg", ".json", ".mp4", ".png", ".txt", ".webm", ".webp", ".zip")
"""Endings of files of which a browser runs nothing. The report's page forbids scripts, a file opened from it can't."""


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    """Closed for us, open for later versions: unknown fields are passed over."""


class TestReport(_Value, frozen=True, kw_only=True):
    """One planned test and how it ended.

    `number` is its place in the plan, from 1. `quarantine` is the reason for which it does not decide, or None.
    `past_runs` are its last runs that are known, this one among them, and `past_failures` those in which it failed.
    """

    number: int
    id: str
    file: str
    line: int
    state: State
    why: str = ""
    skipped: bool = False
    flaky: bool = False
    quarantine: str | None = None
    attempts: tuple[Attempt, ...] = ()
    past_runs: int = 0
    past_failures: int = 0

    __test__ = False

    @property
    def unsteady(self) -> bool:
        """Whether it failed in some of its last runs and not in others."""
        return 0 < self.past_failures < self.past_runs

    @property
    def past(self) -> str:
        """Its last runs in words; "" where none of them failed or only one is known."""
        if self.past_failures == 0 or self.past_runs < 2:
            return ""
        return f"failed {self.past_failures} of the last {self.past_runs} runs"

    @property
    def decides(self) -> bool:
        """Whether its state weighs in the outcome of the run."""
        return self.quarantine is None

    @property
    def seconds(self) -> float:
        """How long its last attempt took."""
        return self.attempts[-1].ended - self.attempts[-1].began if self.attempts else 0.0


class ShardReport(_Value, frozen=True, kw_only=True):
    """One shard that was given out; times are seconds since the epoch, `waited_s` for what it needed."""

    number: int
    host: str
    tests: tuple[str, ...]
    queued: float
    ended: float
    waited_s: float
    trouble: str | None = None


class RunReport(_Value, frozen=True, kw_only=True):
    """A run.

    Attributes:
        plan_sha256: of the plan's file.
        outcome: in a word: `passed`, `failed`, `infra`, `cancelled` or `deadline`.
        exit_code: what `lomi lab run` ended with, the writing of this report aside.
        began, ended: seconds since the epoch.
        listed_s: how long listing the tests took; it lies before `began`.
        retries: how many attempts beyond the first there were.
        facts: name and value of what it ran on.
        warnings: lines about the plan and the run.
    """

    version: int = VERSION
    name: str
    plan_sha256: str
    engine: str
    outcome: str
    exit_code: int
    began: float
    ended: float
    listed_s: float
    retries: int
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    tests: tuple[TestReport, ...] = ()
    shards: tuple[ShardReport, ...] = ()
    segments: tuple[Segment, ...] = ()

    @property
    def counts(self) -> dict[State, int]:
        """How many tests ended in each state; their sum is the plan."""
        found = dict.fromkeys(STATES, 0)
        for test in self.tests:
            found[test.state] += 1
        return found

    @property
    def wall_s(self) -> float:
        """Seconds from the first broker's start to the last shard's end."""
        return self.ended - self.began


def path_of(test: TestReport, attempt: Attempt, artifact: Artifact, place: int) -> str:
    """Where an artifact lies in the report's folder: each attempt has a folder that nothing else is written to.

    A file that a browser might run something of (a page, a drawing, one without an ending) is a `.txt` there.
    """
    safe = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in artifact.name)
    name = safe.lstrip(".")[-80:] or "file"
    ending = "" if name.lower().endswith(_INERT) else ".txt"
    return f"attempts/{test.number:04}/{attempt.attempt}/{place:02}-{name}{ending}"


class _SavedTest(msgspec.Struct, frozen=True):
    id: str
    attempts: tuple["_SavedAttempt", ...] = ()


class _SavedAttempt(msgspec.Struct, frozen=True):
    verdict: str
    began: float
    ended: float


class _Saved(msgspec.Struct, frozen=True):
    tests: tuple[_SavedTest, ...]


def recorded_seconds(content: bytes) -> dict[str, float]:
    """Seconds by test id out of a `report.json`, of attempts that passed or failed.

    Raises:
        msgspec.DecodeError: it is no report.
    """
    saved = msgspec.json.decode(content, type=_Saved)
    return {
        test.id: attempt.ended - attempt.began
        for test in saved.tests
        for attempt in test.attempts
        if attempt.verdict in ("passed", "failed")
    }
