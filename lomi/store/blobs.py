"""The files of artifacts: `<id>.stage` while written, `<id>` plus its ending once durable, which a row then makes true.

Of a picture that is still to be taken the final name is durable first, and the bytes under it then. A row turns ready
after its bytes; one whose file has another length all the same is taken for one without a file.

All functions block; call them through `asyncio.to_thread`.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from lomi.store.failure import StoreRefused
from lomi.store.place import open_private, private_place

DIRECTORY = "artifacts"
ENDINGS = {"image": ".png", "apk": ".apk", "file": ".bin"}
"""The ending of a published file, by class."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Blobs:
    """One private directory of artifact files."""

    def __init__(self, parent: Path) -> None:
        """Make or check the directory.

        Raises:
            StoreRefused: it is not private.
        """
        self.path = private_place(parent / DIRECTORY)

    def begin(self, artifact_id: str) -> int:
        """Create the stage file and return its descriptor, which the caller closes."""
        return os.open(self.path / f"{artifact_id}.stage", _NEW, 0o600)

    def name(self, artifact_id: str, artifact_class: str) -> int:
        """Create the file under its final name, empty, the name durable; its descriptor, which the caller closes."""
        descriptor = os.open(self.final(artifact_id, artifact_class), _NEW, 0o600)
        try:
            self._sync()
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def write(self, artifact_id: str, content: bytes) -> None:
        """Create the stage file whole and durable."""
        descriptor = self.begin(artifact_id)
        try:
            self.fill(descriptor, content)
        finally:
            os.close(descriptor)

    def fill(self, descriptor: int, content: bytes) -> None:
        """Write all bytes of a new file, and make them durable."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)

    def publish(self, artifact_id: str, artifact_class: str) -> None:
        """Give the staged bytes their final name, durably; without a row that promises them `recover` takes it away."""
        (self.path / f"{artifact_id}.stage").rename(self.final(artifact_id, artifact_class))
        self._sync()

    def final(self, artifact_id: str, artifact_class: str) -> Path:
        """Where a published file is."""
        return self.path / f"{artifact_id}{ENDINGS[artifact_class]}"

    def remove(self, *artifact_ids: str) -> None:
        """Remove every file of these artifacts; what is absent is removed already."""
        for artifact_id in artifact_ids:
            for ending in (".stage", ".ready", *ENDINGS.values()):
                with contextlib.suppress(FileNotFoundError):
                    (self.path / f"{artifact_id}{ending}").unlink()

    def recover(self, kept: Mapping[str, tuple[str, int]]) -> tuple[int, list[str]]:
        """Bring the files in line with the rows that remain, id to class and length in bytes.

        Finishes publications that were cut short and removes files without a row. Returns how many files were removed,
        and the ids whose bytes are gone.
        """
        present = {entry.name for entry in self.path.iterdir()}
        lost = []
        wanted = set()
        for artifact_id, (artifact_class, length) in kept.items():
            final = self.final(artifact_id, artifact_class)
            if final.name in present and final.lstat().st_size != length:
                lost.append(artifact_id)
                continue
            wanted.add(final.name)
            if final.name in present:
                continue
            if f"{artifact_id}.ready" in present:
                # Versions up to 0.1 gave the final name only after the row.
                (self.path / f"{artifact_id}.ready").rename(final)
            else:
                lost.append(artifact_id)
        removed = [entry for entry in self.path.iterdir() if entry.name not in wanted]
        for entry in removed:
            entry.unlink()
        return len(removed), lost

    def _sync(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def published_length(path: Path) -> int:
    """The length of a published file, -1 when it is gone or no longer ours alone."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except (OSError, StoreRefused):
        return -1
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def read_published(path: Path, length: int, sha256: str) -> bytes | None:
    """The bytes of a published file, None when they are not those of that length and hash."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except (OSError, StoreRefused):
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(length + 1)
    return content if hashlib.sha256(content).hexdigest() == sha256 else None
