"""What was typed in confidence, and what must not be told: searched for in everything that a broker keeps or says."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import ALL_SCOPES, ClientEntry, World, agent, opened_world, owner, policy_text, until
from harness.site import Site, serving

TYPED = "canary-typed-9f3a"
FILLED = "canary-filled-77c1"
COMMANDED = "canary-command-51d0"
TOKEN = "canary-token-a41b"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A page with fields."""
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    """A broker whose clients must prove a token."""
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    clients = [
        ClientEntry(label=label, token_sha256=digest, scopes=ALL_SCOPES, origins=(site.origin,))
        for label in ("first-label", "second-label")
    ]
    with opened_world(policy_text(*clients), start=False) as made:
        made.start(more={"CANARY": TOKEN, "LOMI_CLIENT_TOKEN": TOKEN, "SSH_AUTH_SOCK": "/nowhere"})
        yield made


def holders(world: World, canary: str) -> list[str]:
    """Every file of the home and every output of the broker that holds a text, in UTF-8 or UTF-16."""
    places = [path for path in world.home.rglob("*") if path.is_file()]
    places += list(world.root.glob("out-*")) + list(world.root.glob("err-*"))
    marks = (canary.encode(), canary.encode("utf-16-le"), canary.encode().hex().encode())
    return [str(path) for path in places if any(mark in path.read_bytes() for mark in marks)]


async def test_typed_and_filled_secrets_are_in_no_file_event_or_error(world: World, site: Site) -> None:
    """A password typed into a terminal and into a page: not in database, log, artifacts, events, receipts, panels."""
    async with agent(world, "first-label", token=TOKEN) as qa:
        created = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="secrets"))
        place = {name: created.result[name] for name in ("panelId", "terminalSessionId", "leaseId")}
        where = {"workspaceId": qa.workspace, **place}
        command = f'echo {COMMANDED} > /dev/null; read -rs word; printf %s "$word" | sha256sum > sum.txt'
        running = await qa.call("lomi_terminal_run", {**await qa.keyed(), **where, "command": command, "waitMs": 0})

        async def reading() -> bool:
            shown = {name: where[name] for name in ("workspaceId", "panelId", "terminalSessionId")}
            return (await qa.ask("lomi_terminal_read", **shown)).data["prompt"] == "running"

        await until(reading)
        typed = {"inputSequence": "1", "input": {"type": "text", "text": TYPED + "\r"}}
        await qa.do("lomi_terminal_input", {**where, **typed})
        wait = {"operationId": running.data["operationId"], "waitMs": 15000}
        assert (await qa.call("lomi_operation_get", wait)).short == "receipt succeeded/complete"
        assert (world.project / "sum.txt").read_text().split()[0] == hashlib.sha256(TYPED.encode()).hexdigest()
        said = [await qa.call("lomi_terminal_input", {**where, **typed, "leaseId": "l999999"})]
        said.append(await qa.call("lomi_terminal_input", {**where, "inputSequence": "9", "input": typed["input"]}))

        opened = await qa.do("lomi_browser_open", await qa.revised(url=site.origin + "/"))
        page = {name: opened.result[name] for name in ("panelId", "browserGeneration", "leaseId")}
        page = {"workspaceId": qa.workspace, **page}
        seen = {name: value for name, value in page.items() if name != "leaseId"}
        snapshot = (await qa.ask("lomi_browser_snapshot", **seen)).data
        field = next(row for row in snapshot["elements"] if row["name"] == "Secret")
        fill = {
            **page,
            "navigationId": snapshot["navigationId"],
            "snapshotId": snapshot["snapshotId"],
            "elementRef": field["elementRef"],
            "text": FILLED,
        }
        done = await qa.do("lomi_browser_fill", {**await qa.keyed(), **fill})
        said.append(done)
        said.append(await qa.call("lomi_browser_fill", {**await qa.keyed(), **fill, "snapshotId": "nothing"}))
        said.append(await qa.ask("lomi_browser_snapshot", **seen))
        said.append(await qa.ask("lomi_events_read", workspaceId=qa.workspace, limit=500))
        said.append(await qa.ask("lomi_panel_list", workspaceId=qa.workspace))
        said.append(await qa.call("lomi_operation_get", {"operationId": done.data["operationId"]}))
        told = b"".join(answer.raw for answer in said) + str(await owner(world, "status")).encode()
        for canary in (TYPED, FILLED, COMMANDED):
            assert canary.encode() not in told, canary
    for canary in (TYPED, FILLED, COMMANDED, TOKEN):
        assert holders(world, canary) == [], canary


async def test_a_killed_broker_has_not_kept_them_either(world: World) -> None:
    """After kill -9 and the next start, the home still holds none of them."""
    await asyncio.to_thread(world.live.kill)
    for canary in (TYPED, FILLED, COMMANDED, TOKEN):
        assert holders(world, canary) == [], canary
    await asyncio.to_thread(world.restart)
    for canary in (TYPED, FILLED, COMMANDED, TOKEN):
        assert holders(world, canary) == [], canary


async def test_terminals_inherit_no_secret_of_the_broker(world: World) -> None:
    """The environment of a shell holds no token, LOMI_HOME, agent socket or unlisted name of the broker's own."""
    async with agent(world, "first-label", token=TOKEN) as qa:
        created = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="environment"))
        place = {name: created.result[name] for name in ("panelId", "terminalSessionId", "leaseId")}
        where = {"workspaceId": qa.workspace, **place}
        await qa.do("lomi_terminal_run", {**await qa.keyed(), **where, "command": "env -0 > environment"})
    entries = (world.project / "environment").read_bytes().split(b"\0")
    found = {entry.partition(b"=")[0].decode() for entry in entries if entry}
    secret = {"LOMI_HOME", "LOMI_CLIENT_TOKEN", "LOMI_CLIENT_LABEL", "LOMI_FAILPOINT", "CANARY", "SSH_AUTH_SOCK"}
    assert not found & secret
    assert "LOMI_TERMINAL" in found
    assert TOKEN.encode() not in b"".join(entries)
    assert b"LOMI_HOME" not in b"".join(entries)


async def test_errors_tell_no_path_and_no_other_label(world: World) -> None:
    """Refusals of every kind in sight of another session: no path of the home, no label, no session of the other."""
    async with (
        agent(world, "first-label", token=TOKEN) as one,
        agent(world, "second-label", token=TOKEN) as two,
    ):
        created = await one.do("lomi_terminal_create", await one.revised(cwdRelative="", title="mine"))
        place = {name: created.result[name] for name in ("panelId", "terminalSessionId", "leaseId")}
        probes = [
            ("lomi_terminal_run", {**await two.keyed(), **place, "command": "true"}),
            ("lomi_terminal_create", {**await two.revised(cwdRelative="../..", title="x"), "waitMs": 15000}),
            ("lomi_terminal_create", {**await two.revised(cwdRelative="missing", title="x"), "waitMs": 15000}),
            ("lomi_panel_close", {**await two.revised(panelId=place["panelId"]), "waitMs": 15000}),
            ("lomi_project_open", {**await two.revised(projectPath=str(world.home), name="x"), "waitMs": 15000}),
            ("lomi_operation_get", {"operationId": created.data["operationId"]}),
            ("lomi_artifact_read", {"workspaceId": two.workspace, "artifactId": "0" * 32}),
        ]
        for tool, arguments in probes:
            said = await two.call(tool, arguments)
            assert said.code is not None or said.data["state"] in ("failed", "cancelled"), (tool, said.raw)
            text = said.raw.decode()
            assert "first-label" not in text
            assert str(world.root) not in text
            assert str(Path.home()) not in text
