"""Bad days of a real broker, over the real socket: floods, deaths, restarts, foreign eyes, revocation."""

import asyncio
import signal
from collections.abc import Iterator

import msgspec
import pytest
from harness import (
    Agent,
    ClientEntry,
    StoredRow,
    World,
    agent,
    mcp_agent,
    opened_world,
    owner,
    policy_text,
    rows_of,
    store_is_sound,
    until,
)
from harness.process import processes_that_name
from harness.stored import counters_of, layout_revision, layout_text
from mcp_world import call, data_of, message, raw_helper

from lomi.client.errors import ConnectionLostError

POLICY = policy_text(ClientEntry(label="qa", decide=()), ClientEntry(label="narrow", workspaces=("w1",)))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker that the tests of this module share."""
    with opened_world(POLICY) as made:
        yield made


@pytest.fixture
def own_world() -> Iterator[World]:
    """A broker of one test's own."""
    with opened_world(POLICY) as made:
        yield made


async def terminal(qa: Agent) -> dict[str, str]:
    """A new terminal at its prompt, leased."""
    created = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="test"))
    names = ("panelId", "terminalSessionId", "leaseId")
    return {"workspaceId": qa.workspace, **{name: created.result[name] for name in names}}


async def test_a_thousand_identical_requests_have_one_effect(world: World) -> None:
    """1,000 equal runs at once on one connection: the shell ran once, there is one receipt, everyone has it."""
    async with agent(world) as qa:
        run = {**await qa.keyed(), **await terminal(qa), "command": "echo once >> thousand.txt", "waitMs": 15000}
        said = await asyncio.gather(*(qa.call("lomi_terminal_run", run) for _ in range(1000)))
        assert {answer.short for answer in said} == {"receipt succeeded/complete"}
        assert len({answer.data["operationId"] for answer in said}) == 1
        assert (world.project / "thousand.txt").read_text() == "once\n"
        ran = [row for row in rows_of(world.home) if row.generation == run["terminalSessionId"]]
        assert [row.tool for row in ran] == ["lomi_terminal_run"]


async def test_equal_requests_beside_different_ones_are_told_apart(world: World) -> None:
    """Hundreds of requests under ten keys at once: ten effects."""
    async with agent(world) as qa:
        base = await qa.keyed()
        revision = await qa.revision()
        calls = [
            {**base, "requestKey": f"ten-{number % 10}", "expectedRevision": revision, "title": f"ten {number % 10}"}
            for number in range(300)
        ]
        said = await asyncio.gather(
            *(qa.call("lomi_terminal_create", {**arguments, "cwdRelative": "", "waitMs": 15000}) for arguments in calls)
        )
        made = {answer.data["operationId"]: answer.short for answer in said}
        assert len(made) == 10
        panels = (await qa.ask("lomi_panel_list", workspaceId=qa.workspace, limit=500)).data["items"]
        titles = [row["title"] for row in panels if row["title"].startswith("ten ")]
        assert len(titles) == sum(short == "receipt succeeded/complete" for short in made.values())
        assert len(set(titles)) == len(titles)


async def test_seventeen_calls_keep_their_order(world: World) -> None:
    """With the storage held, sixteen mutations work and the rest queue; freed, all settle in the order they came."""
    async with agent(world) as qa:
        calls = [await qa.revised(name=f"queue {number}") for number in range(20)]
        with world.held_commit():
            tasks = [asyncio.ensure_future(qa.call("lomi_workspace_update", arguments)) for arguments in calls]
            status = await qa.ask("lomi_status")
            assert status.data["connection"] == "connected"
            assert not any(task.done() for task in tasks)
        said = await asyncio.gather(*tasks)
        assert [answer.code for answer in said] == [None] * 20
        keys = [row.request_key for row in rows_of(world.home) if row.request_key in {c["requestKey"] for c in calls}]
        order = {arguments["requestKey"]: number for number, arguments in enumerate(calls)}
        mine = [order[key] for key in keys if key in order][-20:]
        assert mine == sorted(mine)


async def test_a_call_that_waits_holds_no_slot(world: World) -> None:
    """Twenty long waits and a dead-slow run leave the connection free for other work."""
    async with agent(world) as qa:
        place = await terminal(qa)
        run = {**await qa.keyed(), **place, "command": "sleep 30", "waitMs": 0}
        running = (await qa.call("lomi_terminal_run", run)).data["operationId"]
        waits = [
            asyncio.ensure_future(qa.call("lomi_operation_get", {"operationId": running, "waitMs": 50000}))
            for _ in range(20)
        ]
        await qa.do("lomi_workspace_update", await qa.revised(name="main"))
        assert not any(wait.done() for wait in waits)
        cancelled = await qa.call("lomi_operation_cancel", {"operationId": running, "waitMs": 15000})
        assert cancelled.short == "receipt cancelled/partial"
        assert {answer.short for answer in await asyncio.gather(*waits)} == {"receipt cancelled/partial"}


