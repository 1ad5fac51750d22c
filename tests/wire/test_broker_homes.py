"""Homes that a broker can't have, or not in that state: what `lomi up` says, and that nothing was changed."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import (
    Agent,
    ClientEntry,
    NotReadyError,
    World,
    agent,
    opened_world,
    policy_text,
    rows_of,
    store_is_sound,
)

QA = policy_text(ClientEntry(label="qa"))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A running broker for the tests that leave it as it is."""
    with opened_world(QA) as made:
        yield made


async def make_history(world: World, count: int = 3) -> list[str]:
    """Some receipts; their operation ids."""
    async with agent(world) as qa:
        return [await named(qa, f"history {number}") for number in range(count)]


async def named(qa: Agent, name: str) -> str:
    """Create a workspace; the operation's id."""
    said = await qa.do("lomi_workspace_create", await qa.revised(name=name))
    return str(said.data["operationId"])


def content(place: Path) -> dict[str, bytes]:
    """Every file below a folder but the lock, and SQLite's index of its log, which holds no content."""
    files = [path for path in sorted(place.rglob("*")) if path.is_file()]
    return {str(path): path.read_bytes() for path in files if path.name not in ("owner.lock", "control.sqlite3-shm")}


def test_a_second_broker_is_told_who_owns_the_home(world: World) -> None:
    """The second `lomi up` on a home ends at once, names the owner, and the first one goes on."""
    second = world.launch()
    with pytest.raises(NotReadyError) as refused:
        second.wait_ready()
    owner = f"broker {world.live.instance_id} (pid {world.live.pid})"
    assert refused.value.code == 1
    assert f"this home belongs to {owner}" in refused.value.said
    assert "lomi down" in refused.value.said
    assert world.live.alive


async def test_the_first_broker_still_answers_after_a_second_was_refused(world: World) -> None:
    """A refused second broker neither took the socket nor the discovery file of the first."""
    with pytest.raises(NotReadyError):
        world.launch().wait_ready()
    async with agent(world) as qa:
        assert (await qa.ask("lomi_status")).data["instanceId"] == world.live.instance_id


def test_a_socket_path_that_is_too_long_is_said() -> None:
    """Runtime and temp folder too deep for a socket's name: one line with the reason, no traceback, nothing left."""
    with opened_world(QA, start=False) as world:
        deep = world.root / ("d" * 90)
        deep.mkdir(mode=0o700)
        places = {"XDG_RUNTIME_DIR": str(deep), "TMPDIR": str(deep)}
        with pytest.raises(NotReadyError) as refused:
            world.launch(more=places).wait_ready()
        assert refused.value.code == 1
        assert "Traceback" not in refused.value.said
        assert "107" in refused.value.said
        assert list(deep.iterdir()) == []
        world.start(more={"XDG_RUNTIME_DIR": str(deep)})
        (place,) = world.root.glob("lomi-control-*")
        assert (place / "control.sock").is_socket()


def flip(path: Path, place: int, bits: int = 0x40) -> None:
    """Change bits of one byte, keeping the file itself."""
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ bits]))


def cut(path: Path, length: int) -> None:
    """Cut a file short."""
    os.truncate(path, length)


DAMAGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "database cut to half": ("control.sqlite3", lambda path: cut(path, path.stat().st_size // 2), "damaged"),
    "database emptied": ("control.sqlite3", lambda path: cut(path, 0), "rolled_back"),
    "database header flipped": ("control.sqlite3", lambda path: flip(path, 20), "damaged"),
    "log flipped before a commit": ("control.sqlite3-wal", lambda path: flip(path, 60), "wal_damaged"),
    "log cut": ("control.sqlite3-wal", lambda path: cut(path, 32 + 24 + 4096), "rolled_back"),
    "log header flipped": ("control.sqlite3-wal", lambda path: flip(path, 9), "wal_damaged"),
    "witness gone": ("control.witness", lambda path: path.unlink(), "witness_missing"),
    "witness flipped": ("control.witness", lambda path: flip(path, 10), "witness_damaged"),
    "database open to others": ("control.sqlite3", lambda path: path.chmod(0o644), "not_private"),
}


@pytest.fixture(scope="module")
def killed() -> Iterator[World]:
    """A home with a history whose broker was killed: its log is not merged into the database."""
    with opened_world(QA) as world:
        asyncio.run(make_history(world, 12))
        world.kill()
        yield world


@pytest.fixture(scope="module")
def stopped() -> Iterator[World]:
    """A home with a history whose broker was stopped in good order: everything is in the database."""
    with opened_world(QA) as world:
        asyncio.run(make_history(world, 12))
        world.stop()
        yield world


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_storage_is_refused_and_kept(killed: World, stopped: World, damage: str) -> None:
    """`lomi up` names file and reason, exits 1, and every byte of the home is as it was."""
    name, harm, reason = DAMAGES[damage]
    home = killed if name.endswith("-wal") else stopped
    place = home.home / "agent-control"
    copy = home.root / "copy"
    shutil.copytree(place, copy)
    try:
        harm(place / name)
        before = content(place)
        with pytest.raises(NotReadyError) as refused:
            home.launch().wait_ready()
        assert refused.value.code == 1
        told = "control.sqlite3" if reason in ("rolled_back", "witness_missing") else name
        assert f"{told}: {reason}" in refused.value.said
        assert "nothing was changed" in refused.value.said.lower()
        assert "Traceback" not in refused.value.said
        assert content(place) == before
    finally:
        shutil.rmtree(place)
        shutil.move(copy, place)


def test_a_killed_history_is_whole_after_its_damage_was_undone(killed: World) -> None:
    """The same home, restored, opens with every receipt."""
    rows = rows_of(killed.home)
    killed.start()
    assert [row.operation_id for row in rows_of(killed.home)] == [row.operation_id for row in rows]
    assert store_is_sound(killed.home)
    killed.kill()


@pytest.mark.parametrize("harm", ["flipped", "cut", "emptied", "another's", "open to others"])
async def test_a_damaged_discovery_file_is_refused_by_clients_and_replaced_at_the_next_start(harm: str) -> None:
    """A client refuses the file before it connects; the next broker publishes a good one and keeps the key."""
    with opened_world(QA) as world:
        path, key = world.live.discovery_file, world.live.discovery_key
        original = path.read_bytes()
        if harm == "another's":
            told = json.loads(original)
            payload = json.loads(told["payload"]) | {"instanceId": "someone-else"}
            path.write_bytes(json.dumps(told | {"payload": json.dumps(payload)}).encode())
        elif harm == "open to others":
            path.chmod(0o644)
        else:
            {"flipped": lambda: flip(path, 40), "cut": lambda: cut(path, 30), "emptied": lambda: cut(path, 0)}[harm]()
        said = world.command("status")
        assert said.code == 1
        assert "Traceback" not in said.err
        world.kill()
        world.start()
        assert world.live.discovery_key == key
        for stale in world.runtime.iterdir():
            # Nobody can tell any more that the dead broker listened there; its own file said so.
            if not world.live_socket(stale):
                shutil.rmtree(stale)
        async with agent(world) as qa:
            assert (await qa.ask("lomi_status")).data["connection"] == "connected"


@pytest.fixture
def small_volume() -> Iterator[World]:
    """A world whose home is on a volume of 8 MiB."""
    with opened_world(QA, start=False) as world:
        world.home.mkdir(mode=0o700)
        mounted = subprocess.run(
            ["/bin/mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(world.home)],
            check=False,
            capture_output=True,
        )
        if mounted.returncode != 0:
            pytest.skip(f"a volume can't be mounted here: {mounted.stderr.decode().strip()}")
        try:
            yield world
            world.stop()
        finally:
            if world.broker is not None and world.broker.alive:
                world.broker.kill()
            subprocess.run(["/bin/umount", str(world.home)], check=True)


def fill(volume: Path) -> Path:
    """Take all room of a volume; returns the file to remove."""
    ballast = volume / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


async def test_a_full_disk_blocks_effects_and_loses_nothing(small_volume: World) -> None:
    """Full: mutations are STORAGE_UNAVAILABLE with no effect, reads work; freed: the same session goes on."""
    world = small_volume
    world.start()
    async with agent(world) as qa:
        kept = await named(qa, "before")
        ballast = fill(world.home)
        refused = 0
        for number in range(300):
            said = await qa.call("lomi_workspace_create", await qa.revised(name=f"full {number}"))
            if said.code is not None:
                assert (said.code, said.reason) == ("STORAGE_UNAVAILABLE", "disk_full"), said.raw
                refused += 1
                if refused == 3:
                    break
        assert refused == 3
        names = [row["name"] for row in (await qa.ask("lomi_workspace_list", limit=500)).data["items"]]
        settled = sum(row.state == "succeeded" for row in rows_of(world.home))
        assert names.count("before") == 1
        assert sum(name.startswith("full") for name in names) == settled - 1
        ballast.unlink()
        await named(qa, "after")
        assert (await qa.ask("lomi_operation_get", operationId=kept)).data["state"] == "succeeded"
    assert store_is_sound(world.home)


async def test_a_broker_on_a_full_disk_says_so(small_volume: World) -> None:
    """`lomi up` on a volume without room ends with one line; with room again the history is there."""
    world = small_volume
    world.start()
    (kept,) = await make_history(world, 1)
    world.kill()
    ballast = fill(world.home)
    with pytest.raises(NotReadyError) as refused:
        world.launch().wait_ready()
    assert refused.value.code == 1
    assert "Traceback" not in refused.value.said
    assert "space" in refused.value.said or "disk_full" in refused.value.said
    ballast.unlink()
    world.start()
    assert kept in [row.operation_id for row in rows_of(world.home)]
