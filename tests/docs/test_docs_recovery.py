"""docs/recovery.md quotes what `lomi up` really says: each refusal is brought about and looked up on the page."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import ClientEntry, NotReadyError, World, agent, opened_world, policy_text
from pages import ROOT

PAGE = (ROOT / "docs" / "recovery.md").read_text(encoding="utf-8")
SHOWN_HOME = "~/.local/state/lomi"


def flip(path: Path, place: int) -> None:
    """Change one bit."""
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x40]))


def stamp(path: Path, pragma: str) -> None:
    """Write one number of a database's header, and merge the log."""
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"PRAGMA {pragma}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


HARMS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "wal_too_large": ("control.sqlite3-wal", lambda path: (path.touch(mode=0o600), os.truncate(path, 1 << 30))),
    "damaged": ("control.sqlite3", lambda path: flip(path, 20)),
    "rolled_back": ("control.sqlite3", lambda path: os.truncate(path, 0)),
    "witness_missing": ("control.witness", lambda path: path.unlink()),
    "witness_damaged": ("control.witness", lambda path: flip(path, 10)),
    "newer": ("control.sqlite3", lambda path: stamp(path, "user_version=99")),
    "foreign": ("control.sqlite3", lambda path: stamp(path, "application_id=7")),
    "not_private": ("control.sqlite3", lambda path: path.chmod(0o644)),
    "key open": ("registration-key.pk8", lambda path: path.chmod(0o644)),
    "key damaged": ("registration-key.pk8", lambda path: path.write_bytes(bytes(48))),
}


@pytest.fixture(scope="module")
def stopped() -> Iterator[World]:
    """A home with a history and no broker."""
    with opened_world(policy_text(ClientEntry(label="qa", token_sha256="0" * 64))) as world:
        world.stop()
        yield world


def said_by(world: World, **more: str) -> str:
    """What `lomi up` prints when it refuses, as the page shows it."""
    with pytest.raises(NotReadyError) as refused:
        world.launch(more=more).wait_ready()
    assert refused.value.code == 1
    return refused.value.said.replace(str(world.home), SHOWN_HOME).strip()


@pytest.mark.parametrize("harm", HARMS)
def test_a_refusal_is_on_the_page_word_for_word(stopped: World, harm: str) -> None:
    """The message, with its hint, is quoted exactly."""
    name, act = HARMS[harm]
    place, copy = stopped.home / "agent-control", stopped.root / "copy"
    shutil.copytree(place, copy)
    try:
        act(place / name)
        assert f"```text\n{said_by(stopped)}\n```" in PAGE
    finally:
        shutil.rmtree(place)
        shutil.move(copy, place)


def test_a_damaged_log_is_on_the_page_word_for_word() -> None:
    """A killed broker's log with a damaged frame before good ones."""
    with opened_world(policy_text(ClientEntry(label="qa"))) as world:

        async def act() -> None:
            async with agent(world) as qa:
                for number in range(3):
                    await qa.do("lomi_workspace_create", await qa.revised(name=f"w {number}"))

        asyncio.run(act())
        world.kill()
        log = world.home / "agent-control" / "control.sqlite3-wal"
        flip(log, 60)
        said = "\n".join(line for line in said_by(world).splitlines() if "may pair" not in line)
        assert f"```text\n{said}\n```" in PAGE
        flip(log, 60)


def test_a_home_behind_a_link_is_on_the_page(stopped: World) -> None:
    """The home's own name is a symbolic link."""
    link = stopped.root / "link"
    link.symlink_to(stopped.home)
    said = said_by(stopped, LOMI_HOME=str(link)).replace(str(link), f"{SHOWN_HOME}-link")
    assert f"```text\n{said}\n```" in PAGE


def test_the_remaining_messages_are_on_the_page(stopped: World) -> None:
    """No broker; damaged discovery; damaged preferences, with which a broker starts."""
    absent = stopped.command("status")
    assert absent.code == 3
    assert f"```text\n{absent.err.strip()}\n```" in PAGE
    preferences = stopped.home / "agent-control-preferences.json"
    preferences.touch(mode=0o600)
    preferences.write_text("{")
    broker = stopped.start()
    said = broker.stderr().replace(str(stopped.home), SHOWN_HOME).strip()
    assert f"```text\n{said}\n```" in PAGE
    preferences.unlink()
    owned = said_by(stopped).replace(broker.instance_id, "ID").replace(str(broker.pid), "PID")
    assert owned.splitlines()[0] == "Error: this home belongs to broker ID (pid PID)"
    assert owned.splitlines()[1] in PAGE
    good = broker.discovery_file.read_bytes()
    broker.discovery_file.write_bytes(b"{")
    refused = stopped.command("status")
    assert f"```text\n{refused.err.strip()}\n```" in PAGE
    broker.discovery_file.write_bytes(good)
    stopped.stop()
