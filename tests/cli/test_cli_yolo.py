"""YOLO: off by default, a person at a terminal switches it, both ways end every session, and no one else can."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cli_runs import LOMI, assert_revoked, at_terminal, lomi
from harness import ClientEntry, World, agent, opened_world, policy_text, until
from harness.site import serving

from lomi.broker.preferences import NAME
from lomi.contract.scopes import SCOPES

ON = (("Type YOLO to switch it on", "YOLO"),)


@pytest.fixture
def world() -> Iterator[World]:
    """A broker with one client of its policy."""
    with opened_world(policy_text(ClientEntry(label="qa"))) as opened:
        yield opened


def _stored(world: World) -> object:
    return json.loads((world.home / NAME).read_bytes())


async def test_yolo_lets_strangers_in_until_it_is_switched_off(world: World) -> None:
    """On: a client without a policy entry pairs with all scopes; both switches end every session at once."""
    async with agent(world, "stranger", bind=False) as stranger:
        assert (await stranger.call("lomi_workspace_list", {})).code == "PAIRING_REQUIRED"
    async with agent(world) as qa:
        ran = at_terminal(world, "yolo", "on", answers=ON)
        assert ran.code == 0
        assert "ANY process of this user" in ran.out
        assert "YOLO is on; sessions ended: 1" in ran.out
        await assert_revoked(qa)
    assert _stored(world) == {"version": 1, "yoloMode": True}
    assert (world.home / NAME).stat().st_mode & 0o777 == 0o600
    async with agent(world, "stranger") as stranger:
        status = (await stranger.ask("lomi_status")).data
        assert {row["name"] for row in status["capabilities"] if row["authorized"]} == set(SCOPES)
        (session,) = lomi(world, "ps", "--json").json["sessions"]
        assert session["granted_by"] == "yolo"
        assert "YOLO is ON" in lomi(world, "status").out
        assert at_terminal(world, "yolo", "off").code == 0
        await assert_revoked(stranger)
    async with agent(world, "stranger", bind=False) as stranger:
        assert (await stranger.call("lomi_workspace_list", {})).code == "PAIRING_REQUIRED"
    assert _stored(world) == {"version": 1, "yoloMode": False}


async def test_yolo_outlives_its_broker_and_names_itself_in_receipts(world: World) -> None:
    """Switched on without a broker it holds for the next one, and its decisions are recorded as its own."""
    world.live.stop()
    assert at_terminal(world, "yolo", "on", answers=ON).code == 0
    assert lomi(world, "yolo").out == "on\n"
    world.start()
    assert "YOLO is on" in world.live.stderr()
    other = world.root / "other"
    other.mkdir()
    async with agent(world, "stranger") as stranger:
        opened = await stranger.do("lomi_project_open", await stranger.revised(projectPath=str(other), name="other"))
        operation = opened.data["operationId"]
    rows = lomi(world, "receipts", "--json").json["receipts"]
    assert [row["decided_by"] for row in rows if row["operation_id"] == operation] == ["yolo"]


async def test_yolo_opens_pages_of_any_origin(world: World) -> None:
    """A session that paired by YOLO opens a page that no grant names; it shows in `ps` with its title."""
    assert at_terminal(world, "yolo", "on", answers=ON).code == 0
    with serving() as site:
        async with agent(world, "stranger") as stranger:
            opened = await stranger.do("lomi_browser_open", await stranger.revised(url=f"{site.origin}/"))
            assert site.count("/") == 1
            seen = lomi(world, "ps", "--json").json["resources"]
            (page,) = [row for row in seen if row["kind"] == "browser"]
            assert page["panels"] == [opened.result["panelId"]]


def test_yolo_needs_a_person_at_a_terminal(world: World) -> None:
    """Without a terminal, with another word, and in a terminal of a broker nothing is switched and nothing is saved."""
    ran = lomi(world, "yolo", "on")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: only a person at a terminal may switch YOLO")
    assert at_terminal(world, "yolo", "on", answers=((ON[0][0], "yes"),)).code == 1
    inside = at_terminal(world, "yolo", "on", LOMI_TERMINAL="1")
    assert inside.code == 1
    assert "this terminal belongs to a broker" in inside.out
    assert not (world.home / NAME).exists()
    assert lomi(world, "yolo").out == "off\n"


_ASKED = """
import asyncio, os, sys
from lomi.client.client import connect
from lomi.client.find import own_broker
async def main():
    found = own_broker(os.environ)
    async with connect(found.discovery_file, found.discovery_key, label="x", options={"role": "owner"}) as client:
        print((await client.call("owner.yolo", {"on": True})).plain()["refused"])
asyncio.run(main())
"""


def test_the_broker_itself_refuses_a_process_without_a_terminal(world: World) -> None:
    """A program that speaks the owner's command past the command line is refused by the broker."""
    ran = subprocess.run(
        [sys.executable, "-c", _ASKED],
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=40,
        start_new_session=True,
        check=False,
    )
    assert ran.stdout == "only a person at a terminal may switch it\n"
    assert not (world.home / NAME).exists()


async def test_an_agent_in_our_terminal_cannot_switch_it(world: World) -> None:
    """In a terminal of the broker the command refuses, and the broker refuses a program that goes past it."""
    async with agent(world) as qa:
        made = (await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="t"))).result
        where = {"workspaceId": qa.workspace, **{name: made[name] for name in ("panelId", "terminalSessionId")}}

        async def ready() -> bool:
            return (await qa.ask("lomi_terminal_read", **where)).data["prompt"] == "ready"

        await until(ready)
        places = " ".join(f"{n}={v}" for n, v in world.environment().items() if n in ("LOMI_HOME", "XDG_RUNTIME_DIR"))
        (world.project / "asks.py").write_text(_ASKED)
        env = f"env {places}"
        assert lomi(world, "take", "p1").code == 1, "the scratch panel has nothing to take"
        command = (
            f"{env} {LOMI} yolo on; {env} {sys.executable} asks.py > said.txt; "
            f"{env} {LOMI} take {made['panelId']} --give-back 2> given.txt; echo ended > ended.txt"
        )
        await qa.do("lomi_terminal_run", await qa.keyed(**where, leaseId=made["leaseId"], command=command))

        async def ended() -> bool:
            return (world.project / "ended.txt").exists() and bool((world.project / "ended.txt").read_text())

        await until(ended)
        assert (world.project / "said.txt").read_text() == "it was asked for from inside a terminal of this broker\n"
        assert (
            (world.project / "given.txt").read_text().startswith("Error: not given back: it was asked for from inside")
        )
        shown = (await qa.ask("lomi_terminal_read", **where)).raw.decode()
        assert "this terminal belongs to a broker" in shown
    assert not (world.home / NAME).exists()


def test_damaged_preferences_are_kept_and_block_saving(world: World) -> None:
    """A file that can't be read stays byte for byte, YOLO counts as off, and nothing is saved over it."""
    world.live.stop()
    file = world.home / NAME
    file.touch(mode=0o600)
    file.write_bytes(b'{"version": 7, "yoloMode": true}')
    assert at_terminal(world, "yolo", "on", answers=ON).code == 1
    world.start()
    assert "YOLO is off" in world.live.stderr()
    ran = at_terminal(world, "yolo", "on", answers=ON)
    assert ran.code == 1
    assert "it is kept, and nothing is saved over it" in ran.out
    assert lomi(world, "yolo").code == 1
    assert file.read_bytes() == b'{"version": 7, "yoloMode": true}'
    status = lomi(world, "status", "--json").json
    assert status["yolo"] is False
    assert NAME in status["limitations"][0]
