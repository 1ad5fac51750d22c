"""Checks a report against its files and the broker's ledger; names every difference."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from lomi.lab.report.model import RunReport, path_of
from lomi.lab.report.saving import ANCHOR, MANIFEST, REPORT, Anchor, Manifest
from lomi.lab.shard import ReceiptNote

_BLOCK = 1 << 20
StructT = TypeVar("StructT", bound=msgspec.Struct)


class LedgerRow(Protocol):
    """A receipt as the ledger holds it."""

    @property
    def operation_id(self) -> str:
        """Its id."""
        ...

    @property
    def tool(self) -> str:
        """Which tool."""
        ...

    @property
    def state(self) -> str:
        """How it ended."""
        ...

    @property
    def effect(self) -> str:
        """What is known of its effect."""
        ...

    @property
    def generation(self) -> str | None:
        """The life that it acted on."""
        ...

    @property
    def sha256(self) -> str | None:
        """The hash that its result names."""
        ...


class UnreadableReportError(Exception):
    """Raised when a folder is no report, or its own values can't be read; the message says which file."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared, and every difference in a line. `ledger` says whether receipts could be compared, or why not.

    A report without a ledger is checked against itself alone: whoever changed a file and its hash is not found out.
    """

    files: int
    receipts: int
    anchored: bool
    ledger: str
    differences: tuple[str, ...]


def verify(folder: Path, ledger: Iterable[LedgerRow] | None, no_ledger: str = "") -> Checked:
    """Compare a report with its files and with a ledger, if there is one; blocks.

    Raises:
        UnreadableReportError: there is nothing to compare.
        OSError: a file can't be read.
    """
    manifest_bytes = _read(folder / MANIFEST)
    manifest = _decoded(manifest_bytes, Manifest, MANIFEST)
    anchor = _decoded(_read(folder / ANCHOR), Anchor, ANCHOR)
    differences = [*_files(folder, manifest), *_anchor(manifest_bytes, anchor)]
    rows = None if ledger is None else {row.operation_id: row for row in ledger}
    receipts = 0
    try:
        run = msgspec.json.decode(_read(folder / REPORT), type=RunReport)
    except msgspec.DecodeError:
        differences.append(f"{REPORT} can't be read any more")
    else:
        differences += _artifacts(run, manifest)
        noted = {note.operation_id: note for test in run.tests for a in test.attempts for note in a.receipts}
        receipts = len(noted)
        if rows is not None:
            differences += [line for note in noted.values() for line in _receipt(note, rows)]
    if rows is not None:
        differences += _anchored(manifest_bytes, anchor, rows)
    return Checked(
        files=len(manifest.files),
        receipts=receipts,
        anchored=rows is not None and anchor.operation_id is not None,
        ledger="compared" if rows is not None else no_ledger,
        differences=tuple(differences),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UnreadableReportError(f"{path} is not there") from error


def _decoded(content: bytes, kind: type[StructT], name: str) -> StructT:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise UnreadableReportError(f"{name} can't be read any more: {error}") from error


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as reading:
        while block := reading.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _files(folder: Path, manifest: Manifest) -> list[str]:
    found: list[str] = []
    root = folder.resolve()
    for name, sha256 in manifest.files.items():
        path = root / name
        if not path.resolve().is_relative_to(root) or not path.is_file():
            found.append(f"{name} is gone")
        elif (now := _hash(path)) != sha256:
            found.append(f"{name} is not what was written: SHA-256 {now}, written was {sha256}")
    known = {*manifest.files, MANIFEST, ANCHOR}
    strange = sorted(
        path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() or path.is_symlink()
    )
    return found + [f"{name} was not written by the run" for name in strange if name not in known]


def _anchor(manifest: bytes, anchor: Anchor) -> list[str]:
    now = hashlib.sha256(manifest).hexdigest()
    if anchor.manifest_sha256 == now:
        return []
    return [f"{MANIFEST} is not what {ANCHOR} says: SHA-256 {now}, not {anchor.manifest_sha256}"]


def _artifacts(run: RunReport, manifest: Manifest) -> list[str]:
    """Every artifact that the report names is in the manifest, under the hash that the report names."""
    return [
        f"{path}: {REPORT} says SHA-256 {artifact.sha256}, {MANIFEST} says {manifest.files.get(path)}"
        for test in run.tests
        for attempt in test.attempts
        for place, artifact in enumerate(attempt.artifacts, 1)
        if manifest.files.get(path := path_of(test, attempt, artifact, place)) != artifact.sha256
    ]


def _receipt(note: ReceiptNote, rows: Mapping[str, LedgerRow]) -> list[str]:
    row = rows.get(note.operation_id)
    if row is None:
        return [f"receipt {note.operation_id} ({note.tool}) is not in the ledger"]
    pairs = (
        ("tool", note.tool, row.tool),
        ("state", note.state, str(row.state)),
        ("effect", note.effect, str(row.effect)),
        ("generation", note.generation, row.generation),
    )
    return [
        f"receipt {note.operation_id}: the report says {name} {said}, the ledger {held}"
        for name, said, held in pairs
        if said != held and said is not None
    ]


def _anchored(manifest: bytes, anchor: Anchor, rows: Mapping[str, LedgerRow]) -> list[str]:
    """The receipt that holds the manifest's hash, in a ledger that the report's files can't change."""
    if anchor.operation_id is None:
        # Whoever forges a report would say so: only who knows that no broker took part may leave the ledger out.
        return [f"no receipt anchors this report ({anchor.why or 'it does not say why'}); see --files-only"]
    row = rows.get(anchor.operation_id)
    if row is None:
        return [f"the receipt {anchor.operation_id} that anchors this report is not in the ledger"]
    now = hashlib.sha256(manifest).hexdigest()
    if row.tool != "lomi_artifact_import" or str(row.state) != "succeeded" or row.sha256 != now:
        return [f"the ledger's receipt {row.operation_id} holds {row.sha256}, and {MANIFEST} is now {now}"]
    return []
