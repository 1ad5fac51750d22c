"""What the pytest plugin left of a worker's attempts: its records and files, taken onto the shelf."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from lomi.lab.engine import Shelf
from lomi.lab.records import RECORDS_NAME, ArtifactRecord, AttemptRecord, read_records
from lomi.lab.shard import Artifact, Attempt, ReceiptNote

MOST_ARTIFACT = 64 << 20
"""Bytes of one file of evidence; a larger one is named and not kept."""


def with_evidence(attempts: Iterable[Attempt], left: Path, shelf: Shelf) -> tuple[Attempt, ...]:
    """The attempts with receipts, generations and artifacts of the records in a folder; blocks.

    What the plugin calls an error of the lab is one, whatever pytest made of it.

    Raises:
        OSError: the shelf is full.
    """
    records = _records(left / RECORDS_NAME)
    return tuple(
        _enriched(attempt, records[attempt.test], left, shelf) if attempt.test in records else attempt
        for attempt in attempts
    )


def _records(path: Path) -> dict[str, AttemptRecord]:
    """The last record of each test; a file that can't be read is none."""
    found: dict[str, AttemptRecord] = {}
    try:
        for record in read_records(path):
            found[record.node_id] = record
    except (OSError, msgspec.DecodeError):
        return found
    return found


def _enriched(attempt: Attempt, record: AttemptRecord, left: Path, shelf: Shelf) -> Attempt:
    verdict, reason = attempt.verdict, attempt.reason
    if record.outcome == "infra_error" and verdict != "passed":
        verdict = "infra_error"
        reason = record.cause.message if record.cause is not None else reason
    receipts = tuple(
        ReceiptNote(
            operation_id=receipt.operation_id,
            tool=receipt.tool,
            state=receipt.state,
            effect=receipt.effect_state,
            generation=receipt.generation,
        )
        for receipt in record.receipts
    )
    kept = (_kept(artifact, left, shelf) for artifact in record.artifacts)
    return msgspec.structs.replace(
        attempt,
        verdict=verdict,
        reason=reason,
        generations=tuple(dict.fromkeys(device.generation for device in record.leased)),
        receipts=receipts,
        artifacts=tuple(artifact for artifact in kept if artifact is not None),
    )


def _kept(record: ArtifactRecord, left: Path, shelf: Shelf) -> Artifact | None:
    """A file on the shelf; None where it is gone, lies outside of the folder, or is too large."""
    path = (left / record.path).resolve()
    if not path.is_relative_to(left.resolve()) or not path.is_file() or path.stat().st_size > MOST_ARTIFACT:
        return None
    content = path.read_bytes()
    return Artifact(
        name=Path(record.path).name,
        kind=record.kind,
        bytes=len(content),
        sha256=shelf.put(content),
        generation=record.generation,
        operation=record.operation_id,
    )
