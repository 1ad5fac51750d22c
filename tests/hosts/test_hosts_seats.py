"""Which host a shard is given to, from values alone."""

import pytest

from lomi.lab.engine import NeedsUnmetError
from lomi.lab.engines.dask_hosts import Seats
from lomi.lab.host_orders import HostFacts
from lomi.lab.host_rooms import BadFileError, own_plan, place_files
from lomi.lab.plan import parse_plan
from lomi.lab.shard import FileByHash, Needs
from lomi.lab.shelf import FolderShelf

PHONES = parse_plan('version = 1\n[pool]\nimage = "paper-36"\nphones = 8\n[[needs]]\ntest = "*pair*"\nphones = 2\n')


def facts(name: str, phones: int = 0, image: str = "paper-36") -> HostFacts:
    """A host."""
    return HostFacts(name=name, phones={image: phones} if phones else {}, slots=4, browsers=2, version="1")


async def test_the_host_with_most_to_spare_gets_the_next_shard() -> None:
    """By free phones; a full host gets none."""
    seats = Seats(PHONES)
    small = await seats.add("tls://a", facts("a", 1))
    large = await seats.add("tls://b", facts("b", 3))
    assert small is not None
    assert large is not None
    assert seats.capacity == 4
    assert seats.free(Needs(phones=1)) is large
    large.used = 3
    assert seats.free(Needs(phones=1)) is small
    assert seats.free(Needs(phones=2)) is None
    assert seats.able(Needs(phones=2))


async def test_a_host_of_another_image_has_nothing_for_the_plan() -> None:
    """It is not counted at all."""
    seats = Seats(PHONES)
    assert await seats.add("tls://a", facts("a", 4, "paper-30")) is None
    assert await seats.add("tls://b", facts("b")) is None
    assert seats.capacity == 0


async def test_what_no_host_ever_had_is_refused_at_once_and_a_gone_host_may_come_back() -> None:
    """Three phones are refused; two are not, although the host with two has just gone."""
    seats = Seats(PHONES)
    seats.check(Needs(phones=3))
    seat = await seats.add("tls://a", facts("a", 2))
    assert seat is not None
    with pytest.raises(NeedsUnmetError, match="largest host of this cluster has 2"):
        seats.check(Needs(phones=3))
    await seats.drop("tls://a")
    assert seat.gone.is_set()
    seats.check(Needs(phones=2))
    assert not seats.able(Needs(phones=2))


async def test_a_host_that_lost_a_phone_is_not_asked_for_as_many_again() -> None:
    """It still gets shards that fit; when nobody has enough, that is said."""
    seats = Seats(PHONES)
    seat = await seats.add("tls://a", facts("a", 2))
    assert seat is not None
    seats.lower(seat, 1)
    assert seats.free(Needs(phones=1)) is seat
    with pytest.raises(NeedsUnmetError):
        seats.check(Needs(phones=2))


def test_a_plan_becomes_a_host_s_own() -> None:
    """Its phones are those of the host, and the broker is never the plan's."""
    mine = own_plan(parse_plan('version = 1\n[pool]\nphones = 8\n[broker]\norigins = ["http://a"]\n'), facts("a", 3))
    assert mine.phones == 3
    assert mine.broker is None
    assert mine.worker_count == 3
    assert own_plan(parse_plan("version = 1\nworkers = 99\n"), facts("a")).worker_count == 4


@pytest.mark.parametrize("path", ["../a.py", "/etc/a.py", "a/../../b.py", "", "a\0b"])
def test_a_file_outside_of_the_tests_folder_is_refused(tmp_path, path: str) -> None:
    """Nothing is written."""
    shelf = FolderShelf(tmp_path / "shelf")
    sha256 = shelf.put(b"content")
    (tmp_path / "work").mkdir()
    with pytest.raises(BadFileError):
        place_files(tmp_path / "work", (FileByHash(path=path, bytes=7, sha256=sha256),), shelf)
    assert list((tmp_path / "work").iterdir()) == []


def test_files_are_placed_as_they_were(tmp_path) -> None:
    """Content and the executable bit."""
    shelf = FolderShelf(tmp_path / "shelf")
    files = (
        FileByHash(path="tests/data/a.bin", bytes=2, sha256=shelf.put(b"\0\xff")),
        FileByHash(path="run.sh", bytes=4, sha256=shelf.put(b"#!sh"), executable=True),
    )
    place_files(tmp_path / "work", files, shelf)
    assert (tmp_path / "work" / "tests" / "data" / "a.bin").read_bytes() == b"\0\xff"
    assert (tmp_path / "work" / "run.sh").stat().st_mode & 0o777 == 0o700
    with pytest.raises(KeyError):
        place_files(tmp_path / "work", (FileByHash(path="b", bytes=1, sha256="0" * 64),), shelf)