async def test_a_helper_killed_in_a_call_leaves_a_truthful_receipt(world: World) -> None:
    """Kill -9 the MCP helper while its command runs: the command goes on, its receipt settles, its lease is gone."""
    gate = world.project / "gate"
    async with agent(world) as qa:
        revision = await qa.revision()
        helper_arguments = [
            "--discovery-file",
            str(world.live.discovery_file),
            "--discovery-key",
            world.live.discovery_key,
        ]
        environment = world.environment(LOMI_CLIENT_LABEL="qa")
        async with raw_helper(helper_arguments, **environment) as helper:
            bound = await helper.ask(call("lomi_connect", {"workspaceId": qa.workspace}, 1))
            epoch = bound["result"]["structuredContent"]["data"]["retryEpoch"]
            revision = await qa.revision()
            keyed = {"workspaceId": qa.workspace, "retryEpoch": epoch, "waitMs": 15000}
            create = {**keyed, "requestKey": "t", "expectedRevision": revision, "cwdRelative": "", "title": "killed"}
            made = await helper.ask(call("lomi_terminal_create", create, 2))
            result = made["result"]["structuredContent"]["data"]["result"]
            place = {name: result[name] for name in ("panelId", "terminalSessionId", "leaseId")}
            command = "echo begun > begun.txt; until [ -e gate ]; do sleep 0.05; done; echo over > over.txt"
            run = {**keyed, "requestKey": "r", **place, "command": command, "waitMs": 15000}
            await helper.send(call("lomi_terminal_run", run, 3))
            await until((world.project / "begun.txt").exists)
            helper.process.kill()
            await helper.process.wait()

        async def lease_is_gone() -> bool:
            sessions = (await owner(world, "status"))["sessions"]
            return not any(place["leaseId"] in held for row in sessions for held in row["leases"])

        def row() -> StoredRow:
            return next(row for row in rows_of(world.home) if row.generation == place["terminalSessionId"])

        await until(lease_is_gone)
        assert row().state == "running"
        gate.touch()
        await until(lambda: row().state != "running")
        assert row().short == "receipt succeeded/complete"
        assert (world.project / "over.txt").read_text() == "over\n"


async def test_two_clients_with_one_label_never_see_each_other(world: World) -> None:
    """Same label, same entry of the policy: separate sessions, epochs, receipts, artifacts, terminals, events."""
    async with agent(world) as one, agent(world) as two:
        assert one.epoch != two.epoch
        place = await terminal(one)
        content = b"mine"
        (world.project / "mine.txt").write_bytes(content)
        import hashlib

        imported = await one.do(
            "lomi_artifact_import",
            await one.revised(
                relativePath="mine.txt",
                kind="file",
                expectedByteLength=4,
                expectedSha256=hashlib.sha256(content).hexdigest(),
            ),
        )
        reads = {name: place[name] for name in ("workspaceId", "panelId", "terminalSessionId")}
        foreign = [
            ("lomi_operation_get", {"operationId": imported.data["operationId"]}, {"operationId": "0" * 40}),
            ("lomi_operation_cancel", {"operationId": imported.data["operationId"]}, {"operationId": "0" * 40}),
            (
                "lomi_artifact_read",
                {"workspaceId": "w1", "artifactId": imported.result["artifactId"]},
                {"artifactId": "0" * 32},
            ),
            ("lomi_terminal_read", reads, {"panelId": "p999999"}),
            (
                "lomi_terminal_run",
                {**await two.keyed(), **place, "command": "touch stolen"},
                {"panelId": "p999999", "requestKey": "other"},
            ),
        ]
        for tool, arguments, unknown in foreign:
            hers = await two.call(tool, arguments)
            nobodys = await two.call(tool, {**arguments, **unknown})
            assert hers.code == "TARGET_NOT_FOUND", (tool, hers.raw)
            assert hers.raw == nobodys.raw
        used = await two.call("lomi_workspace_update", {**await two.revised(name="x"), "retryEpoch": one.epoch})
        assert (used.code, used.reason) == ("RETRY_WINDOW_EXPIRED", "epoch_unknown")
        by_key = {"retryEpoch": one.epoch, "requestKey": "key-1", "tool": "lomi_terminal_create"}
        assert (await two.call("lomi_operation_get", by_key)).code == "TARGET_NOT_FOUND"
        events = (await two.ask("lomi_events_read", workspaceId=two.workspace, limit=500)).data["items"]
        assert events == []
        (seen,) = [
            row
            for row in (await two.ask("lomi_panel_list", workspaceId=two.workspace, limit=500)).data["items"]
            if row["id"] == place["panelId"]
        ]
        assert seen["ownership"] == "another_session"
        assert seen["terminalSessionId"] is None
        assert not (world.project / "stolen").exists()


