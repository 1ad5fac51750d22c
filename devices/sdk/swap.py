"""Putting a staged folder in the place of another so that a crash at any point leaves the old or the new one."""

import shutil
from pathlib import Path

import msgspec

from devices.sdk.faults import SetupFailed
from lomi.disk.private import read_private, write_private


class Installed(msgspec.Struct, frozen=True):
    """One package of the private SDK: path with semicolons, version, checksum of its archive, and its licence id."""

    path: str
    version: str
    checksum: str
    licence: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    """What is installed, and the one older copy per path that can come back."""

    installed: tuple[Installed, ...] = ()
    rollbacks: tuple[Installed, ...] = ()

    def package(self, path: str) -> Installed | None:
        """The installed package of a path."""
        return next((one for one in self.installed if one.path == path), None)

    def rollback(self, path: str) -> Installed | None:
        """The older copy of a path."""
        return next((one for one in self.rollbacks if one.path == path), None)

    def with_package(self, new: Installed) -> "Manifest":
        """`new` installed; what it replaces becomes its rollback."""
        old = self.package(new.path)
        return Manifest(
            (*(one for one in self.installed if one.path != new.path), new),
            (*(one for one in self.rollbacks if one.path != new.path), *((old,) if old else ())),
        )

    def without(self, path: str) -> "Manifest":
        """Neither the package nor its rollback."""
        return Manifest(
            tuple(one for one in self.installed if one.path != path),
            tuple(one for one in self.rollbacks if one.path != path),
        )

    def rolled_back(self, path: str) -> "Manifest":
        """The older copy installed, no rollback left."""
        old = self.rollback(path)
        if old is None:
            raise SetupFailed("nothing_to_roll_back", f"no older copy of {path}")
        kept = self.without(path)
        return Manifest((*kept.installed, old), kept.rollbacks)


class _Swap(msgspec.Struct, frozen=True):
    staged: str
    target: str
    older: str
    after: Manifest


class Swaps:
    """Swaps of one SDK with a journal that survives a crash; all calls block. `publish` stores the manifest."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    @property
    def unfinished(self) -> bool:
        """Whether a swap was interrupted and `recover` must run first."""
        return self._journal.exists()

    def begin(self, staged: Path, target: Path, older: Path, after: Manifest) -> None:
        """Journal the swap, then move `target` to `older` and `staged` to `target`."""
        swap = _Swap(str(staged), str(target), str(older), after)
        write_private(self._journal, msgspec.json.encode(swap))
        self._move(swap)

    def finish(self) -> None:
        """The manifest is stored: forget the journal."""
        self._journal.unlink(missing_ok=True)

    def recover(self) -> Manifest | None:
        """Finish or undo an interrupted swap; answers with the manifest to store when the new folder is in place.

        A swap whose staged folder is whole goes forward; one whose staged folder is gone before the move is undone.
        """
        if not self.unfinished:
            return None
        swap = msgspec.json.decode(read_private(self._journal, 8 << 20), type=_Swap)
        target, older = Path(swap.target), Path(swap.older)
        if Path(swap.staged).exists():
            self._move(swap)
            return swap.after
        if target.exists():
            return swap.after
        if older.exists():
            older.rename(target)
        return None

    def _move(self, swap: _Swap) -> None:
        staged, target, older = Path(swap.staged), Path(swap.target), Path(swap.older)
        if target.exists():
            if older.exists():
                shutil.rmtree(older)
            older.parent.mkdir(parents=True, exist_ok=True)
            target.rename(older)
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(target)
