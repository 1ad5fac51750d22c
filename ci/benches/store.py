"""What a durable receipt costs: reserve + settle against bare commits on the same disk, and group commit.

    ci/bench store [--directory DIR] [--rounds N]

All figures of one line come from interleaved rounds of one run; compare only within it.
"""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

from benches.rows import Report, row
from lomi.contract.codes import EffectState, OperationState
from lomi.contract.limits import LAB
from lomi.core.failpoints import Failpoints
from lomi.store import Store
from lomi.store.connection import writing
from lomi.store.rows import NewReceipt

WRITERS = (1, 8, 64)


class SystemClock:
    """The real clock."""

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def receipt(number: int) -> NewReceipt:
    """A receipt as a tap has one."""
    return NewReceipt(
        operation_id=f"{number:040x}",
        session_id="session-1",
        client_label="bench",
        tool="lomi_android_input",
        fingerprint=number.to_bytes(32, "big"),
        state=OperationState.RUNNING,
        project_id="project-1",
        retry_epoch="e" * 40,
        request_key=f"key-{number}",
        workspace_id="w1",
        resource="phone-1",
        generation="g1",
    )


async def reserve_and_settle(store: Store, number: int) -> float:
    """Seconds for one whole durable mutation."""
    start = time.perf_counter()
    await store.reserve(receipt(number))
    await store.settle(f"{number:040x}", OperationState.SUCCEEDED, EffectState.COMPLETE, b'{"kind":"android_input"}')
    return time.perf_counter() - start


async def _measure(report: Report, directory: Path, rounds: int) -> None:
    bare = directory / "bare.sqlite3"
    async with (
        writing(bare, 1 << 20) as connection,
        Store.open(
            directory / "home", instance_id="bench", limits=LAB, clock=SystemClock(), failpoints=Failpoints({})
        ) as store,
    ):
        await connection.visit(lambda opened: opened.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)"))
        await store.put_epoch("e" * 40, "session-1", int(time.time()) + 86_400)

        def commit(opened: sqlite3.Connection) -> float:
            start = time.perf_counter()
            opened.execute("INSERT INTO rows (body) VALUES (?)", (bytes(600),))
            return time.perf_counter() - start

        commits, mutations = [], []
        for number in range(rounds):
            commits.append(1e3 * await connection.visit(commit))
            mutations.append(1e3 * await reserve_and_settle(store, number))
        report.rows.append(row("reserve + settle", mutations, ("bare WAL+FULL commit", commits)))
        number = rounds
        for writers in WRITERS:
            before, start, each = store.commits, time.perf_counter(), max(1, rounds // writers)

            async def write(first: int, count: int = each) -> None:
                for offset in range(count):
                    await reserve_and_settle(store, first + offset)

            async with asyncio.TaskGroup() as group:
                for _ in range(writers):
                    group.create_task(write(number))
                    number += each
            took, writes = time.perf_counter() - start, 2 * writers * each
            commits_made = store.commits - before
            report.rows.append(
                row(
                    f"durable writes, {writers} at once",
                    [writes / took],
                    unit="a second",
                    note=f"{commits_made} commits",
                )
            )


def run(options: argparse.Namespace) -> Report:
    """All rows."""
    report = Report("store")
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        asyncio.run(_measure(report, Path(name).resolve(), options.rounds))
    return report


def add_options(parser: argparse._ActionsContainer) -> None:
    """Where and how often."""
    parser.add_argument(
        "--directory", type=Path, help="a folder on the disk to measure; default: the system's temp folder"
    )
    parser.add_argument("--rounds", type=int, default=1000)
