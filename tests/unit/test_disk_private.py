"""Private files: published whole, read only when they can be trusted."""

import os
import stat
import threading
from pathlib import Path

import pytest

from lomi.disk import private
from lomi.disk.private import private_directory, read_private, read_published, remove_if_same, write_private
from lomi.disk.refusal import DiskRefusedError, Reason


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A private directory."""
    directory = tmp_path / "private"
    private_directory(directory)
    return directory


def names_in(directory: str | Path | int) -> list[str]:
    return sorted(entry.name for entry in os.scandir(directory))


def reason_of(path: Path, limit: int = 100) -> Reason:
    """Read what must be refused and return why it was."""
    with pytest.raises(DiskRefusedError) as caught:
        read_private(path, limit)
    return caught.value.reason


def test_a_private_file_comes_back(place: Path) -> None:
    """What was published is read again; mode 0600, one name, nothing left beside it."""
    write_private(place / "file", b"first")
    published = write_private(place / "file", b"second")
    assert read_published(place / "file", 6) == (b"second", published)
    assert stat.S_IMODE((place / "file").stat().st_mode) == 0o600
    assert names_in(place) == ["file"]


def test_nothing_is_replaced_when_asked_not_to(place: Path) -> None:
    """Without `replace` a taken name is refused and the old content stays; links are not followed."""
    write_private(place / "file", b"first", replace=False)
    (place / "dangling").symlink_to("nowhere")
    for name in ("file", "dangling"):
        with pytest.raises(DiskRefusedError) as caught:
            write_private(place / name, b"second", replace=False)
        assert caught.value.reason is Reason.EXISTS
    assert read_private(place / "file", 100) == b"first"
    assert names_in(place) == ["dangling", "file"]


def test_a_filesystem_without_unnamed_files_replaces_nothing_either(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fallback with a temporary name gives the same promises."""
    monkeypatch.setattr(private, "_UNNAMED", 0)
    write_private(place / "file", b"first", replace=False)
    with pytest.raises(DiskRefusedError):
        write_private(place / "file", b"second", replace=False)
    assert read_private(place / "file", 100) == b"first"
    assert names_in(place) == ["file"]


def test_of_many_creators_exactly_one_wins(place: Path) -> None:
    """Threads that create one name at once: one succeeds, the content is that one's and whole."""
    wins: list[int] = []
    start = threading.Barrier(8)

    def create(number: int) -> None:
        start.wait()
        try:
            write_private(place / "file", bytes([number]) * 5000, replace=False)
            wins.append(number)
        except DiskRefusedError:
            pass

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1
    assert read_private(place / "file", 5000) == bytes(wins) * 5000


def test_a_failed_write_keeps_the_old_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fails before the rename, the old content is intact and no temporary file is left."""
    write_private(place / "file", b"old")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    for replace in (True, False):
        with pytest.raises(OSError, match="No space"):
            write_private(place / ("file" if replace else "other"), b"new", replace=replace)
    assert read_private(place / "file", 100) == b"old"
    assert names_in(place) == ["file"]


def test_an_untrusted_file_is_not_read(place: Path) -> None:
    """Each way in which somebody else could have written the file is refused with its reason."""
    file = place / "file"
    write_private(file, b"content")
    assert reason_of(place / "none") is Reason.NOT_FOUND
    assert reason_of(file, limit=6) is Reason.TOO_LARGE
    assert reason_of(Path("file")) is Reason.NOT_ABSOLUTE
    assert reason_of(place / ".." / "private" / "file") is Reason.NAME_INVALID
    assert reason_of(place) is Reason.NOT_REGULAR
    (place / "link").symlink_to("file")
    assert reason_of(place / "link") is Reason.SYMLINK
    (place.parent / "way").symlink_to("private")
    assert reason_of(place.parent / "way" / "file") is Reason.SYMLINK
    os.mkfifo(place / "fifo", 0o600)
    assert reason_of(place / "fifo") is Reason.NOT_REGULAR
    for mode in (0o644, 0o640, 0o660, 0o400, 0o700):
        file.chmod(mode)
        assert reason_of(file) is Reason.MODE
    file.chmod(0o600)
    os.link(file, place / "second")
    assert reason_of(file) is Reason.HARD_LINK


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_foreign_file_is_not_read(place: Path) -> None:
    """A file of another user is refused, and so is a directory of another user."""
    write_private(place / "file", b"content")
    os.chown(place / "file", 12345, 12345)
    assert reason_of(place / "file") is Reason.FOREIGN_OWNER
    os.chown(place, 12345, 12345)
    for act in (lambda: private_directory(place), lambda: write_private(place / "file", b"")):
        with pytest.raises(DiskRefusedError) as caught:
            act()
        assert caught.value.reason is Reason.FOREIGN_OWNER


def test_a_private_directory_is_ours_alone(tmp_path: Path) -> None:
    """Missing directories are made 0700, readable ones tightened, writable ones and links refused."""
    private_directory(tmp_path / "a" / "b")
    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/b")] == [0o700, 0o700]
    (tmp_path / "a").chmod(0o755)
    private_directory(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    (tmp_path / "a").chmod(0o720)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "file").write_text("")
    for path, reason in (
        (tmp_path / "a", Reason.MODE),
        (tmp_path / "link", Reason.SYMLINK),
        (tmp_path / "file", Reason.NOT_DIRECTORY),
        (Path("relative"), Reason.NOT_ABSOLUTE),
    ):
        with pytest.raises(DiskRefusedError) as caught:
            private_directory(path)
        assert caught.value.reason is reason


def test_only_the_published_file_is_removed(place: Path) -> None:
    """A file is removed by who published it and stays when another one took its name."""
    first = write_private(place / "file", b"first")
    second = write_private(place / "file", b"other")
    assert not remove_if_same(place / "file", first)
    assert read_private(place / "file", 100) == b"other"
    assert remove_if_same(place / "file", second)
    assert not remove_if_same(place / "file", second)
    assert names_in(place) == []


def test_a_reader_never_sees_the_change_of_files(place: Path) -> None:
    """While a file is replaced again and again, every read gives one whole version and no refusal."""
    write_private(place / "file", b"0" * 1000)
    done = threading.Event()

    def publish() -> None:
        number = 0
        while not done.is_set():
            number = (number + 1) % 10
            write_private(place / "file", str(number).encode() * 1000)

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for _ in range(500):
            content = read_private(place / "file", 1000)
            assert content == content[:1] * 1000
    finally:
        done.set()
        publisher.join()


def test_removal_and_publication_do_not_cross(place: Path) -> None:
    """However removal of the old and publication of the new file race, the new file is there at the end."""
    for _ in range(50):
        old = write_private(place / "file", b"old")
        remover = threading.Thread(target=remove_if_same, args=(place / "file", old))
        remover.start()
        write_private(place / "file", b"new")
        remover.join()
        assert read_private(place / "file", 10) == b"new"
