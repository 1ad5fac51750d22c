"""Placing a new file in an open folder: whole or not at all, never over another, also where files can't be unnamed."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lomi.disk import placing
from lomi.disk.placing import place_new, revision_of
from lomi.disk.refusal import DiskRefusedError, Reason


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """An open empty folder."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture(params=["unnamed", "named"])
def volume(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A volume with unnamed files, and one that says as NFS does that it has none."""
    opened = os.open

    def refusing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opened(path, flags, mode, dir_fd=dir_fd)

    if request.param == "named":
        if not hasattr(os, "O_TMPFILE"):
            pytest.skip("every volume here is such a one")
        monkeypatch.setattr(placing.os, "open", refusing)
    return str(request.param)


@pytest.mark.usefixtures("volume")
def test_a_placed_file_is_whole_and_alone(tmp_path: Path, directory: int) -> None:
    """Its bytes, one name, and nothing else in the folder; a second one of the same name is refused."""
    place_new(directory, "new.bin", b"bytes", expected_revision=revision_of(directory))
    assert [one.name for one in tmp_path.iterdir()] == ["new.bin"]
    assert ((tmp_path / "new.bin").read_bytes(), (tmp_path / "new.bin").stat().st_nlink) == (b"bytes", 1)
    with pytest.raises(DiskRefusedError) as said:
        place_new(directory, "new.bin", b"other", expected_revision=revision_of(directory))
    assert said.value.reason is Reason.EXISTS
    assert (tmp_path / "new.bin").read_bytes() == b"bytes"


@pytest.mark.usefixtures("volume")
def test_what_appears_at_the_last_moment_stays_and_nothing_is_left(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody makes a link of that name while the bytes are written: it is neither followed nor replaced."""
    write = placing._write  # the last moment before the name is given

    def meanwhile(descriptor: int, content: bytes) -> None:
        write(descriptor, content)
        (tmp_path / "new.bin").symlink_to(tmp_path / "elsewhere")

    monkeypatch.setattr(placing, "_write", meanwhile)
    with pytest.raises(DiskRefusedError) as said:
        place_new(directory, "new.bin", b"bytes", expected_revision=revision_of(directory))
    assert said.value.reason in (Reason.EXISTS, Reason.CHANGED)
    assert [one.name for one in tmp_path.iterdir()] == ["new.bin"]
    assert (tmp_path / "new.bin").is_symlink()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.usefixtures("volume")
def test_a_full_volume_leaves_no_part_of_a_file(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk ends in the middle of the bytes."""

    def full(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(placing, "_write", full)
    with pytest.raises(OSError, match="No space"):
        place_new(directory, "new.bin", b"bytes", expected_revision=revision_of(directory))
    assert list(tmp_path.iterdir()) == []
