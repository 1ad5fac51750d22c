"""Bounds: what is slow, huge, crowded or never ends costs a fixed amount and then stops."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser.egress import EgressGrant, EgressLimits, EgressProxy, Origin

if TYPE_CHECKING:
    from conftest import Lab, Seen


def descriptors() -> int:
    """Count this process's open descriptors."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_head_that_drips_is_cut(lab: Lab) -> None:
    """A client that sends its head byte by byte has until the head limit, however often it sends."""
    proxy = await lab.proxy("http://a.test", limits=EgressLimits(head_s=0.2))
    raw = await lab.raw(proxy)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        ended = group.create_task(raw.gone())
        while not ended.done():
            raw.send(b"G")
            await asyncio.wait([ended], timeout=0.02)


async def test_a_connection_that_never_asks_is_cut(lab: Lab) -> None:
    """A connection without a proven credential is let go after its limit."""
    raw = await lab.raw(await lab.proxy("http://a.test", limits=EgressLimits(unproven_s=0.1)))
    assert await raw.gone()


@pytest.mark.parametrize("size", [65_536, 1_000_000])
async def test_a_huge_head_is_refused(lab: Lab, size: int) -> None:
    """A head over its limit gets 431, and no more of it is kept than the limit."""
    raw = await lab.raw(await lab.proxy("http://a.test"))
    raw.send(b"GET http://a.test/ HTTP/1.1\r\nX: " + b"x" * size)
    status, headers, _ = await raw.answer()
    assert (status, headers["lomi-egress"]) == (431, "malformed")
    raw.writer.write_eof()
    assert await raw.gone()


async def test_too_many_headers_are_refused(lab: Lab) -> None:
    """The count is bounded as well as the size."""
    raw = await lab.raw(await lab.proxy("http://a.test"))
    raw.ask("http://a.test/", headers="X: 1\r\n" * 300)
    assert (await raw.head())[0] == 431


