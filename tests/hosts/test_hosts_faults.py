"""A host that misbehaves costs its own shards: odd answers, odd errors, odd orders; over real Dask, in one process."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lomi.lab import host_rooms, host_tasks
from lomi.lab.engine import HostLostError
from lomi.lab.engines import dask_engine
from lomi.lab.engines.dask_engine import DaskEngine, DaskSetting, opened_dask_engine
from lomi.lab.host_authority import certificate_request, open_authority, pem_of_key
from lomi.lab.host_enrol import JoinRefusedError, join
from lomi.lab.host_orders import HostAnswer, HostFacts, ShardOrder
from lomi.lab.host_place import Cluster, ClusterPlace
from lomi.lab.host_rooms import Host, HostSetting
from lomi.lab.host_scheduler import SchedulerOrder, new_token, serve_scheduler
from lomi.lab.host_security import TlsScheduler, TlsWorker, configure, security
from lomi.lab.host_tokens import parse_token
from lomi.lab.lanes import HostClock
from lomi.lab.plan import Plan, parse_plan
from lomi.lab.shard import Artifact, Attempt, FileByHash, Needs, PlannedTest, Segment, Shard, ShardResult, Work
from lomi.lab.shelf import FolderShelf

PLAN = parse_plan("version = 1\n")
RUN = "run-0123456789ab"
FACTS = HostFacts(name="odd", phones={}, slots=2, browsers=0, version=version("lomi-lab"))
Answer = Callable[[ShardOrder], HostAnswer]


class OddHost:
    """Answers orders as a test says, one after the other."""

    def __init__(self, shelf: FolderShelf, *answers: Answer) -> None:
        self.setting = SimpleNamespace(facts=FACTS, shelf=shelf)
        self._answers = list(answers)

    async def run_shard(self, order: ShardOrder) -> HostAnswer:
        """The next answer."""
        return self._answers.pop(0)(order)

    async def finish(self, run: str) -> tuple[Segment, ...]:
        """Nothing that could be told."""
        raise ArithmeticError(run)

    async def end(self, run: str) -> None:
        """Nothing to end."""


def shard(number: int) -> Shard:
    """One test."""
    works = (Work(test=PlannedTest(id="a.py::test", file="a.py", line=1), attempt=1),)
    return Shard(number=number, plan_sha256="0" * 64, works=works)


def good(order: ShardOrder) -> HostAnswer:
    """A shard that ended, with nothing in it."""
    return HostAnswer(result=ShardResult(shard=order.shard.number, host="odd", attempts=()))


def of_another_shard(order: ShardOrder) -> HostAnswer:
    """A result that nobody asked for."""
    return HostAnswer(result=ShardResult(shard=order.shard.number + 1, host="odd", attempts=()))


def unforeseen(order: ShardOrder) -> HostAnswer:
    """An error that no list of errors names."""
    raise ZeroDivisionError(order.run)


def none_at_all(order: ShardOrder) -> Any:
    """Words that are no answer."""
    return {"result": order.run}


@asynccontextmanager
async def opened_engine(folder: Path, *answers: Answer, theirs: FolderShelf | None = None) -> AsyncIterator[DaskEngine]:
    """A scheduler, one odd host and an engine of a run, all in this process."""
    configure()
    authority, key, place = open_authority(folder / "authority"), Ed25519PrivateKey.generate(), ClusterPlace(folder)
    place.keep(
        Cluster(scheduler="", name="all"),
        key=pem_of_key(key),
        certificate=authority.sign(certificate_request(key, "all"), "all"),
        authority=authority.pem,
    )
    shelf = FolderShelf(folder / "shelf")
    secured = {"security": security(place), "host": "127.0.0.1", "dashboard": False}
    async with TlsScheduler(port=0, protocol="tls", **secured) as scheduler:
        worker = TlsWorker(
            str(scheduler.address),
            name="odd",
            nthreads=4,
            resources=FACTS.resources(),
            memory_limit=0,
            local_directory=str(folder / "dask"),
            **secured,
        )
        host_tasks.serve(OddHost(theirs or shelf, *answers))  # type: ignore[arg-type]
        try:
            setting = DaskSetting(address=str(scheduler.address), place=place, run=RUN, plan=PLAN, shelf=shelf)
            async with worker, opened_dask_engine(setting) as engine:
                yield engine
        finally:
            host_tasks._present.clear()


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (of_another_shard, "it answered for shard 8 when asked for 7"),
        (unforeseen, "ZeroDivisionError: run-"),
        (none_at_all, "ValidationError: "),
    ],
)
async def test_an_odd_answer_loses_the_shard_and_not_the_run(tmp_path: Path, odd: Answer, said: str) -> None:
    """The shard's host counts as lost, and the same engine runs the next shard there."""
    async with opened_engine(tmp_path, odd, good) as engine:
        with pytest.raises(HostLostError, match=said) as lost:
            await engine.run(shard(7), Needs(phones=0))
        assert lost.value.host == "odd"
        assert (await engine.run(shard(8), Needs(phones=0))).shard == 8
        assert await engine.finish() == ()


