"""The witness: a small file beside a database that remembers the last commit which was acknowledged.

SQLite silently drops committed frames behind a damaged one, and an older copy of a database looks healthy. The witness
makes both visible: a database that knows fewer commits than its witness has lost some. It is overwritten in place after
each commit without a sync of its own: it survives the death of the process, and after a power cut it can only be older
than the synced database, which is harmless.
"""

import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

from lomi.store.failure import StoreRefused
from lomi.store.place import open_private

_MAGIC = b"LOMIWIT1"
_BODY = struct.Struct(">8sQ16s")
_LENGTH = _BODY.size + 32


class Seen(NamedTuple):
    """What a witness saw: the number of the last acknowledged commit, and the namespace of its database (16 bytes)."""

    sequence: int
    namespace: bytes


class Witness:
    """An open witness file; its methods block for microseconds."""

    def __init__(self, path: Path) -> None:
        """Open the witness if there is one; `settle` makes it.

        Raises:
            StoreRefused: it is not private, or holds something else.
        """
        self._path = path
        self.seen: Seen | None = None
        try:
            self._descriptor = open_private(path, os.O_RDWR)
        except FileNotFoundError:
            self._descriptor = -1
            return
        if content := os.pread(self._descriptor, _LENGTH + 1, 0):
            self.seen = self._decode(content)

    def settle(self, sequence: int, namespace: bytes) -> None:
        """Remember durably: commit 0 before a database is made, and where it stands at each opening.

        Later notes overwrite in place and need no room.
        """
        if self._descriptor < 0:
            self._descriptor = open_private(self._path)
        self.note(sequence, namespace)
        os.fsync(self._descriptor)

    def note(self, sequence: int, namespace: bytes) -> None:
        """Remember that `sequence` is about to be acknowledged."""
        body = _BODY.pack(_MAGIC, sequence, namespace)
        os.pwrite(self._descriptor, body + hashlib.sha256(body).digest(), 0)

    def close(self) -> None:
        """Make the last record durable and close the file."""
        if self._descriptor < 0:
            return
        try:
            os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)

    def _decode(self, content: bytes) -> Seen:
        body, digest = content[: _BODY.size], content[_BODY.size :]
        if len(content) != _LENGTH or hashlib.sha256(body).digest() != digest or not body.startswith(_MAGIC):
            os.close(self._descriptor)
            hint = "Restore it together with its database, or move the whole directory away to begin a new history."
            raise StoreRefused("witness_damaged", self._path, hint)
        _, sequence, namespace = _BODY.unpack(body)
        return Seen(sequence, namespace)
