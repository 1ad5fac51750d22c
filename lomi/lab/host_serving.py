"""One host of a cluster: its broker, and its place with the scheduler, taken again whenever it was lost."""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from lomi.demo.broker import Broker, opened_broker
from lomi.lab import host_tasks
from lomi.lab.host_orders import HostFacts
from lomi.lab.host_place import Cluster, ClusterPlace
from lomi.lab.host_policy import Access
from lomi.lab.host_rooms import Host, HostSetting
from lomi.lab.host_security import TlsWorker, configure, security
from lomi.lab.lanes import HostClock
from lomi.lab.shelf import FolderShelf

_AGAIN_S = (0.5, 1.0, 2.0, 5.0)
_SPARE_THREADS = 8


class HostEndedError(Exception):
    """Raised when a host can't go on; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """What a host is to be.

    Attributes:
        place: its membership.
        access: its own policy and the token of its workers.
        facts: what it has, as its policy says.
        environment: what its broker and workers inherit.
        listen: the address that other hosts reach it at; None for the one that the way to the scheduler leaves by.
        told: hears one line at a time.
    """

    place: ClusterPlace
    access: Access
    facts: HostFacts
    environment: Mapping[str, str]
    listen: str | None
    told: Callable[[str], None]


async def serve_host(order: HostOrder, stop: asyncio.Event) -> None:
    """Serve until `stop`; the broker ends with it, and what ran for the cluster counts for nobody.

    Raises:
        HostEndedError: the broker ended, which it must not.
        DemoFailedError: the broker did not start.
    """
    configure()
    place = order.place
    cluster = await asyncio.to_thread(place.read)
    folders = [place.folder / name for name in ("work", "logs", "shelf")]
    for folder in folders:
        # What an earlier life of this host left belongs to runs that gave it up.
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await asyncio.to_thread(folder.mkdir, parents=True)
    work, logs, shelf = folders
    environment = {**order.environment, "LOMI_HOME": str(place.home)}
    for name in ("LOMI_CLIENT_LABEL", "LOMI_CLIENT_TOKEN", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    async with opened_broker(order.access.policy, work, environment, logs / "broker.log", dies_with_us=True) as broker:
        setting = HostSetting(
            facts=order.facts,
            environment={
                **environment,
                "LOMI_CLIENT_LABEL": order.access.label,
                "LOMI_CLIENT_TOKEN": order.access.token,
            },
            work=work,
            shelf=FolderShelf(shelf),
            scratch=logs,
            clock=HostClock(),
        )
        await _serve(order, cluster, setting, broker, stop)


async def _serve(order: HostOrder, cluster: Cluster, setting: HostSetting, broker: Broker, stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as tasks:
        host = Host(setting, tasks)
        host_tasks.serve(host)
        watching = tasks.create_task(host.watch(), name="lomi-lab-host-watch")
        ended = tasks.create_task(broker.gone(), name="lomi-lab-host-broker")
        stopped = tasks.create_task(stop.wait(), name="lomi-lab-host-stop")
        try:
            tries = 0
            while not stopped.done() and not ended.done():
                lasted = await _member(order, cluster, (ended, stopped))
                await host.end_all()
                tries = 0 if lasted else tries + 1
                if not stopped.done() and not ended.done():
                    order.told("the scheduler was lost; what ran here counts for nobody, trying again")
                    pause = _AGAIN_S[min(tries, len(_AGAIN_S) - 1)]
                    await asyncio.wait((ended, stopped), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            failed = ended.done() and not stopped.done()
        finally:
            await host.end_all()
            for task in (watching, ended, stopped):
                task.cancel()
    if failed:
        raise HostEndedError("the broker of this host ended; see the log in its home")


async def _member(order: HostOrder, cluster: Cluster, until: tuple[asyncio.Task[object], ...]) -> bool:
    """Be a worker of the cluster until the scheduler is lost or a task is done; whether it ever was one."""
    target = urlsplit(cluster.scheduler)
    assert target.hostname is not None
    assert target.port is not None
    worker: TlsWorker | None = None
    try:
        listen = order.listen or await asyncio.to_thread(_own_address, target.hostname, target.port)
        worker = TlsWorker(
            cluster.scheduler,
            security=security(order.place),
            host=listen,
            name=order.facts.name,
            nthreads=order.facts.slots + sum(order.facts.phones.values()) + _SPARE_THREADS,
            resources=order.facts.resources(),
            dashboard=False,
            memory_limit=0,
            local_directory=str(order.place.folder / "dask"),
            heartbeat_interval="1s",
        )
        if not await _unless(until, _started(worker)):
            return False
        order.told(f"{order.facts.name} serves {cluster.scheduler}")
        await _unless(until, _finished(worker))
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        order.told(f"{cluster.scheduler} can't be reached: {' '.join(str(error).split())[:200]}")
        return False
    except ExceptionGroup as failed:
        # Of `_unless`: what Dask raises for a scheduler that is not there, or does not want us, may be of any kind.
        order.told(f"{cluster.scheduler} can't be reached: {' '.join(str(failed.exceptions[0]).split())[:200]}")
        return False
    else:
        return True
    finally:
        if worker is not None:
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                await worker.close(timeout=5)


async def _unless(until: tuple[asyncio.Task[object], ...], work: Coroutine[object, object, None]) -> bool:
    """Do something unless one of the tasks is done before; whether it was done."""
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(work, name="lomi-lab-host-member")
        await asyncio.wait((working, *until), return_when=asyncio.FIRST_COMPLETED)
        done = working.done()
        working.cancel()
    return done


async def _finished(worker: TlsWorker) -> None:
    await worker.finished()  # type: ignore[no-untyped-call]


async def _started(worker: TlsWorker) -> None:
    await worker


def _own_address(host: str, port: int) -> str:
    """The address of ours from which that one is reached; sends nothing."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])
