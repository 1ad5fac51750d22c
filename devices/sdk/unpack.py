"""Unpacking a verified zip within bounds: no way out of its folder, no surprise in size."""

import os
import stat
import zipfile
from pathlib import Path, PurePosixPath

from devices.sdk.faults import SetupFailed

_MAX_ENTRIES = 200_000
_MAX_RATIO = 200
_CHUNK = 1 << 20


def unpack(archive: Path, target: Path, *, max_bytes: int = 24 << 30) -> None:
    """Unpack into the new folder `target`, leaving out a single top folder that holds everything; blocking.

    Raises:
        SetupFailed: reason archive_hostile.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            _check_bounds(entries, archive.stat().st_size, max_bytes)
            strip = _top_folder(entries)
            target.mkdir(parents=True)
            links: list[tuple[Path, str]] = []
            for entry in entries:
                parts = _safe_parts(entry.filename)[strip:]
                if parts:
                    _extract(opened, entry, target.joinpath(*parts), links)
            for path, to in links:
                _link(target, path, to)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, UnicodeDecodeError) as broken:
        raise _hostile(str(broken)) from broken


def _check_bounds(entries: list[zipfile.ZipInfo], packed: int, max_bytes: int) -> None:
    total = sum(entry.file_size for entry in entries)
    if len(entries) > _MAX_ENTRIES:
        raise _hostile(f"more than {_MAX_ENTRIES} entries")
    if total > max_bytes or total > packed * _MAX_RATIO + (1 << 20):
        raise _hostile(f"{total} bytes unpacked")
    if any(entry.flag_bits & 1 for entry in entries):
        raise _hostile("encrypted entries")


def _top_folder(entries: list[zipfile.ZipInfo]) -> int:
    tops = {_safe_parts(entry.filename)[0] for entry in entries if _safe_parts(entry.filename)}
    nested = all(len(_safe_parts(entry.filename)) > 1 or entry.is_dir() for entry in entries)
    return 1 if len(tops) == 1 and nested else 0


def _safe_parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or "\\" in name or "\0" in name or ".." in path.parts:
        raise _hostile(f"entry {name[:80]!r}")
    return path.parts


def _extract(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, links: list[tuple[Path, str]]) -> None:
    mode = entry.external_attr >> 16
    if entry.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        links.append((path, opened.read(entry).decode("utf-8")))
        return
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        raise _hostile(f"entry {entry.filename[:80]!r} is no file")
    left = entry.file_size
    with opened.open(entry) as source, path.open("xb") as out:
        while chunk := source.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise _hostile("an entry is longer than it says")
            out.write(chunk)
    path.chmod(0o755 if mode & 0o111 else 0o644)


def _link(root: Path, path: Path, to: str) -> None:
    """Symbolic links come last and must stay inside."""
    inside = Path(os.path.normpath(path.parent / to))
    if Path(to).is_absolute() or not inside.is_relative_to(root):
        raise _hostile(f"link to {to[:80]!r}")
    path.symlink_to(to)


def _hostile(detail: str) -> SetupFailed:
    return SetupFailed("archive_hostile", f"the archive is refused: {detail}")
