"""`python -m sizing.measure`: how many shards a second the run's process gives out and takes in, and its bandwidth.

A real scheduler, a real engine, real TLS; the hosts are real processes whose shards do nothing.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from lomi.lab import host_tasks
from lomi.lab.engines.dask_engine import DaskSetting, opened_dask_engine
from lomi.lab.host_enrol import join
from lomi.lab.host_orders import HostAnswer, HostFacts, ShardOrder
from lomi.lab.host_place import ClusterPlace
from lomi.lab.host_scheduler import SchedulerOrder, new_token, serve_scheduler
from lomi.lab.host_security import TlsWorker, configure, security
from lomi.lab.host_tokens import parse_token
from lomi.lab.plan import parse_plan
from lomi.lab.shard import Artifact, Attempt, Needs, PlannedTest, Shard, ShardResult, Work
from lomi.lab.shelf import FolderShelf

SLOTS = 64
RUN = "run-000000000000"
PLAN = parse_plan("version = 1\n")


class IdleHost:
    """Answers every shard at once, with one artifact of so many bytes."""

    def __init__(self, facts: HostFacts, shelf: FolderShelf, size: int) -> None:
        self.facts = facts
        self.shelf = shelf
        self.setting = self
        self._size = size

    async def run_shard(self, order: ShardOrder) -> HostAnswer:
        """One passed test."""
        artifacts: tuple[Artifact, ...] = ()
        if self._size:
            content = order.shard.number.to_bytes(8, "big") + os.urandom(self._size - 8)
            sha256 = await asyncio.to_thread(self.shelf.put, content)
            artifacts = (Artifact(name="picture.png", kind="picture", bytes=self._size, sha256=sha256),)
        work = order.shard.works[0]
        attempt = Attempt(test=work.test.id, attempt=1, shard=order.shard.number, verdict="passed", artifacts=artifacts)
        return HostAnswer(result=ShardResult(shard=order.shard.number, host=self.facts.name, attempts=(attempt,)))

    def keep(self, run: str) -> None:
        """Nothing to keep."""

    async def end(self, run: str) -> None:
        """Nothing to end."""


async def idle_host(token: str, home: Path, name: str, size: int) -> None:
    """One host process, until it is ended."""
    configure()
    place = ClusterPlace(home)
    cluster = await join(parse_token(token), place, name)
    facts = HostFacts(name=name, phones={}, slots=SLOTS, browsers=0, version=version("lomi-lab"))
    host_tasks.serve(IdleHost(facts, FolderShelf(home / "shelf"), size))  # type: ignore[arg-type]
    async with TlsWorker(
        cluster.scheduler,
        security=security(place),
        host="127.0.0.1",
        name=name,
        nthreads=SLOTS,
        resources=facts.resources(),
        dashboard=False,
        memory_limit=0,
        local_directory=str(home / "dask"),
    ) as worker:
        await worker.finished()


def _shard(number: int) -> Shard:
    work = Work(test=PlannedTest(id=f"tests/test_a.py::test_{number}", file="tests/test_a.py", line=1), attempt=1)
    return Shard(number=number, plan_sha256="0" * 64, works=(work,))


async def measured(root: Path, hosts: int, shards: int, size: int) -> tuple[float, float]:
    """Seconds for so many shards that do nothing, and for the processor of this process among them."""
    place, stop = ClusterPlace(root / "s"), asyncio.Event()
    ready: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
    order = SchedulerOrder(
        place=place, host="127.0.0.1", port=0, join_port=0, ready=lambda *told: ready.set_result((told[0], told[1]))
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_scheduler(order, stop))
        engine_address, _ = await ready
        processes = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "sizing.measure", "--host", new_token(place).text()),
                *("--home", str(root / f"h{number}"), "--size", str(size)),
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            )
            for number in range(hosts)
        ]
        try:
            shelf = FolderShelf(root / "shelf")
            setting = DaskSetting(address=engine_address, place=place, run=RUN, plan=PLAN, shelf=shelf)
            async with opened_dask_engine(setting) as engine:
                while engine.capacity < hosts * SLOTS:
                    await engine.capacity_other_than(engine.capacity)
                began, used = time.monotonic(), time.process_time()
                gate = asyncio.Semaphore(engine.capacity)

                async def one(number: int) -> None:
                    async with gate:
                        await engine.run(_shard(number), Needs(phones=0))

                await asyncio.gather(*(one(number) for number in range(shards)))
                return time.monotonic() - began, time.process_time() - used
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
            stop.set()


def main() -> None:
    """Measure, and print one line for each kind of shard."""
    parser = argparse.ArgumentParser(prog="python -m sizing.measure")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--shards", type=int, default=400)
    parser.add_argument("--host", metavar="TOKEN", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        asyncio.run(idle_host(options.host, options.home, options.home.name, options.size))
        return
    for size in (0, 1 << 20):
        with tempfile.TemporaryDirectory(prefix="lomi-sizing-") as folder:
            took, used = asyncio.run(measured(Path(folder), options.hosts, options.shards, size))
        each, own = 1000 * took / options.shards, 1000 * used / options.shards
        rate = options.shards * size / took / (1 << 20)
        print(
            f"{options.shards} shards of {size >> 10} KiB on {options.hosts} hosts: {took:.2f} s, {each:.1f} ms each;"
        )
        print(f"  processor of run and scheduler {own:.1f} ms each; {rate:.0f} MiB/s")


if __name__ == "__main__":
    main()
