"""`lomi ps`, `status`, `revoke` and `take` against a real broker: who holds what, and the end of it."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from cli_runs import Following, assert_revoked, lomi
from harness import Agent, ClientEntry, World, agent, opened_world, owner, policy_text, until

HOSTILE = "\x1b[2Jshell\u202e\nSESSION"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker with one phone and one client."""
    with opened_world(policy_text(ClientEntry(label="qa", devices=("phone-1",)), phones=("phone-1",))) as opened:
        yield opened


@pytest.fixture(autouse=True)
async def nobody_left(world: World) -> None:
    """Begin once the sessions of the test before have ended."""

    async def nobody() -> bool:
        return (await owner(world, "ps"))["sessions"] == []

    await until(nobody)


async def _terminal(qa: Agent, title: str = "shell") -> dict[str, Any]:
    return (await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title=title))).result


def test_ps_without_a_broker_says_so(world: World) -> None:
    """Where no broker runs, `ps` and its kin end with code 3, one line and a hint, and create nothing."""
    empty = world.root / "empty"
    for command in (("ps",), ("status",), ("down",), ("revoke", "--all"), ("take", "p1"), ("call", "lomi_status")):
        ran = lomi(world, *command, LOMI_HOME=str(empty))
        assert ran.code == 3, command
        assert ran.err == "Error: no broker runs on this home\nhint: start one with `lomi up`\n"
    assert not empty.exists()


def test_ps_of_an_idle_broker_shows_its_phone(world: World) -> None:
    """A broker that nobody uses shows its phones, held by nobody, and exits 0."""
    ran = lomi(world, "ps")
    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines() if line.startswith("phone-1")] == [
        ["phone-1", "-", "-", "not_started", "-"]
    ]


async def test_ps_shows_sessions_leases_and_terminals(world: World) -> None:
    """A session with a terminal shows as session with its grant, as lease and as holder of the terminal."""
    async with agent(world) as qa:
        terminal = await _terminal(qa)
        seen = lomi(world, "ps", "--json").json
        (session,) = seen["sessions"]
        assert (session["label"], session["pid"], session["granted_by"]) == ("qa", os.getpid(), "policy")
        (lease,) = seen["leases"]
        assert (lease["id"], lease["session"]) == (terminal["leaseId"], session["id"])
        (row,) = [row for row in seen["resources"] if row["panels"] == [terminal["panelId"]]]
        assert (row["kind"], row["holder"]) == ("terminal", session["id"])
        assert row["generation"] == lease["generation"]
        text = lomi(world, "ps").out
        for head in ("SESSION", "LEASE", "DEVICE", "TERMINAL"):
            assert head in text
        assert "\x1b" not in text, "colours where there is no terminal"


async def test_ps_keeps_a_hostile_title_on_its_line(world: World) -> None:
    """A title that would clear the screen, turn the line round or forge a line of its own is shown escaped."""
    async with agent(world) as qa:
        await _terminal(qa, HOSTILE)
        out = lomi(world, "ps").out
        assert r"\x1b[2Jshell\u202e\nSESSION" in out
        assert not {"\x1b", "\u202e"} & set(out)
        assert sum(line.startswith("SESSION") for line in out.splitlines()) == 1


async def test_ps_shows_an_operation_under_way(world: World) -> None:
    """A mutation whose receipt can't be stored yet shows as an operation with its tool and session."""
    import asyncio

    async with agent(world) as qa:
        arguments = await qa.revised(cwdRelative="", title="late")
        with world.held_commit():
            calling = asyncio.create_task(qa.call("lomi_terminal_create", {"waitMs": 15000, **arguments}))
            seen: list[dict[str, Any]] = []

            async def under_way() -> bool:
                seen[:] = (await asyncio.to_thread(lomi, world, "ps", "--json")).json["operations"]
                return bool(seen)

            await until(under_way)
        assert [row["tool"] for row in seen] == ["lomi_terminal_create"]
        assert (await calling).code is None


async def test_watch_repeats_until_ctrl_c(world: World) -> None:
    """`ps --watch` shows a session that comes while it runs, and Ctrl-C ends it quietly with code 0."""
    watching = Following(world, "ps", "--watch", "--every", "0.1", "--json")
    assert json.loads(watching.line())["sessions"] == []
    async with agent(world):
        while not json.loads(watching.line())["sessions"]:
            pass
    ended = watching.interrupt()
    assert (ended.code, ended.err) == (0, "")


async def test_revoke_ends_the_session_that_ps_named(world: World) -> None:
    """Revoking the id that `ps` shows cuts that connection; an unknown id is refused with a hint."""
    async with agent(world) as qa:
        (session,) = lomi(world, "ps", "--json").json["sessions"]
        assert lomi(world, "revoke", session["id"]).out == "revoked 1\n"
        await assert_revoked(qa)
    ran = lomi(world, "revoke", "c999")
    assert (ran.code, ran.err) == (1, "Error: no session 'c999'\nhint: `lomi ps` lists them\n")


def test_take_reaches_a_phone_that_no_panel_shows(world: World) -> None:
    """A phone is taken and given back by its name; a name that nothing has is refused with a hint."""
    for arguments, holder in (((), "a person"), (("--give-back",), "-")):
        assert lomi(world, "take", "phone-1", *arguments).code == 0
        line = next(line for line in lomi(world, "ps").out.splitlines() if line.startswith("phone-1"))
        assert line.endswith(holder)
    assert lomi(world, "take", "phone-9").err.splitlines()[-1] == "hint: `lomi ps` lists them"


async def test_take_ends_the_lease_and_give_back_lets_it_be_claimed(world: World) -> None:
    """`take` ends a lease at once and shows a person as holder; `--give-back` shows nobody."""
    async with agent(world) as qa:
        terminal = await _terminal(qa)
        panel = terminal["panelId"]
        assert lomi(world, "take", panel).out == "taken\n"
        seen = lomi(world, "ps", "--json").json
        (row,) = [row for row in seen["resources"] if row["panels"] == [panel]]
        assert (seen["leases"], row["taken"]) == ([], True)
        line = next(line for line in lomi(world, "ps").out.splitlines() if panel in line.split())
        assert line.endswith("a person")
        assert lomi(world, "take", panel, "--give-back").out == "given back\n"
        seen = lomi(world, "ps", "--json").json
        assert [row["taken"] for row in seen["resources"] if row["panels"] == [panel]] == [False]