async def test_revoking_while_a_commit_is_under_way_ends_authority_at_once(own_world: World) -> None:
    """While the storage takes no commit, revoke answers, cuts the client and stops its work all the same."""
    world = own_world
    async with agent(world) as qa:
        run = {**await qa.keyed(), **await terminal(qa), "command": "touch late"}
        with world.held_commit():
            task = asyncio.ensure_future(qa.call("lomi_terminal_run", run))
            await qa.ask("lomi_status")
            await owner(world, "revoke_all")
            with pytest.raises(ConnectionLostError):
                await task
        with pytest.raises(ConnectionLostError):
            await qa.call("lomi_status", {})
    async with agent(world) as again:
        run_row = await until(lambda: settled(world, run["requestKey"]))
        assert run_row.effect == "none"
        assert not (world.project / "late").exists()
        assert (await again.ask("lomi_status")).data["connection"] == "connected"


def settled(world: World, key: str) -> StoredRow | None:
    """The newest receipt of a key that will not change any more."""
    rows = [row for row in rows_of(world.home) if row.request_key == key and row.tool == "lomi_terminal_run"]
    return rows[-1] if rows and rows[-1].state in ("failed", "cancelled", "succeeded") else None


@pytest.mark.parametrize("end", ["killed", "stopped"])
async def test_a_restart_keeps_history_and_replays_nothing(own_world: World, end: str) -> None:
    """New instance, epoch and terminals; old receipts stay as history, old ids and epochs are worth nothing."""
    world = own_world
    async with agent(world) as qa:
        place = await terminal(qa)
        run = {**await qa.keyed(), **place, "command": "echo ran >> history.txt", "waitMs": 15000}
        done = (await qa.call("lomi_terminal_run", run)).data["operationId"]
        lasting = {**await qa.keyed(), **place, "command": "echo begun >> history.txt; sleep 300", "waitMs": 0}
        open_run = (await qa.call("lomi_terminal_run", lasting)).data["operationId"]
        await until(lambda: (world.project / "history.txt").read_text() == "ran\nbegun\n")
        old_epoch, old_instance = qa.epoch, world.live.instance_id
        counters, revision = counters_of(world.home), layout_revision(world.home)
        if end == "killed":
            world.kill()
    if end == "stopped":
        assert await asyncio.to_thread(world.live.stop) == 0
    await asyncio.to_thread(world.restart)
    assert world.live.instance_id != old_instance
    rows = {row.operation_id: row for row in rows_of(world.home)}
    assert rows[done].short == "receipt succeeded/complete"
    assert rows[open_run].state == "outcome_unknown"
    assert store_is_sound(world.home)
    if end == "killed":
        # In good order a broker gives back the numbers of its blocks that it did not use.
        assert all(counters_of(world.home)[name] >= value for name, value in counters.items())
    assert layout_revision(world.home) >= revision
    async with agent(world) as qa:
        assert qa.epoch != old_epoch
        late = await qa.call("lomi_terminal_run", {**run, "retryEpoch": qa.epoch})
        assert late.code == "TARGET_NOT_FOUND"
        late = await qa.call("lomi_workspace_update", {**await qa.revised(name="late"), "retryEpoch": old_epoch})
        assert (late.code, late.reason) == ("RETRY_WINDOW_EXPIRED", "epoch_unknown")
        assert (await qa.call("lomi_operation_get", {"operationId": done})).code == "TARGET_NOT_FOUND"
        fresh = await terminal(qa)
        assert int(fresh["terminalSessionId"][1:]) > int(place["terminalSessionId"][1:])
        assert (world.project / "history.txt").read_text() == "ran\nbegun\n"