async def test_a_client_that_went_away_takes_its_exchange_along(lab: Lab) -> None:
    """When the engine drops a request that hangs, the server's side is dropped too; the log has no status."""
    server = await lab.server()

    async def hang(_seen: Seen, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server.fallback = hang
    proxy = await lab.proxy(server.origin)
    raw = await lab.raw(proxy)
    raw.ask(f"{server.origin}/poll")
    await server.until(lambda: len(server.seen) == 1)
    raw.writer.close()
    await server.until(lambda: server.open == 0)
    assert next(iter(proxy.network_log)).status == 0


async def test_strangers_cannot_crowd_the_engine_out(lab: Lab) -> None:
    """At the connection limit, a connection that never proved itself gives way; proven ones do not."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin, limits=EgressLimits(connections=4))
    engine = await lab.raw(proxy)
    engine.ask(f"{server.origin}/")
    await engine.answer()
    strangers = [await lab.raw(proxy) for _ in range(6)]
    assert await strangers[0].gone()
    late = await lab.raw(proxy)
    late.ask(f"{server.origin}/")
    assert (await late.answer())[0] == 200
    engine.ask(f"{server.origin}/")
    assert (await engine.answer())[0] == 200


async def test_a_slow_reader_slows_the_server_down(lab: Lab) -> None:
    """A body of 64 MiB that nobody reads stays with the server, not in the proxy; read, it arrives whole."""
    server = await lab.server()
    piece, total = b"x" * 65_536, 64 * 1024 * 1024
    sent = 0
    stuck = asyncio.Event()

    async def pour(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        for _ in range(total // len(piece)):
            writer.write(piece)
            sent += len(piece)
            try:
                await asyncio.wait_for(writer.drain(), 0.3)
            except TimeoutError:
                stuck.set()
                await writer.drain()

    server.fallback = pour
    proxy = await lab.proxy(server.origin)
    raw = await lab.raw(proxy)
    raw.ask(f"{server.origin}/")
    await raw.head()
    await stuck.wait()
    assert sent < 32 * 1024 * 1024
    got = 0
    while got < total:
        got += len(await raw.reader.read(1_000_000))
    assert got == total


async def test_a_reader_that_asks_much_and_reads_nothing_is_held_too(lab: Lab) -> None:
    """Pipelined requests to alternating places do not gather their answers in the proxy."""
    servers = [await lab.server(), await lab.server("127.0.0.2")]
    for server in servers:
        server.fallback = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000
    proxy = await lab.proxy(*(server.origin for server in servers))
    raw = await lab.raw(proxy)
    raw.reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(300):
        raw.ask(f"{servers[number % 2].origin}/")
    with suppress(TimeoutError):
        await asyncio.wait_for(servers[0].until(lambda: len(servers[0].seen) >= 80), 1.5)
    assert len(servers[0].seen) < 80


async def test_a_slow_server_slows_an_upload_down(lab: Lab) -> None:
    """A request body that the server does not read stays with the client."""
    loop = asyncio.get_running_loop()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003  the socket module's own signature
        proxy = await lab.proxy(f"http://127.0.0.1:{listener.getsockname()[1]}")
        raw = await lab.raw(proxy)
        total = 64 * 1024 * 1024
        raw.ask(f"http://127.0.0.1:{listener.getsockname()[1]}/", method="POST", headers=f"Content-Length: {total}\r\n")
        accepted, _ = await loop.sock_accept(listener)
        with accepted:
            sent = 0
            while sent < total:
                raw.send(b"x" * 65_536)
                sent += 65_536
                try:
                    await asyncio.wait_for(raw.writer.drain(), 0.5)
                except TimeoutError:
                    break
            assert sent < 32 * 1024 * 1024
            proxy.end()


async def test_a_connect_that_is_never_answered_ends_in_time(lab: Lab) -> None:
    """A host that swallows packets costs the connect limit and is reported as a time-out."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)  # noqa: FBT003  the socket module's own signature
                filler.connect_ex(place)
            proxy = await lab.proxy(f"http://127.0.0.1:{place[1]}", limits=EgressLimits(connect_s=0.2))
            raw = await lab.raw(proxy)
            raw.ask(f"http://127.0.0.1:{place[1]}/")
            status, headers, _ = await raw.answer()
            assert (status, headers["lomi-egress"]) == (504, "connect_timeout")
        finally:
            for filler in fillers:
                filler.close()


async def test_two_thousand_requests_leave_descriptors_flat(lab: Lab) -> None:
    """Requests on fresh and on kept connections, refused and granted, leave no descriptor behind."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin)

    async def round_of(count: int) -> None:
        for _ in range(count):
            raw = await lab.raw(proxy)
            for url in (f"{server.origin}/", "http://127.0.0.9/", f"{server.origin}/", f"{server.origin}/"):
                raw.ask(url)
                await raw.answer()
            raw.ask("127.0.0.9:443", method="CONNECT")
            await raw.answer()
            raw.writer.close()
            await raw.writer.wait_closed()

    await round_of(10)
    gc.collect()
    before = descriptors()
    await round_of(400)
    await server.until(lambda: server.open == 0)
    gc.collect()
    assert descriptors() <= before + 1
    assert server.open == 0
    assert proxy.network_log.last == 410 * 3


async def test_the_records_are_bounded_and_say_what_is_missing(lab: Lab) -> None:
    """A ring keeps the newest entries; a reader with an old cursor is told how many it missed."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin, limits=EgressLimits(records=5))
    raw = await lab.raw(proxy)
    for number in range(12):
        raw.ask(f"{server.origin}/{number}")
        await raw.answer()
    entries, missed = proxy.network_log.since(2)
    assert [entry.sequence for entry in entries] == [8, 9, 10, 11, 12]
    assert missed == 5
    assert proxy.network_log.since(12) == ((), 0)


async def test_leaving_the_block_leaves_nothing_behind(lab: Lab) -> None:
    """A proxy that ends with connections in every state leaves no descriptor of its own."""
    server = await lab.server()
    before = descriptors()
    grant = EgressGrant(origins=frozenset({Origin.parse(server.origin)}))
    async with EgressProxy.serve(grant) as proxy:
        idle, asking, silent = await lab.raw(proxy), await lab.raw(proxy), await lab.raw(proxy)
        idle.ask(f"{server.origin}/")
        await idle.answer()
        asking.send(b"GET http://")
    for raw in (idle, asking, silent):
        assert await raw.gone()
        raw.writer.close()
        with suppress(ConnectionError):
            await raw.writer.wait_closed()
    await server.until(lambda: server.open == 0)
    gc.collect()
    assert descriptors() <= before


@pytest.mark.parametrize("turns", range(6))
async def test_who_connects_in_the_moment_of_the_end_is_hung_up_on(turns: int) -> None:
    """However far its acceptance has come: it is not left open until a collector finds it."""
    loop = asyncio.get_running_loop()
    gc.disable()
    try:
        with socket.socket() as client:
            client.setblocking(False)  # noqa: FBT003  the socket module's own signature
            async with EgressProxy.serve(EgressGrant(origins=frozenset())) as proxy:
                client.connect_ex(("127.0.0.1", int(proxy.url.rpartition(":")[2])))
                for _ in range(turns):
                    await asyncio.sleep(0)
            async with asyncio.timeout(10):
                with suppress(ConnectionError):
                    assert await loop.sock_recv(client, 1) == b""
    finally:
        gc.enable()


async def test_an_error_in_the_block_comes_out_as_itself(lab: Lab) -> None:
    """The caller's own exception is not wrapped in a group."""
    with pytest.raises(LookupError, match="mine"):
        async with EgressProxy.serve(EgressGrant(origins=frozenset())):
            raise LookupError("mine")