async def test_more_than_an_answer_may_be_loses_the_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both for its words and for an artifact: nothing of it is read or kept."""
    content = b"x" * 2_000
    artifact = Artifact(name="a", kind="download", bytes=2_000, sha256=hashlib.sha256(content).hexdigest())
    attempt = Attempt(test="a.py::test", attempt=1, shard=2, verdict="failed", artifacts=(artifact,))

    def loud(order: ShardOrder) -> HostAnswer:
        return msgspec.structs.replace(good(order), message="x" * 2_000)

    def large(order: ShardOrder) -> HostAnswer:
        return HostAnswer(result=ShardResult(shard=order.shard.number, host="odd", attempts=(attempt,)))

    theirs = FolderShelf(tmp_path / "theirs")
    theirs.put(content)
    monkeypatch.setattr(dask_engine, "_MOST_ANSWER", 1_000)
    monkeypatch.setattr(dask_engine, "MOST_ARTIFACT", 1_000)
    async with opened_engine(tmp_path, loud, large, good, theirs=theirs) as engine:
        with pytest.raises(HostLostError, match="and 1000 are the most"):
            await engine.run(shard(1), Needs(phones=0))
        with pytest.raises(HostLostError, match="it answered with 2000 bytes, and 1000 are the most"):
            await engine.run(shard(2), Needs(phones=0))
        assert not (tmp_path / "shelf" / artifact.sha256).exists()
        assert (await engine.run(shard(3), Needs(phones=0))).shard == 3


@pytest.mark.parametrize("odd", [{"slots": -1}, {"slots": 1 << 40}, {"name": ""}, {"phones": {"paper-36": -1}}])
def test_a_host_that_offers_what_nobody_has_is_none(odd: dict[str, object]) -> None:
    """Counts are bounded, and a host has a name."""
    told = msgspec.json.encode(msgspec.structs.replace(FACTS, **odd))
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(told, type=HostFacts)


async def test_a_host_that_serves_keeps_its_name(tmp_path: Path) -> None:
    """At a real scheduler's desk a second host of the name is refused while the first is connected."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    order = SchedulerOrder(
        place=ClusterPlace(tmp_path / "s"),
        host="127.0.0.1",
        port=0,
        join_port=0,
        ready=lambda _, token: heard.put_nowait(token),
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_scheduler(order, stop))
        place = ClusterPlace(tmp_path / "h")
        cluster = await join(parse_token(await heard.get()), place, "host-1")
        secured = {"security": security(place), "host": "127.0.0.1", "dashboard": False}
        folder = str(tmp_path / "dask")
        async with TlsWorker(cluster.scheduler, name="host-1", memory_limit=0, local_directory=folder, **secured):
            token = await asyncio.to_thread(new_token, order.place)
            with pytest.raises(JoinRefusedError, match="name_taken"):
                await join(token, ClusterPlace(tmp_path / "x"), "host-1")
        stop.set()


@pytest.mark.parametrize("run", ["../../x", "/home/x", "run-0123456789ab\0", "run-0123456789ab\n", "", "run-0", "RUN"])
async def test_an_order_whose_run_has_no_name_is_refused(tmp_path: Path, run: str) -> None:
    """What would name a folder elsewhere is no order; the host takes the next one."""
    order = ShardOrder(run=run, plan=PLAN, shard=shard(1), needs=Needs(phones=0))
    host_tasks.serve(OddHost(FolderShelf(tmp_path), good))  # type: ignore[arg-type]
    try:
        with pytest.raises(host_tasks.OrderRefusedError, match="run"):
            await host_tasks.run_shard(msgspec.json.encode(order))
        answer = await host_tasks.run_shard(msgspec.json.encode(msgspec.structs.replace(order, run=RUN)))
        assert msgspec.json.decode(answer, type=HostAnswer).result is not None
    finally:
        host_tasks._present.clear()


async def test_a_room_that_can_not_be_opened_costs_its_order_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the error is, the run is told, the host lives, and the same run finds a room the next time."""
    shelf = FolderShelf(tmp_path / "shelf")
    content = b"def test(): pass\n"
    files = (FileByHash(path="a.py", bytes=len(content), sha256=shelf.put(content)),)
    asked = msgspec.structs.replace(shard(1), files=files)
    order = ShardOrder(run=RUN, plan=PLAN, shard=asked, needs=Needs(phones=0))
    setting = HostSetting(
        facts=FACTS,
        environment={**os.environ, "LOMI_HOME": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        work=tmp_path / "work",
        shelf=shelf,
        scratch=tmp_path / "logs",
        clock=HostClock(),
    )

    def broken(plan: Plan, facts: HostFacts) -> Plan:
        raise ZeroDivisionError(f"{plan.name} on {facts.name}")

    async with asyncio.TaskGroup() as tasks:
        host = Host(setting, tasks)
        with monkeypatch.context() as patched:
            patched.setattr(host_rooms, "own_plan", broken)
            assert await host.run_shard(order) == HostAnswer(failure="host_lost", message="no room on odd: lab on odd")
        answer = await host.run_shard(order)
        await host.end_all()
    assert answer.result is not None, answer.message
    assert [attempt.verdict for attempt in answer.result.attempts] == ["passed"]
    assert not (tmp_path / "work" / RUN).exists()
