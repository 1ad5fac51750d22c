"""Small private JSON files with one backup: read whole or known to be damaged, never half believed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from devices.sdk.faults import ManageRefused
from lomi.disk.private import read_private, write_private
from lomi.disk.refusal import DiskRefusedError, Reason

_LIMIT = 4 << 20
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that cannot be read: the digest of what is there, and the revision of its backup if that is whole."""

    file: str
    digest: str
    backup_revision: str | None


class MetadataFile(Generic[_T]):
    """One value in `path` as JSON; all calls block."""

    def __init__(self, path: Path, kind: type[_T], empty: _T) -> None:
        self.path = path
        self._kind = kind
        self._empty = empty

    @property
    def _backup(self) -> Path:
        return self.path.with_suffix(".backup.json")

    def read(self) -> tuple[_T, str]:
        """The value and its revision, 64 hex digits over the bytes.

        Raises:
            ManageRefused: reason metadata_damaged.
        """
        raw = _bytes(self.path)
        if raw is None:
            return self._empty, revision_of(b"")
        value = self._decoded(raw)
        if value is None:
            raise ManageRefused("metadata_damaged", f"{self.path.name} cannot be read", fields={"file": self.path.stem})
        return value, revision_of(raw)

    def write(self, value: _T) -> str:
        """Publish a value atomically; what was there, if whole, becomes the backup. Answers with the new revision."""
        before = _bytes(self.path)
        if before is not None and self._decoded(before) is not None:
            write_private(self._backup, before)
        raw = msgspec.json.format(msgspec.json.encode(value), indent=1)
        write_private(self.path, raw)
        return revision_of(raw)

    def damage(self) -> Damage | None:
        """What is wrong with the file, None when it is whole or absent."""
        raw = _bytes(self.path)
        if raw is None or self._decoded(raw) is not None:
            return None
        backup = _bytes(self._backup)
        whole = backup is not None and self._decoded(backup) is not None
        return Damage(self.path.stem, revision_of(raw), revision_of(backup) if whole and backup is not None else None)

    def restore(self, digest: str, *, reset: bool) -> str:
        """Put the backup back, or with `reset` the empty value, if what is there is still the damage that was seen.

        Raises:
            ManageRefused: metadata_unknown (nothing is damaged, or there is no whole backup) or metadata_changed.
        """
        found = self.damage()
        if found is None:
            raise ManageRefused("metadata_unknown", f"{self.path.name} is not damaged")
        if found.digest != digest:
            raise ManageRefused("metadata_changed", "the file is not the one that was seen")
        if reset:
            return self.write(self._empty)
        backup = _bytes(self._backup)
        if found.backup_revision is None or backup is None:
            raise ManageRefused("metadata_unknown", "there is no whole backup")
        write_private(self.path, backup)
        return revision_of(backup)

    def _decoded(self, raw: bytes) -> _T | None:
        try:
            return msgspec.json.decode(raw, type=self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


def revision_of(raw: bytes) -> str:
    """64 hex digits over the bytes."""
    return hashlib.sha256(raw).hexdigest()


def _bytes(path: Path) -> bytes | None:
    try:
        return read_private(path, _LIMIT)
    except DiskRefusedError as refused:
        if refused.reason is Reason.NOT_FOUND:
            return None
        raise
