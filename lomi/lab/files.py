"""The files of a tests' folder, by hash: what a host needs to run shards of it."""

import os
from collections.abc import Iterator
from pathlib import Path

from lomi.lab.engine import Shelf
from lomi.lab.shard import FileByHash

LEFT_OUT = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache"})
MOST_FILES = 20_000


class FolderUnsendableError(Exception):
    """Raised when a tests' folder can't be sent to other hosts; the message says why."""


def shelve(folder: Path, shelf: Shelf, left_out: frozenset[Path] = frozenset()) -> tuple[FileByHash, ...]:
    """Put every plain file below a folder on the shelf; blocks. Links, caches and `left_out` (absolute) are not sent.

    Raises:
        FolderUnsendableError: there are more than 20,000, or one has a name that is no UTF-8.
        OSError: one can't be read.
    """
    found: list[FileByHash] = []
    for path in _plain_files(folder, left_out):
        if len(found) == MOST_FILES:
            raise FolderUnsendableError(f"{folder} holds more than {MOST_FILES} files; name a folder of tests alone")
        name = path.relative_to(folder).as_posix()
        if not is_text(name):
            raise FolderUnsendableError(f"the file {name!r} has a name that is no UTF-8; no other host could have it")
        content = path.read_bytes()
        found.append(
            FileByHash(
                path=name,
                bytes=len(content),
                sha256=shelf.put(content),
                executable=os.access(path, os.X_OK),
            )
        )
    return tuple(found)


def is_text(words: str) -> bool:
    """Whether other programs can be told the words: what the system gives as bytes need not be UTF-8."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_files(folder: Path, left_out: frozenset[Path]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and here / name not in left_out)
        yield from (here / name for name in sorted(names) if (here / name).is_file() and not (here / name).is_symlink())