async def test_a_stopped_broker_ends_its_terminals_and_says_so(own_world: World) -> None:
    """SIGTERM with a shell running: exit 0 in bounded time, the shell and its children are gone."""
    world = own_world
    async with agent(world) as qa:
        run = {**await qa.keyed(), **await terminal(qa), "command": "sleep 1234", "waitMs": 0}
        await qa.call("lomi_terminal_run", run)
        await until(lambda: any("sleep 1234" in command for _, command in processes_that_name(world.root)))
        world.live.signal(signal.SIGTERM)
    assert await asyncio.to_thread(world.live.wait) == 0
    assert world.left_processes() == []


async def test_closing_is_told(own_world: World) -> None:
    """Once `lomi down` was asked, a new mutation is refused or loses its connection; none is lost in silence."""
    world = own_world
    async with agent(world) as qa:
        create = await qa.revised(name="late")
        await owner(world, "down")
        try:
            outcome = (await qa.call("lomi_workspace_create", create)).code
        except ConnectionLostError as lost:
            outcome = lost.code
    assert outcome in ("APP_CLOSING", "CONTROL_REVOKED")
    assert await asyncio.to_thread(world.live.wait) == 0
    assert "late" not in layout_text(world.home)


async def test_an_mcp_client_and_a_python_client_get_the_same_envelopes(world: World) -> None:
    """Answers, envelope errors and failed receipts: the same structured content over both faces."""
    async with agent(world) as qa, mcp_agent(world) as client:
        bound = await client.call_tool("lomi_connect", {"workspaceId": qa.workspace})
        assert bound.structured_content["data"]["workspaceId"] == qa.workspace
        assert bound.structured_content["data"]["retryEpoch"] != qa.epoch
        calls: list[tuple[str, dict[str, object]]] = [
            ("lomi_workspace_list", {}),
            ("lomi_panel_list", {"workspaceId": qa.workspace}),
            ("lomi_connect", {"workspaceId": "w999999"}),
            ("lomi_operation_get", {"operationId": "0" * 40}),
            ("lomi_panel_list", {"workspaceId": qa.workspace, "limit": 501}),
            ("lomi_workspace_create", {**await qa.revised(name="x"), "retryEpoch": "0" * 40}),
        ]
        for tool, arguments in calls:
            theirs = await client.call_tool(tool, arguments)
            ours = await qa.call(tool, arguments)
            assert theirs.structured_content == msgspec.json.decode(ours.raw), tool
            assert theirs.is_error == (ours.code is not None)
        epoch = bound.structured_content["data"]["retryEpoch"]
        stale = {"workspaceId": qa.workspace, "retryEpoch": epoch, "requestKey": "stale", "expectedRevision": "1"}
        failed = await client.call_tool("lomi_workspace_create", {**stale, "name": "x", "waitMs": 15000})
        assert failed.is_error is False
        assert failed.structured_content["data"]["result"]["code"] == "REVISION_CONFLICT"


async def test_cancelling_an_mcp_request_cancels_its_operation(world: World) -> None:
    """`notifications/cancelled` for a running command: Ctrl+C reaches it, the receipt is cancelled/partial."""
    arguments = ["--discovery-file", str(world.live.discovery_file), "--discovery-key", world.live.discovery_key]
    async with raw_helper(arguments, **world.environment(LOMI_CLIENT_LABEL="qa")) as helper:
        bound = data_of(await helper.ask(call("lomi_connect", {"workspaceId": "w1"}, 1)))
        listed = data_of(await helper.ask(call("lomi_workspace_list", {}, 2)))
        keyed = {"workspaceId": "w1", "retryEpoch": bound["retryEpoch"], "waitMs": 15000}
        create = {**keyed, "requestKey": "t", "expectedRevision": listed["domainRevision"], "cwdRelative": ""}
        made = data_of(await helper.ask(call("lomi_terminal_create", {**create, "title": "cancelled"}, 3)))["result"]
        place = {name: made[name] for name in ("panelId", "terminalSessionId", "leaseId")}
        run = {**keyed, "requestKey": "r", **place, "command": "touch begun-mcp; sleep 300; touch over-mcp"}
        await helper.send(call("lomi_terminal_run", run, 4))
        await until((world.project / "begun-mcp").exists)
        await helper.send(message("notifications/cancelled", {"requestId": 4, "reason": "enough"}))

        def ended() -> StoredRow | None:
            rows = [row for row in rows_of(world.home) if row.generation == place["terminalSessionId"]]
            return rows[-1] if rows and rows[-1].state not in ("running", "cancelling") else None

        row = await until(ended)
        assert row is not None
        assert row.short == "receipt cancelled/partial"
        assert not (world.project / "over-mcp").exists()
        assert await helper.end() == 0
