"""The functions that a cluster calls on a host. Dask sends them by name, and only bytes and words with them."""

import asyncio

import msgspec

from lomi.lab.host_orders import Hashes, Lanes, ShardOrder
from lomi.lab.host_rooms import Host

_present: list[Host] = []


class OrderRefusedError(Exception):
    """Raised for bytes that are no order of a run; says why."""


class NoHostError(Exception):
    """Raised where no host serves in this process."""


def serve(host: Host) -> None:
    """From now on this process is that host."""
    _present[:] = [host]


def _host() -> Host:
    if not _present:
        raise NoHostError("this process is no host of a lab")
    return _present[0]


async def run_shard(order: bytes) -> bytes:
    """Run a `ShardOrder`; a `HostAnswer`.

    Raises:
        OrderRefusedError: it is none, or of a run whose name is none.
    """
    try:
        asked = msgspec.json.decode(order, type=ShardOrder)
    except msgspec.DecodeError as error:
        raise OrderRefusedError(str(error)) from error
    return msgspec.json.encode(await _host().run_shard(asked))


async def facts() -> bytes:
    """What this host is, as `HostFacts`."""
    return msgspec.json.encode(_host().setting.facts)


async def missing(hashes: bytes) -> bytes:
    """Which of some `Hashes` are not on this host's shelf."""
    shelf = _host().setting.shelf

    def absent() -> tuple[str, ...]:
        found: list[str] = []
        for sha256 in msgspec.json.decode(hashes, type=Hashes).sha256:
            try:
                shelf.path_of(sha256)
            except KeyError:
                found.append(sha256)
        return tuple(found)

    return msgspec.json.encode(Hashes(sha256=await asyncio.to_thread(absent)))


async def put(content: bytes) -> str:
    """Keep some content; its SHA-256 in hex."""
    return await asyncio.to_thread(_host().setting.shelf.put, content)


async def read(sha256: str) -> bytes:
    """Some content of this host's shelf.

    Raises:
        KeyError: it is not there.
    """
    shelf = _host().setting.shelf
    return await asyncio.to_thread(lambda: shelf.path_of(sha256).read_bytes())


async def cancel(run: str) -> None:
    """End the shards of a run."""
    await _host().cancel(run)


async def finish(run: str) -> bytes:
    """The last stretches of a run's lanes, as `Lanes`."""
    return msgspec.json.encode(Lanes(segments=await _host().finish(run)))


async def anchor(run: str, content: bytes) -> str | None:
    """Have the broker keep the hash of some content."""
    return await _host().anchor(run, content)


async def keep(run: str) -> None:
    """The run is still there."""
    _host().keep(run)


async def end(run: str) -> None:
    """The run is over."""
    await _host().end(run)
