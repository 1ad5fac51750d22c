"""Terminals whose beginning or end does not go well: nothing of them is left."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from broker_room import open_room
from harness.waiting import until

from lomi.contract.codes import ErrorCode
from lomi.core.ids import GenerationId
from lomi.core.port import ResourceKey
from lomi.core.refusal import EffectFailed, Refusal
from lomi.terminals.process import PtyProcess
from lomi.terminals.rooms import open_terminals

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


async def test_a_write_that_waits_ends_with_its_terminal(tmp_path: Path) -> None:
    """Nobody reads what is typed: when the PTY is closed the write fails at once and leaves no watcher in the loop.

    A line without end never fills a PTY that waits for its end: only one that takes each byte makes a write wait.
    """
    process = await PtyProcess.start(
        ("sh", "-c", "stty raw; : >raw; exec sleep 60"),
        directory=tmp_path,
        environment=ENVIRONMENT,
        columns=80,
        rows=24,
    )
    await until((tmp_path / "raw").exists)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(_failure(process, b"x" * (1 << 20)))
        done, _ = await asyncio.wait((writing,), timeout=0.5)
        assert not done
        await process.end()
        process.close()
        async with asyncio.timeout(5):
            assert isinstance(await writing, OSError)


async def test_a_program_finds_no_signal_blocked(tmp_path: Path) -> None:
    """What whoever started the broker had blocked reaches the programs all the same."""
    said: list[bytes] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE))
    try:
        command = ("grep", "SigBlk", "/proc/self/status")
        process = await PtyProcess.start(command, directory=tmp_path, environment=ENVIRONMENT, columns=80, rows=24)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert await process.watch(said.append) == 0
    process.close()
    assert b"".join(said).split() == [b"SigBlk:", b"0" * 16]


async def _failure(process: PtyProcess, content: bytes) -> OSError | None:
    try:
        await process.write(content)
    except OSError as failed:
        return failed
    return None


async def test_a_shell_that_can_not_be_remembered_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identity from birth: without it in the ledger the shell, its generation and its start-up file go again."""
    resource, begun = ResourceKey("terminal", "p900"), []
    async with open_room(tmp_path / "h") as room:
        ledger = room.broker.ledger

        async def full(generation: GenerationId, identity: bytes) -> None:
            begun.append(generation)
            raise Refusal(ErrorCode.STORAGE_UNAVAILABLE, "disk_full")

        monkeypatch.setattr(ledger, "remember", full)
        async with open_terminals(tmp_path / "t", ledger, ENVIRONMENT) as terminals:
            with pytest.raises(EffectFailed) as said:
                await terminals.start(resource, tmp_path)
            assert said.value.partial
            assert terminals.get(begun[0]) is None
        assert ledger.current(resource) is None
        assert list((tmp_path / "t").iterdir()) == []
