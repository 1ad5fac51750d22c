"""What a terminal's programs hear, however the broker was started."""

import asyncio
import os
import signal
import sys
from typing import Any

import pytest
from harness import Agent, ClientEntry, agent, opened_world, policy_text, until
from harness.process import process_state

POLICY = policy_text(ClientEntry(label="qa", decide=()))
IGNORED = (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1)

HEARING = "sh -c 'echo > begun; exec sleep 1000'"
"""A program that hears signals once it says so: bash itself may lose one between a fork and the program."""

HOPPING = """
import os, signal, time
signal.signal(signal.SIGHUP, lambda *_: None)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    open("hopped", "w").write(str(os.getpid()))
    time.sleep(0.01)
"""
"""A program that is another process before anybody has met it by its pid."""


async def terminal(qa: Agent) -> dict[str, Any]:
    """A new terminal at its prompt, leased."""
    created = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="signals"))
    names = ("panelId", "terminalSessionId", "leaseId")
    return {"workspaceId": qa.workspace, **{name: created.result[name] for name in names}}


async def test_a_program_finds_no_signal_ignored() -> None:
    """The end of a pipe ends its writer with SIGPIPE, as at any terminal: Python's own habits don't reach the shell."""
    with opened_world(POLICY) as world:
        async with agent(world) as qa:
            place = await terminal(qa)
            piped = "yes | head -n 1; echo ${PIPESTATUS[0]} > piped"
            for command in (piped, "grep SigIgn /proc/self/status > ignored"):
                await qa.do("lomi_terminal_run", {**await qa.keyed(), **place, "command": command})
            assert (world.project / "piped").read_text() == f"{128 + signal.SIGPIPE}\n"
            assert (world.project / "ignored").read_text().split()[1].strip("0") == ""


async def test_a_broker_that_ignores_signals_has_terminals_that_hear_them() -> None:
    """Started in the background of a script, with nohup: Ctrl-C ends a command, a closed terminal leaves no job."""
    with opened_world(POLICY, start=False) as world:
        world.start(ignored=IGNORED)
        async with agent(world) as qa:
            place = await terminal(qa)
            run = {**await qa.keyed(), **place, "command": HEARING, "waitMs": 0}
            running = (await qa.call("lomi_terminal_run", run)).data["operationId"]
            await until((world.project / "begun").exists)
            interrupt = {**await qa.keyed(), **place, "operationId": running}
            await qa.do("lomi_terminal_interrupt", interrupt)
            ended = await qa.call("lomi_operation_get", {"operationId": running, "waitMs": 15000})
            assert ended.result["observation"]["exitCode"] == 128 + signal.SIGINT
            background = {**await qa.keyed(), **place, "command": "sleep 1000 & echo $! > job"}
            await qa.do("lomi_terminal_run", background)
            panel = {name: place[name] for name in ("panelId", "terminalSessionId")}
            await qa.do("lomi_panel_close", {**await qa.revised(), **panel})


@pytest.mark.parametrize("left", ["", "exit", "kill -9 $$"])
async def test_a_closed_terminal_leaves_only_what_ignores_the_hang_up(left: str) -> None:
    """Jobs that were disowned, or go on after a hang-up, are gone with the panel, however their shell ended."""
    with opened_world(POLICY) as world:
        async with agent(world) as qa:
            place = await terminal(qa)
            (world.project / "hopping.py").write_text(HOPPING)
            trapping = "bash -c 'trap : HUP; echo > trapped; while :; do sleep 0.1; done' & echo $! > catching"
            each = "echo $RANDOM > spawned; (trap : HUP; sleep 9; sleep 9) & sleep 0.05"
            spawning = f"bash -c 'trap : HUP; while :; do {each}; done' & disown"
            for command in (
                "sleep 1000 & echo $! > disowned; disown",
                trapping,
                spawning,
                f"{sys.executable} hopping.py & disown",
                "(trap '' HUP; echo > ignored; exec sleep 1000) & echo $! > ignoring",
                "cp $(type -P sleep) './SigIgn: ) S 1'; './SigIgn: ) S 1' 1000 & echo $! > misnamed; disown",
            ):
                await qa.do("lomi_terminal_run", {**await qa.keyed(), **place, "command": command})
            for told in ("trapped", "ignored", "spawned", "hopped"):
                await until((world.project / told).exists)
            if left:
                run = {**await qa.keyed(), **place, "command": left, "waitMs": 15000}
                assert (await qa.call("lomi_terminal_run", run)).data["state"] == "outcome_unknown"
            panel = {name: place[name] for name in ("panelId", "terminalSessionId")}
            await qa.do("lomi_panel_close", {**await qa.revised(), **panel})
            marks = [world.project / name for name in ("spawned", "hopped")]
            before = [mark.stat().st_mtime_ns for mark in marks]
            pids = {
                name: int((world.project / name).read_text())
                for name in ("disowned", "catching", "ignoring", "misnamed")
            }
            alive = {name for name, pid in pids.items() if process_state(pid) not in ("Z", "")}
            os.kill(pids["ignoring"], signal.SIGKILL)
            assert alive == {"ignoring"}
            await asyncio.sleep(0.5)
            assert [mark.stat().st_mtime_ns for mark in marks] == before, "a program that forks goes on"


async def test_the_next_broker_ends_the_jobs_of_a_killed_one() -> None:
    """A disowned job, which its shell does not tell of the hang-up, included."""
    with opened_world(POLICY) as world:
        async with agent(world) as qa:
            place = await terminal(qa)
            command = "sleep 1000 & echo $! > disowned; disown"
            await qa.do("lomi_terminal_run", {**await qa.keyed(), **place, "command": command})
            world.kill()
        job = int((world.project / "disowned").read_text())
        world.restart()
        assert process_state(job) in ("Z", "")
