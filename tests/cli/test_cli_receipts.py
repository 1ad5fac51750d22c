"""`lomi receipts` with a broker, after kill -9, and over a damaged store."""

from collections.abc import Iterator

import pytest
from cli_runs import lomi
from harness import Agent, ClientEntry, World, agent, opened_world, policy_text, rows_of

from lomi.client.errors import ConnectionLostError


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker and one client."""
    with opened_world(policy_text(ClientEntry(label="qa"))) as opened:
        yield opened


async def _rename(qa: Agent, name: str) -> str:
    done = await qa.do("lomi_workspace_update", await qa.revised(name=name))
    return str(done.data["operationId"])


async def test_receipts_show_what_the_store_holds(world: World) -> None:
    """Every stored receipt is shown, newest first, with its outcome; filters, limit and JSON agree with the store."""
    async with agent(world) as qa:
        made = [await _rename(qa, f"name {number}") for number in range(3)]
        refused = await qa.call("lomi_workspace_update", await qa.keyed(expectedRevision="1", name="late"))
        (session,) = lomi(world, "ps", "--json").json["sessions"]
    stored = [row.operation_id for row in rows_of(world.home)][::-1]
    listed = lomi(world, "receipts", "--json").json
    assert [row["operation_id"] for row in listed["receipts"]] == stored
    assert listed["more"] is False
    newest = listed["receipts"][0]
    assert newest["operation_id"] == refused.data["operationId"]
    assert (newest["state"], newest["code"], newest["reason"]) == ("failed", "REVISION_CONFLICT", "revision_stale")
    text = lomi(world, "receipts").out
    assert "failed/none REVISION_CONFLICT (revision_stale)" in text
    mine = lomi(world, "receipts", "--session", session["id"], "--json").json["receipts"]
    assert [row["operation_id"] for row in mine] == [refused.data["operationId"], *made[::-1]]
    assert lomi(world, "receipts", "--session", "c999").out == "no receipts\n"
    assert lomi(world, "receipts", "--since", "2199-01-01").out == "no receipts\n"
    assert lomi(world, "receipts", "--since", "1h", "--limit", "1", "--json").json["more"] is True
    assert "there are older ones" in lomi(world, "receipts", "--limit", "1").out


async def test_receipts_survive_the_death_of_the_broker(world: World) -> None:
    """After kill -9 in mid-effect the same receipts are read from the store; the outcome of what ran is unknown."""
    async with agent(world) as qa:
        done = await _rename(qa, "before the end")
        world.arm("effect_begun:1:kill")
        with pytest.raises(ConnectionLostError):
            await qa.call("lomi_workspace_update", await qa.revised(name="at the end"))
    world.live.wait()
    rows = lomi(world, "receipts", "--json").json["receipts"]
    assert (rows[0]["state"], rows[0]["effect"]) == ("outcome_unknown", "unknown")
    assert (rows[1]["operation_id"], rows[1]["state"]) == (done, "succeeded")
    world.restart()
    assert lomi(world, "receipts", "--json").json["receipts"] == rows


def test_receipts_of_a_damaged_store_are_refused(world: World) -> None:
    """A store that would not be opened is refused with its reason in one line and a hint, and is left as it was."""
    home = world.root / "damaged"
    (home / "agent-control").mkdir(parents=True, mode=0o700)
    database = home / "agent-control" / "control.sqlite3"
    database.touch(mode=0o600)
    database.write_bytes(b"not a database" * 1000)
    ran = lomi(world, "receipts", LOMI_HOME=str(home))
    assert ran.code == 1
    assert "witness_missing" in ran.err
    assert ran.err.splitlines()[-1].startswith("hint: ")
    assert len(ran.err.splitlines()) == 2
    assert database.read_bytes() == b"not a database" * 1000


def test_a_moment_that_is_none_is_a_usage_error(world: World) -> None:
    """`--since` takes spans and ISO dates; anything else ends with code 2."""
    ran = lomi(world, "receipts", "--since", "yesterday")
    assert ran.code == 2
    assert "neither a span such as 15m" in ran.err
