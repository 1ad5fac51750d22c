"""A store whose process dies at any point, or whose home two processes want."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import store_child

from lomi.contract.codes import OperationState
from lomi.store import StoreLocked

CHILD = Path(store_child.__file__)
S = OperationState


@contextlib.asynccontextmanager
async def child(role: str, home: Path, *, keep: int | None = None, **environment: str) -> AsyncIterator[Process]:
    """A child process in a role; killed and reaped at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CHILD),
        role,
        str(home),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, **environment},
        pass_fds=() if keep is None else (keep,),
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def said(process: Process) -> list[tuple[str, str]]:
    """All that a dying child acknowledged."""
    assert process.stdout is not None
    lines = (await process.stdout.read()).decode().splitlines()
    await process.wait()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


async def check_receipts(home: Path, acknowledged: list[tuple[str, str]]) -> None:
    """Every acknowledged state is still there or truthfully settled, and nothing is there that was never asked for."""
    async with store_child.open_store(home, "after") as store:
        states = {int(row.operation_id, 16): row.state for row in await store.receipts(limit=100_000)}
        settled = {int(number) for word, number in acknowledged if word == "settled"}
        reserved = {int(number) for word, number in acknowledged if word == "reserved"}
        assert all(states[number] is S.SUCCEEDED for number in settled)
        assert all(states[number] in {S.SUCCEEDED, S.OUTCOME_UNKNOWN} for number in reserved)
        assert set(states.values()) <= {S.SUCCEEDED, S.OUTCOME_UNKNOWN}
        # At most one batch of five could be under way.
        assert len(states) - len(reserved) <= 5
        counted = max((int(number) for word, number in acknowledged if word == "counted"), default=0)
        assert await store.bump("w") > counted
        events = await store.events(session_id="s1", workspace_id="w1", after=0, limit=100_000)
        assert [event.place for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("point", ["before_commit:1", "before_commit:4", "after_commit:1", "after_commit:7"])
async def test_a_process_killed_at_a_commit_loses_nothing_acknowledged(tmp_path: Path, point: str) -> None:
    """Kill -9 right before and right after a commit, at the first and at a later one: the next opening knows all."""
    home = tmp_path
    async with child("write", home, LOMI_FAILPOINT=point) as process:
        acknowledged = await said(process)
        assert process.returncode == -signal.SIGKILL
    await check_receipts(home, acknowledged)


async def test_a_process_killed_at_random_moments_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Several lives of one home, each killed after a random number of acknowledgements."""
    chance = random.Random(20)
    home = tmp_path
    everything: list[tuple[str, str]] = []
    for life in range(4):
        async with child("write", home, FIRST=str(1 + life * 10_000)) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 60)):
                await process.stdout.readline()
            process.kill()
            everything = await said(process)
        await check_receipts_of_life(home, life, everything)


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5))
async def test_many_lives_killed_at_random_moments_lose_nothing_acknowledged(tmp_path: Path, seed: int) -> None:
    """Forty lives of one home, each killed after a random number of acknowledgements or at a random commit."""
    chance = random.Random(seed)
    for life in range(40):
        point = f"{chance.choice(['before_commit', 'after_commit'])}:{chance.randrange(1, 80)}"
        armed = {"LOMI_FAILPOINT": point} if chance.random() < 0.5 else {}
        async with child("write", tmp_path, FIRST=str(1 + life * 10_000), **armed) as process:
            assert process.stdout is not None
            if not armed:
                for _ in range(chance.randrange(1, 150)):
                    await process.stdout.readline()
                process.kill()
            acknowledged = await said(process)
        await check_receipts_of_life(tmp_path, life, acknowledged)


async def check_receipts_of_life(home: Path, life: int, acknowledged: list[tuple[str, str]]) -> None:
    async with store_child.open_store(home, f"after-{life}") as store:
        for word, rest in acknowledged:
            if word in {"reserved", "settled"}:
                row = await store.receipt(f"{int(rest):040x}")
                assert row is not None
                assert row.state is S.SUCCEEDED or (word == "reserved" and row.state is S.OUTCOME_UNKNOWN)


async def ended(pid: int, release: int) -> None:
    """Let a forked child go and return when it is gone."""
    handle = os.pidfd_open(pid)
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, gone.set)
    try:
        os.write(release, b"x")
        await gone.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


@pytest.mark.parametrize(
    ("point", "whole"),
    [("artifact_reserved:2", 1), ("artifact_staged:2", 1), ("artifact_ready:2", 2), ("artifact_final:2", 2)],
)
@pytest.mark.parametrize("role", ["image", "taken"])
async def test_a_process_killed_at_a_stage_leaves_a_whole_artifact_or_none(
    tmp_path: Path, point: str, whole: int, role: str
) -> None:
    """Kill -9 at each stage of the second picture: before its row is ready it is gone, afterwards it is whole."""
    home = tmp_path
    async with child(role, home, LOMI_FAILPOINT=point) as process:
        acknowledged = await said(process)
        assert process.returncode == -signal.SIGKILL
    assert [word for word, _ in acknowledged] == ["stored"]
    async with store_child.open_store(home, "after") as store:
        files = sorted((home / "agent-control" / "artifacts").iterdir())
        assert len(files) == whole
        assert {file.suffix for file in files} == {".png"}
        assert acknowledged[0][1] in {file.stem for file in files}
        assert store.recovered.artifacts_removed == 2 - whole
        for file in files:
            async with store.artifacts.open(store_child.call(), file.stem) as stored:
                assert (await store.artifacts.content(stored)).startswith(b"\x89PNG")


async def test_a_second_process_is_refused_and_told_who_owns_the_home(tmp_path: Path) -> None:
    """While one process owns a home another one can't open it; when the owner is killed, it can."""
    home = tmp_path
    async with child("hold", home) as owner:
        assert owner.stdout is not None
        await owner.stdout.readline()
        with pytest.raises(StoreLocked) as locked:
            async with store_child.open_store(home):
                raise AssertionError
        assert locked.value.owner is not None
        assert (locked.value.owner.pid, locked.value.owner.instance_id) == (owner.pid, "child")
    async with store_child.open_store(home):
        pass


async def test_a_child_that_inherited_the_descriptors_neither_holds_nor_drops_the_lock(tmp_path: Path) -> None:
    """A forked child of the owner changes nothing: its end leaves the lock, and its life does not prolong it."""
    home = tmp_path
    keep, release = os.pipe()
    try:
        async with child("fork", home, keep=keep, KEEP=str(keep)) as owner:
            assert owner.stdout is not None
            forked = int((await owner.stdout.readline()).split()[1])
            await owner.stdout.readline()
            locks = Path("/proc/locks").read_text(encoding="utf-8")
            assert str(forked) not in locks.split()
            owner.kill()
            await owner.wait()
            os.kill(forked, 0)
            async with store_child.open_store(home, "heir"):
                # The forked child now ends, which closes its copy of the lock's descriptor.
                await ended(forked, release)
                async with child("hold", home) as other:
                    assert await other.wait() == 1
    finally:
        os.close(keep)
        os.close(release)
