"""Files below a pinned root: what is opened, and everything that is not."""

import ctypes
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lomi.disk import openat2
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.root import PinnedRoot, identity_of


@pytest.fixture(params=["kernel", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of resolving a name: openat2 and, as on a kernel without it, the walk."""
    if request.param == "walk":
        monkeypatch.setattr(openat2, "available", lambda: False)
    elif not openat2.available():
        pytest.skip("this kernel has no openat2")
    return str(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project with one file two levels down, and a secret beside the project."""
    project = tmp_path / "project"
    (project / "a" / "b").mkdir(parents=True)
    (project / "a" / "b" / "file.txt").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.txt").write_text("outside")
    return project


@pytest.fixture
def root(tree: Path, way: str) -> Iterator[PinnedRoot]:
    """The project, pinned."""
    with PinnedRoot.open(tree) as pinned:
        yield pinned


def names_in(directory: str | Path | int) -> list[str]:
    return sorted(entry.name for entry in os.scandir(directory))


def refused(root: PinnedRoot, relative: str) -> Reason:
    """Open what must be refused and return why it was."""
    before = len(names_in("/proc/self/fd"))
    with pytest.raises(DiskRefusedError) as caught:
        os.close(root.open_file(relative))
    assert len(names_in("/proc/self/fd")) == before, "a refusal leaves no descriptor"
    assert str(caught.value) == str(DiskRefusedError(caught.value.reason)), "the text holds no path"
    return caught.value.reason


def read(root: PinnedRoot, relative: str) -> str:
    descriptor = root.open_file(relative)
    with os.fdopen(descriptor) as file:
        return file.read()


def test_a_file_below_the_root_is_opened(root: PinnedRoot) -> None:
    """A plain file at any depth opens, and its descriptor does not leak into children."""
    assert read(root, "a/b/file.txt") == "inside"
    descriptor = root.open_file("a/b/file.txt")
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_a_file_can_be_opened_to_write(root: PinnedRoot, tree: Path) -> None:
    """Writing goes into the same file and does not shorten it."""
    descriptor = root.open_file("a/b/file.txt", write=True)
    os.pwrite(descriptor, b"IN", 0)
    os.close(descriptor)
    assert (tree / "a" / "b" / "file.txt").read_text() == "INside"


@pytest.mark.parametrize(
    ("relative", "reason"),
    [
        ("", Reason.NAME_INVALID),
        (".", Reason.NAME_INVALID),
        ("..", Reason.NAME_INVALID),
        ("a/../a/b/file.txt", Reason.NAME_INVALID),
        ("a//b/file.txt", Reason.NAME_INVALID),
        ("a/b/file.txt/", Reason.NAME_INVALID),
        ("a\\b", Reason.NAME_INVALID),
        ("a/\0", Reason.NAME_INVALID),
        ("a/\udcff", Reason.NAME_INVALID),
        ("/etc/passwd", Reason.NOT_RELATIVE),
        ("x" * 256, Reason.NAME_TOO_LONG),
        ("/".join(["x" * 250] * 17), Reason.NAME_TOO_LONG),
        ("a/nothing", Reason.NOT_FOUND),
        ("nothing/file.txt", Reason.NOT_FOUND),
        ("a/b", Reason.NOT_REGULAR),
        ("a/b/file.txt/deeper", Reason.NOT_DIRECTORY),
    ],
)
def test_a_bad_path_is_refused(root: PinnedRoot, relative: str, reason: Reason) -> None:
    """Each malformed or missing path has its own reason."""
    assert refused(root, relative) is reason


@pytest.mark.parametrize(
    "name",
    [".env", ".ENV.local", ".git", ".Git", ".ssh", ".aws", ".azure", ".gnupg", ".codex", ".netrc", ".npmrc", ".pypirc",
     "credentials", "Credentials.JSON", "id_rsa", "ID_ED25519", "server.pem", "a.KEY", "b.p12", "c.pfx", "d.Keystore",
     "e.jks", ".g\u200dit", ".\u017fsh", "\uff0egit", "server.\uff50em"],
)  # fmt: skip
@pytest.mark.parametrize("place", ["{}", "a/{}", "a/b/{}", "{}/config"])
def test_a_secret_name_is_refused_at_each_depth(root: PinnedRoot, tree: Path, name: str, place: str) -> None:
    """Names kept for secrets are refused in any letter case, as files and as directories, whether or not they exist."""
    path = tree / place.format(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("secret")
    assert refused(root, place.format(name)) is Reason.RESERVED_NAME


@pytest.mark.parametrize(
    "name", ["environment", "env", "keys", "mykey", "gitignore", ".gitignore", "credential", "pem", "é.txt", "漢🙂"]
)
def test_a_name_like_a_secret_one_is_opened(root: PinnedRoot, tree: Path, name: str) -> None:
    """Only the listed names are refused, not their neighbours."""
    (tree / name).write_text("fine")
    assert read(root, name) == "fine"


def test_links_are_refused(root: PinnedRoot, tree: Path) -> None:
    """A symbolic link is refused as a file and as a directory, wherever it leads; a hard link under either name."""
    (tree / "inner").symlink_to("a/b/file.txt")
    (tree / "outer").symlink_to("../outside/file.txt")
    (tree / "dir").symlink_to("../outside")
    (tree / "magic").symlink_to("/proc/self/root")
    os.link(tree.parent / "outside" / "file.txt", tree / "hard")
    assert refused(root, "inner") is Reason.SYMLINK
    assert refused(root, "outer") is Reason.SYMLINK
    assert refused(root, "dir/file.txt") is Reason.SYMLINK
    assert refused(root, "magic/etc/passwd") is Reason.SYMLINK
    assert refused(root, "hard") is Reason.HARD_LINK


def test_special_files_are_refused_at_once(root: PinnedRoot, tree: Path) -> None:
    """A FIFO, a socket and a device are refused without being opened or waited for."""
    os.mkfifo(tree / "fifo")
    assert refused(root, "fifo") is Reason.NOT_REGULAR
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(tree, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/sock")
        os.close(here)
        assert refused(root, "sock") is Reason.NOT_REGULAR
    try:
        os.mknod(tree / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        return
    assert refused(root, "zero") is Reason.NOT_REGULAR


def test_protected_places_are_refused_by_every_path(tree: Path, way: str) -> None:
    """What is protected by device and inode is refused as a root, below one, as a file and after a rename."""
    home = tree / "state"
    (home / "deep").mkdir(parents=True)
    (home / "deep" / "file").write_text("state")
    (tree / "policy.toml").write_text("policy")
    protected = {identity_of(home), identity_of(tree / "policy.toml")}
    for place in (home, home / "deep"):
        with pytest.raises(DiskRefusedError) as caught:
            PinnedRoot.open(place, protected=protected)
        assert caught.value.reason is Reason.PROTECTED
    with PinnedRoot.open(tree, protected=protected) as root:
        assert refused(root, "state/deep/file") is Reason.PROTECTED
        assert refused(root, "policy.toml") is Reason.PROTECTED
        home.rename(tree / "a" / "innocent")
        assert refused(root, "a/innocent/deep/file") is Reason.PROTECTED
        with pytest.raises(DiskRefusedError):
            root.open_directory("a/innocent")
        assert read(root, "a/b/file.txt") == "inside"


def test_the_root_stays_pinned(root: PinnedRoot, tree: Path) -> None:
    """After the path was given to another directory the root still is the first one, and says that it moved."""
    assert root.stands()
    tree.rename(tree.parent / "moved")
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file.txt").write_text("impostor")
    assert read(root, "a/b/file.txt") == "inside"
    assert not root.stands()


def test_a_root_below_a_link_is_refused(tree: Path, way: str) -> None:
    """Root paths with a link, a relative path or a file in them are refused."""
    (tree.parent / "way").symlink_to(tree)
    for path, reason in (
        (tree.parent / "way", Reason.SYMLINK),
        (tree.parent / "way" / "a", Reason.SYMLINK),
        (Path("relative"), Reason.NOT_ABSOLUTE),
        (tree / "a" / "b" / "file.txt", Reason.NOT_DIRECTORY),
        (tree / "none", Reason.NOT_FOUND),
    ):
        with pytest.raises(DiskRefusedError) as caught:
            PinnedRoot.open(path)
        assert caught.value.reason is reason


def test_a_directory_moved_out_during_the_call_is_refused(
    root: PinnedRoot, tree: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that leaves the root between resolving and opening is noticed."""
    resolve = PinnedRoot._resolve

    def resolve_then_move(pinned: PinnedRoot, names: tuple[str, ...]) -> int:
        found = resolve(pinned, names)
        (tree / "a" / "b").rename(tree.parent / "b")
        return found

    monkeypatch.setattr(PinnedRoot, "_resolve", resolve_then_move)
    assert refused(root, "a/b/file.txt") is Reason.CHANGED


def swap_race(root: PinnedRoot, tree: Path, rounds: int) -> None:
    """Swap `a/b` with a link to the outside again and again while opening; only the inside may ever be read."""
    (tree / "bait").symlink_to("../outside")
    libc = ctypes.CDLL(None, use_errno=True)
    swapped = (-100, os.fsencode(tree / "a"), -100, os.fsencode(tree / "bait"), 2)  # RENAME_EXCHANGE
    assert libc.renameat2(*swapped) == 0
    assert libc.renameat2(*swapped) == 0
    (tree / "bait").unlink()
    (tree.parent / "outside" / "b").mkdir()
    (tree.parent / "outside" / "b" / "file.txt").write_text("outside")
    (tree / "bait").symlink_to("../outside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            libc.renameat2(*swapped)

    swapper = threading.Thread(target=swap)
    swapper.start()
    opened = 0
    try:
        for number in range(2 * rounds):
            if number >= rounds:
                if opened:
                    break
                # Taking turns at the interpreter, the threads kept step: each open saw the link. Let the other run on.
                time.sleep(0.001)
            try:
                assert read(root, "a/b/file.txt") == "inside"
                opened += 1
            except DiskRefusedError as error:
                assert error.reason in {Reason.SYMLINK, Reason.NOT_DIRECTORY, Reason.NOT_FOUND, Reason.CHANGED}  # noqa: PT017
    finally:
        done.set()
        swapper.join()
    assert opened > 0, "the race also let the true file through"


def test_a_parent_swapped_during_the_call_never_leads_outside(root: PinnedRoot, tree: Path) -> None:
    """One thousand opens against a thread that swaps the parent with a link: no outside byte, no hang."""
    swap_race(root, tree, 1_000)


@pytest.mark.deep
def test_a_parent_swapped_during_ten_thousand_calls_never_leads_outside(root: PinnedRoot, tree: Path) -> None:
    """The long form of the swap race."""
    swap_race(root, tree, 10_000)


def test_a_file_saved_by_renaming_is_opened_all_the_same(root: PinnedRoot, tree: Path) -> None:
    """While an editor saves again and again, every open gives one whole version and no refusal."""
    file, done = tree / "a" / "b" / "file.txt", threading.Event()

    def save() -> None:
        while not done.is_set():
            file.with_name("new").write_text("inside")
            file.with_name("new").rename(file)

    saver = threading.Thread(target=save)
    saver.start()
    try:
        for _ in range(500):
            assert read(root, "a/b/file.txt") == "inside"
    finally:
        done.set()
        saver.join()


def test_a_directory_can_be_opened(root: PinnedRoot) -> None:
    """A directory below the root opens; so does the root; a file does not."""
    for relative, names in (("", ["a"]), ("a/b", ["file.txt"])):
        descriptor = root.open_directory(relative)
        assert names_in(descriptor) == names
        os.close(descriptor)
    with pytest.raises(DiskRefusedError) as caught:
        root.open_directory("a/b/file.txt")
    assert caught.value.reason is Reason.NOT_DIRECTORY


def test_a_parent_is_opened_for_a_file_to_come(root: PinnedRoot) -> None:
    """The parent of a name that does not exist yet opens together with that name."""
    parent, name = root.open_parent("a/b/new.txt")
    assert names_in(parent) == ["file.txt"]
    assert name == "new.txt"
    os.close(parent)
