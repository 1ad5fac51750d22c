"""Tunnels: bytes untouched, half-closing kept, the scheme held, cut at once."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from running_time import own_time

from browser.egress import EgressGrant, EgressLimits, Origin

if TYPE_CHECKING:
    from conftest import Lab, Raw, Seen

    from browser.egress import EgressProxy

HELLO = b"\x16\x03\x01"  # how every TLS connection starts


async def opened(lab: Lab, proxy: EgressProxy, authority: str) -> Raw:
    """Return a raw connection with its tunnel open."""
    raw = await lab.raw(proxy)
    raw.ask(authority, method="CONNECT")
    assert (await raw.head())[0] == 200
    return raw


class Echo(asyncio.Protocol):
    """Sends back what it gets; remembers its connections."""

    def __init__(self, made: list[Echo]) -> None:
        self.made = made
        self.got = b""
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.made.append(self)

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.transport.write(data)  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


@pytest.fixture
async def echo() -> object:
    """Serve an echo on a free port; yields the port and the connections made."""
    made: list[Echo] = []
    server = await asyncio.get_running_loop().create_server(lambda: Echo(made), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], made
    server.close()
    for each in made:
        each.transport.close()


async def test_bytes_pass_both_ways_unchanged_and_are_counted(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """Several megabytes through a tunnel come back equal; the log gets one entry when it ends."""
    port, _ = echo
    proxy = await lab.proxy(f"https://127.0.0.1:{port}")
    raw = await opened(lab, proxy, f"127.0.0.1:{port}")
    sent = HELLO + os.urandom(3_000_000)
    raw.send(sent)
    assert await raw.reader.readexactly(len(sent)) == sent
    raw.writer.write_eof()
    assert await raw.reader.read() == b""
    (entry,) = proxy.network_log
    assert (entry.method, entry.url, entry.type) == ("CONNECT", f"127.0.0.1:{port}", "tunnel")
    assert entry.bytes == len(sent)


async def test_half_closing_passes_through(lab: Lab) -> None:
    """A client that has sent all still gets the answer that comes after."""

    async def after_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = await reader.read()
        writer.write(b"got %d" % len(got))
        writer.close()

    server = await asyncio.start_server(after_end, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    raw = await opened(lab, await lab.proxy(f"https://127.0.0.1:{port}"), f"127.0.0.1:{port}")
    raw.send(HELLO + b"x" * 1000)
    raw.writer.write_eof()
    assert await raw.reader.read() == b"got 1003"
    server.close()


@pytest.mark.parametrize(
    ("scheme", "opening"),
    [("http", HELLO + b"tls"), ("https", b"GET / HTTP/1.1\r\n"), ("https", b"SSH-2.0\r\n"), ("http", b"POST / ")],
)
async def test_a_tunnel_speaks_the_granted_scheme_or_ends(
    lab: Lab, echo: tuple[int, list[Echo]], scheme: str, opening: bytes
) -> None:
    """An http origin admits a WebSocket's opening, an https origin TLS, and neither anything else; no byte passes."""
    port, made = echo
    proxy = await lab.proxy(f"{scheme}://127.0.0.1:{port}")
    raw = await opened(lab, proxy, f"127.0.0.1:{port}")
    raw.send(opening)
    assert await raw.gone()
    await made[0].lost
    assert made[0].got == b""
    assert [refusal.reason for refusal in proxy.refusals] == ["scheme_not_granted"]


