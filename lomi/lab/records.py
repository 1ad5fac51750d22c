"""What the pytest plugin writes of each attempt at a test: JSON lines that others count, report and verify by.

One line is one `AttemptRecord`, written when the attempt has ended (a crashed worker's attempt: when its end was seen)
and never changed afterwards. Lines of several workers come in the order of their ends. Paths are relative to the folder
that holds the file.

The plugin writes the file that `--lomi-records` names. Where `LOMI_LAB_PHONES` names phones, it leases those alone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

RECORDS_NAME = "records.jsonl"
PHONES_VARIABLE = "LOMI_LAB_PHONES"
VERSION = 1

Outcome = Literal["passed", "failed", "skipped", "infra_error"]
"""`infra_error`: the device, the browser engine or the broker was lost; it says nothing about the test."""
ArtifactKind = Literal["picture", "hierarchy", "logcat", "console", "receipts", "trace", "video", "download"]


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A closed value of a record."""


class PhaseTimes(Record, frozen=True, kw_only=True):
    """Seconds of one attempt; they add up to `total_s`.

    `queue_s` is waiting for a free device, `boot_s` bringing it up (start, wipe, first page); `setup_s` and
    `teardown_s` are the rest of the fixtures' time, evidence included; `call_s` is the test itself.
    """

    queue_s: float = 0.0
    boot_s: float = 0.0
    setup_s: float = 0.0
    call_s: float = 0.0
    teardown_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Their sum."""
        return self.queue_s + self.boot_s + self.setup_s + self.call_s + self.teardown_s


class DeviceRecord(Record, frozen=True, kw_only=True):
    """A phone, page or terminal that the attempt used, and its generation as the broker names it."""

    kind: Literal["phone", "page", "terminal"]
    name: str
    panel_id: str
    generation: str
    device_id: str | None = None
    simulated: bool | None = None


class ReceiptRecord(Record, frozen=True, kw_only=True):
    """A receipt of the attempt as it stood at its end; `code` and `reason` are of a failure. `at` is Unix time."""

    operation_id: str
    tool: str
    state: str
    effect_state: str
    at: float
    generation: str | None = None
    code: str | None = None
    reason: str | None = None


class ArtifactRecord(Record, frozen=True, kw_only=True):
    """A file of the attempt. `artifact_id` is the broker's own copy, `operation_id` the act that it was taken after."""

    kind: ArtifactKind
    path: str
    sha256: str
    byte_length: int
    generation: str | None = None
    artifact_id: str | None = None
    operation_id: str | None = None


class Cause(Record, frozen=True, kw_only=True):
    """Why an attempt did not pass: the broker's code and reason where it said one, and one line for people."""

    message: str
    code: str | None = None
    reason: str | None = None


class AttemptRecord(Record, frozen=True, kw_only=True):
    """One attempt at one test.

    Attributes:
        node_id: pytest's node id.
        attempt: from 1, in this pytest run; an `infra_error` is followed by the next one as the options allow.
        final: whether no further attempt follows in this run.
        outcome: how this attempt ended.
        note: `xfailed` (outcome `skipped`: it failed as expected) or `xpassed` (outcome `passed`).
        started_at: Unix time at which the attempt began.
        times: where its seconds went.
        worker: `main`, or xdist's name of the worker.
        broker: instance id of the broker, None when none was used.
        leased: what it used.
        receipts: in the order of the acts.
        artifacts: files beside the report.
        cause: None for a passed one.
    """

    version: int = VERSION
    node_id: str
    attempt: int
    final: bool
    outcome: Outcome
    note: Literal["xfailed", "xpassed"] | None = None
    started_at: float
    times: PhaseTimes
    worker: str = "main"
    broker: str | None = None
    leased: tuple[DeviceRecord, ...] = ()
    receipts: tuple[ReceiptRecord, ...] = ()
    artifacts: tuple[ArtifactRecord, ...] = ()
    cause: Cause | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AttemptRecord)


def encode(record: AttemptRecord) -> bytes:
    """One line, its end included. Names, messages and paths come from strangers: escape them where you show them."""
    return _encoder.encode(record) + b"\n"


def decode(line: bytes | str) -> AttemptRecord:
    """Read one line.

    Raises:
        msgspec.DecodeError: it is no record.
    """
    return _decoder.decode(line)


def read_records(path: Path) -> Iterator[AttemptRecord]:
    """The records of a file; a last line without its end (a run that was killed) is left out.

    Raises:
        OSError: it can't be read.
        msgspec.DecodeError: a whole line is no record.
    """
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield decode(line)
