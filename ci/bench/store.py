"""What a durable receipt costs: reserve + settle against bare commits on the same disk, and group commit.

    python ci/bench/store.py [--directory DIR] [--rounds N]

All figures of one line come from interleaved rounds of one run; compare only within it.
"""

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

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


async def run(directory: Path, rounds: int) -> None:
    """Measure and print."""
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
            commits.append(await connection.visit(commit))
            mutations.append(await reserve_and_settle(store, number))
        show("bare commit", commits)
        show("reserve + settle", mutations)
        print(f"ratio of medians: {statistics.median(mutations) / statistics.median(commits):.2f}")
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
            print(f"{writers:3d} writers: {writes / took:7.0f} durable writes/s in {store.commits - before} commits")


def show(name: str, times: list[float]) -> None:
    """One line of milliseconds."""
    ordered = sorted(times)
    median, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    print(f"{name:18s} median {median * 1e3:.3f} ms  p95 {p95 * 1e3:.3f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--directory", type=Path, help="a folder on the disk to measure; default: the system's temp folder"
    )
    parser.add_argument("--rounds", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as name:
        asyncio.run(run(Path(name).resolve(), given.rounds))