async def test_a_websocket_opening_may_come_in_pieces(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """The first bytes are gathered until they show what is spoken."""
    port, _ = echo
    proxy = await lab.proxy(f"http://127.0.0.1:{port}")
    raw = await opened(lab, proxy, f"127.0.0.1:{port}")
    for piece in (b"G", b"E", b"T ", b"/ws"):
        raw.send(piece)
        await raw.writer.drain()
    assert await raw.reader.readexactly(7) == b"GET /ws"


async def test_a_server_that_speaks_first_is_heard_after_the_answer(lab: Lab) -> None:
    """Bytes that come before the tunnel stands are kept in order behind the 200."""

    async def first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2_000):
            writer.write(b"welcome" * 1_000)
            await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(first, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    raw = await opened(lab, await lab.proxy(f"https://127.0.0.1:{port}"), f"127.0.0.1:{port}")
    assert await raw.reader.readexactly(14_000_000) == b"welcome" * 2_000_000
    server.close()


async def test_end_cuts_a_live_tunnel_within_100_ms(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """Revocation ends both sides of every tunnel at once, and the listening socket with them."""
    port, made = echo
    proxy = await lab.proxy(f"https://127.0.0.1:{port}")
    tunnels = [await opened(lab, proxy, f"127.0.0.1:{port}") for _ in range(20)]
    for raw in tunnels:
        raw.send(HELLO)
        await raw.reader.readexactly(3)
    proxy.end()
    assert await own_time(asyncio.gather(*(raw.gone() for raw in tunnels), *(each.lost for each in made))) < 0.1
    with pytest.raises(ConnectionError):
        await lab.raw(proxy)
    assert len(proxy.network_log) == 20


async def test_end_cuts_a_running_answer_and_a_running_dial(lab: Lab) -> None:
    """Neither a half-sent body nor a connection still being made survives."""
    server = await lab.server()

    async def endless(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")

    server.fallback = endless
    asked = asyncio.Event()

    async def never(_host: str, _port: int) -> tuple[()]:
        asked.set()
        await asyncio.Event().wait()
        return ()

    proxy = await lab.proxy(server.origin, "http://slow.test", resolve=never)
    answering, dialling = await lab.raw(proxy), await lab.raw(proxy)
    answering.ask(f"{server.origin}/")
    await answering.head()
    dialling.ask("http://slow.test/")
    await asked.wait()
    proxy.end()
    gone = asyncio.gather(answering.gone(), dialling.gone(), server.until(lambda: server.open == 0))
    assert await own_time(gone) < 0.1


async def test_a_smaller_grant_cuts_what_it_no_longer_admits(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """Replacing the grant is one step: open connections outside it end, those inside go on."""
    port, _ = echo
    server = await lab.server()
    proxy = await lab.proxy(server.origin, f"https://127.0.0.1:{port}")
    tunnel = await opened(lab, proxy, f"127.0.0.1:{port}")
    kept = await lab.raw(proxy)
    kept.ask(f"{server.origin}/")
    await kept.answer()
    proxy.replace(EgressGrant(origins=frozenset({Origin.parse(server.origin)})))
    assert await tunnel.gone()
    kept.ask(f"{server.origin}/")
    assert (await kept.answer())[0] == 200
    assert server.connections == 1


async def test_a_tunnel_keeps_to_the_scheme_it_speaks(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """When the grant changes to the other scheme of the same place, the tunnel is outside it."""
    port, _ = echo
    proxy = await lab.proxy(f"https://127.0.0.1:{port}")
    raw = await opened(lab, proxy, f"127.0.0.1:{port}")
    raw.send(HELLO)
    await raw.reader.readexactly(3)
    proxy.replace(EgressGrant(origins=frozenset({Origin.parse(f"http://127.0.0.1:{port}")})))
    assert await raw.gone()


async def test_a_port_that_becomes_ours_is_cut(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """When an emulator takes a port, a tunnel that was granted to it ends."""
    port, _ = echo
    proxy = await lab.proxy(f"https://127.0.0.1:{port}")
    raw = await opened(lab, proxy, f"127.0.0.1:{port}")
    proxy.refuse_ports({port})
    assert await raw.gone()
    again = await lab.raw(proxy)
    again.ask(f"127.0.0.1:{port}", method="CONNECT")
    assert (await again.head())[1]["lomi-egress"] == "own_port"


async def test_a_grant_replaced_during_a_dial_is_the_one_that_counts(lab: Lab) -> None:
    """A connection that was admitted when it was asked for is dropped when it is no longer."""
    server = await lab.server()
    release, asked = asyncio.Event(), asyncio.Event()

    async def slowly(_host: str, _port: int) -> object:
        asked.set()
        await release.wait()
        from ipaddress import IPv4Address

        return [IPv4Address("127.0.0.1")]

    name = f"http://slow.test:{server.port}"
    proxy = await lab.proxy(name, server.origin, resolve=slowly)
    raw = await lab.raw(proxy)
    raw.ask(f"{name}/")
    await asked.wait()
    proxy.replace(EgressGrant(origins=frozenset({Origin.parse(server.origin)})))
    release.set()
    status, headers, _ = await raw.answer()
    assert (status, headers["lomi-egress"]) == (502, "grant_changed")
    assert server.seen == []


async def test_an_idle_tunnel_ends(lab: Lab, echo: tuple[int, list[Echo]]) -> None:
    """A tunnel on which nothing moves for the idle limit is cut."""
    port, made = echo
    proxy = await lab.proxy(f"https://127.0.0.1:{port}", limits=EgressLimits(idle_s=0.1))
    raw = await opened(lab, proxy, f"127.0.0.1:{port}")
    assert await raw.gone()
    await made[0].lost
