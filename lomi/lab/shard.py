"""What travels between the run and its engine: closed values only, so that a shard can run on any host."""

from typing import Literal

import msgspec

Verdict = Literal["passed", "failed", "infra_error", "skipped"]
Part = Literal["idle", "boot", "recycle", "worker", "setup", "test", "teardown"]
"""What a device's time goes to. `worker` is the start, collection and end of a pytest process."""


class _Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class PlannedTest(_Value, frozen=True, kw_only=True):
    """One test of the plan. `file` is relative to the tests' folder, `line` counts from 1."""

    id: str
    file: str
    line: int

    @property
    def module(self) -> str:
        """The file whose tests share a module."""
        return self.file


class Needs(_Value, frozen=True, kw_only=True):
    """What a shard must hold before it starts: all of it, or it waits holding nothing."""

    phones: int = 1


class FileByHash(_Value, frozen=True, kw_only=True):
    """A file that the shard's host must have: path relative to the tests' folder, length in bytes, SHA-256 in hex."""

    path: str
    bytes: int
    sha256: str
    executable: bool = False


class Work(_Value, frozen=True, kw_only=True):
    """One test of a shard, and the number of this attempt, from 1."""

    test: PlannedTest
    attempt: int


class Shard(_Value, frozen=True, kw_only=True):
    """Some tests to run one after the other. `number` is never used twice in a run, not even for the same tests.

    `plan_sha256` names the plan that it is of; `arguments` go to pytest; times are seconds. `files` may be empty where
    the host has the tests' folder already.
    """

    number: int
    plan_sha256: str
    works: tuple[Work, ...]
    arguments: tuple[str, ...] = ()
    test_s: float = 300.0
    worker_s: float = 60.0
    recycle: Literal["reuse", "wipe", "fresh"] = "reuse"
    per: Literal["test", "module", "run"] = "run"
    files: tuple[FileByHash, ...] = ()


class Artifact(_Value, frozen=True, kw_only=True):
    """A file that an attempt left. Its content is on the engine's shelf under `sha256`.

    `generation` is the life of the phone or page it shows, `operation` the receipt it belongs to; None where it is of
    neither.
    """

    name: str
    kind: str
    bytes: int
    sha256: str
    generation: str | None = None
    operation: str | None = None


class ReceiptNote(_Value, frozen=True, kw_only=True):
    """A receipt as the test's own client saw it."""

    operation_id: str
    tool: str
    state: str
    effect: str
    generation: str | None = None


class Phase(_Value, frozen=True, kw_only=True):
    """Set-up, test or teardown of one attempt. `began` is seconds since the epoch by the host's clock."""

    part: Part
    began: float
    seconds: float
    outcome: Literal["passed", "failed", "skipped"]


class Attempt(_Value, frozen=True, kw_only=True):
    """How one attempt of one test ended; one that never began has none.

    `reason` is one line; `detail` the whole of what pytest showed. `file` and `line` say where it failed.
    """

    test: str
    attempt: int
    shard: int
    verdict: Verdict
    reason: str = ""
    detail: str = ""
    file: str | None = None
    line: int | None = None
    phones: tuple[str, ...] = ()
    generations: tuple[str, ...] = ()
    host: str = ""
    began: float = 0.0
    ended: float = 0.0
    phases: tuple[Phase, ...] = ()
    receipts: tuple[ReceiptNote, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    output: str = ""


class Segment(_Value, frozen=True, kw_only=True):
    """A stretch of a lane's time, seconds since the epoch. A lane's segments lie end to end.

    A lane is a phone of a host, or a worker where there are no phones.
    """

    host: str
    lane: str
    part: Part
    began: float
    ended: float
    shard: int | None = None
    test: str | None = None


class ShardResult(_Value, frozen=True, kw_only=True):
    """What became of a shard. A test without an attempt here did not begin and can be queued again.

    `waited_s` is how long it waited for what it needs. `trouble` says in one line why it ended before its last test.
    """

    shard: int
    host: str
    attempts: tuple[Attempt, ...]
    segments: tuple[Segment, ...] = ()
    waited_s: float = 0.0
    trouble: str | None = None
