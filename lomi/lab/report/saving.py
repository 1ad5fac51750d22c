"""Writes a report into its folder: whole files under their names or none, nothing over an earlier attempt."""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from lomi.lab.engine import Shelf
from lomi.lab.report.history import HISTORY, History
from lomi.lab.report.junit import junit
from lomi.lab.report.model import RunReport, path_of
from lomi.lab.report.page import page
from lomi.report.folder import emptied

MARK = "made-by-lomi-lab"
"""Names the file that marks a folder as a report: only such a folder is emptied for the next run."""
REPORT, JUNIT, PAGE, MANIFEST, ANCHOR = "report.json", "junit.xml", "report.html", "manifest.json", "anchor.json"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The SHA-256 of every file of a report by its path, but for the manifest itself and its anchor."""

    version: int = 1
    files: dict[str, str]


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """The operation whose receipt holds the manifest's SHA-256; None where no broker took it, and why."""

    version: int = 1
    manifest_sha256: str
    operation_id: str | None = None
    home: str | None = None
    why: str | None = None


def prepared(folder: Path, history: History | None = None) -> Path:
    """An empty report folder; one that an earlier run made is emptied. Blocks.

    What is known of earlier runs stays in it, for a run that is killed before it writes its own.

    Raises:
        FolderTakenError: there is something else in it.
        OSError: it can't be made.
    """
    ready = emptied(folder, MARK)
    if history is not None and history.tests:
        with suppress(OSError):
            put(ready / HISTORY, msgspec.json.encode(history))
    return ready


def save(run: RunReport, shelf: Shelf, folder: Path, history: History | None = None) -> bytes:
    """Write everything but the anchor; the content of the manifest. Blocks.

    Where the disk is full, what still fits of report, JUnit file and page is written; a history that does not fit
    leaves the one of before, since no run is to fail for it.

    Raises:
        OSError: something could not be written; what was written is whole.
    """
    hashes: dict[str, str] = {}
    failed: OSError | None = None
    forms: tuple[tuple[str, Callable[[], bytes]], ...] = (
        (REPORT, lambda: msgspec.json.format(msgspec.json.encode(run), indent=1)),
        (JUNIT, lambda: junit(run)),
        (PAGE, lambda: page(run, shelf).encode("utf-8", "backslashreplace")),
    )
    for name, made in forms:
        try:
            hashes[name] = put(folder / name, made())
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    for test in run.tests:
        for attempt in test.attempts:
            for place, artifact in enumerate(attempt.artifacts, 1):
                path = path_of(test, attempt, artifact, place)
                _copy(shelf.path_of(artifact.sha256), folder / path)
                hashes[path] = artifact.sha256
    if history is not None:
        with suppress(OSError):
            put(folder / HISTORY, msgspec.json.encode(history))
    with suppress(FileNotFoundError):
        hashes[HISTORY] = hashlib.sha256((folder / HISTORY).read_bytes()).hexdigest()
    hashes[MARK] = hashlib.sha256((folder / MARK).read_bytes()).hexdigest()
    content = msgspec.json.format(msgspec.json.encode(Manifest(files=hashes)), indent=1)
    put(folder / MANIFEST, content)
    return content


def put(path: Path, content: bytes) -> str:
    """Write a file whole, or not at all; its SHA-256."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as target:
            target.write(content)
            target.flush()
            os.fsync(target.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return hashlib.sha256(content).hexdigest()


def _copy(source: Path, target: Path) -> None:
    """Copy an artifact into its attempt's folder; what is there already stays, and is an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing)
