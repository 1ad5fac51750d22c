"""Noise from both sides, end to end: whatever is sent, servers see only granted, well-formed requests, in step."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from conftest import Lab
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from conftest import Seen

REQUEST_LINE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /[\x21-\x7e]* HTTP/1\.1")
SMUGGLED = "GET http://{granted}/smuggled HTTP/1.1\r\nHost: {granted}\r\n{credential}\r\n"
PIECES = [
    "GET http://{granted}/a HTTP/1.1\r\n", "POST http://{granted}/b HTTP/1.1\r\n", "GET /c HTTP/1.1\r\n",
    "GET http://{other}/d HTTP/1.1\r\n", "CONNECT {other} HTTP/1.1\r\n", "GET http://{granted}/e HTTP/1.0\r\n",
    "Host: {granted}\r\n", "Host: {other}\r\n", "Host : {granted}\r\n", "{credential}", "Content-Length: 0\r\n",
    "Content-Length: 5\r\n", "Content-Length: 05\r\n", "Content-Length: 5, 5\r\n", "Content-Length: 200\r\n",
    "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: CHUNKED\r\n", "Transfer-Encoding: \x0bchunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n", " folded\r\n", "X: y\n", "X: \x00\r\n", "Connection: close\r\n",
    "Connection: transfer-encoding\r\n", "Upgrade: websocket\r\n", "Expect: 100-continue\r\n", "\r\n", "\r", "\n",
    "hello", "0\r\n\r\n", "5\r\nhello\r\n", "5;x=y\r\nhello\r\n", "5 \r\nhello\r\n", "0x5\r\nhello\r\n", SMUGGLED,
]  # fmt: skip
START = "POST http://{granted}/start HTTP/1.1\r\nHost: {granted}\r\n{credential}"


async def speak(pieces: list[str], cuts: list[int], *, proper: bool) -> None:
    """Send the pieces to a proxy in the given cuts and hold what its server saw against the rules."""
    async with AsyncExitStack() as stack:
        lab = Lab(stack)
        server, other = await lab.server(), await lab.server()
        server.reads_chunks = other.reads_chunks = True
        proxy = await lab.proxy(server.origin)
        raw = await lab.raw(proxy)
        names = {"granted": server.authority, "other": other.authority, "credential": raw.credential}
        text = "".join(([START] if proper else []) + pieces)
        for name, value in names.items():
            text = text.replace("{" + name + "}", value)
        data = text.encode("latin-1")
        with suppress(ConnectionError):
            for cut in cuts:
                raw.send(data[:cut])
                data = data[cut:]
                await raw.writer.drain()
                await asyncio.sleep(0)
            raw.send(data)
            raw.writer.write_eof()
            async with asyncio.timeout(5):
                await raw.gone()
        for seen in server.seen:
            assert REQUEST_LINE.fullmatch(seen.line)
            assert seen.headers["host"] == server.authority
            assert not {"proxy-authorization", "connection", "upgrade"} & seen.headers.keys()
            assert not ({"content-length", "transfer-encoding"} <= seen.headers.keys())
        # A body may hold the text of a request; only one that stands by itself, with its head closed, is a request.
        assert server.paths.count("/smuggled") <= text.count("/smuggled ")
        assert other.connections == 0
        check = await lab.raw(proxy)
        check.ask(f"{server.origin}/alive")
        assert (await check.answer())[0] == 200


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), max_size=9), st.lists(st.integers(1, 60), max_size=5), st.booleans())
def test_noise_from_the_engine_reaches_no_server(pieces: list[str], cuts: list[int], proper: bool) -> None:
    """Heads, bodies and fragments in any order and any cut: nothing ungranted, nothing malformed passes."""
    asyncio.run(speak(pieces, cuts, proper=proper))


def test_a_request_inside_a_body_stays_a_body() -> None:
    """The classic smuggling shapes end with the inner request unseen by the server."""

    async def scenario(headers: str, body: str) -> list[str]:
        async with AsyncExitStack() as stack:
            lab = Lab(stack)
            server = await lab.server()
            server.reads_chunks = True
            raw = await lab.raw(await lab.proxy(server.origin))
            inner = SMUGGLED.format(granted=server.authority, credential=raw.credential)
            text = body.format(inner=inner, size=len(inner), hexed=f"{len(inner):x}")
            head = headers.format(size=len(text))
            raw.ask(f"{server.origin}/outer", method="POST", headers=head, body=text.encode())
            raw.writer.write_eof()
            with suppress(ConnectionError):
                await raw.gone()
            return server.paths

    for headers, body in (
        ("Content-Length: {size}\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n{inner}"),
        ("Content-Length: 4\r\nContent-Length: {size}\r\n", "1\r\nZ{inner}"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n{inner}"),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n{inner}"),
        ("Transfer-Encoding:\x0bchunked\r\n", "0\r\n\r\n{inner}"),
        ("Connection: content-length\r\nContent-Length: {size}\r\n", "{inner}"),
        ("Content-Length: {size}\r\n", "{inner}"),
        ("Transfer-Encoding: chunked\r\n", "{hexed}\r\n{inner}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "{hexed}\n{inner}\r\n0\r\n\r\n"),
    ):
        assert "/smuggled" not in asyncio.run(scenario(headers, body)), headers


ANSWERS = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 204 No\r\n", b"HTTP/1.1 304 Not\r\n",
    b"HTTP/1.1 100 Go\r\n", b"HTTP/1.1 101 Up\r\n", b"HTTP/1.1 407 No\r\n", b"Content-Length: 0\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: 6\r\n", b"Content-Length: -5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n", b"Connection: close\r\n", b"X: a\nY: b\r\n", b" folded\r\n",
    b"Lomi-Egress: own_port\r\n", b"\r\n", b"\n", b"hello", b"0\r\n\r\n", b"5\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"\x00", b"\xff\xfe",
]  # fmt: skip


async def listen(pieces: list[bytes], *, closes: bool) -> None:
    """Let a server send the pieces as its answer; the next answer on the engine's connection must not be part of it."""
    async with AsyncExitStack() as stack:
        lab = Lab(stack)
        server = await lab.server()

        async def noise(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"".join(pieces))
            await writer.drain()
            if closes:
                writer.close()

        server.answers["/noise"] = noise
        server.answers["/next"] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nMark: 1\r\n\r\nnext"
        raw = await lab.raw(await lab.proxy(server.origin))
        raw.ask(f"{server.origin}/noise")
        try:
            async with asyncio.timeout(0.1):
                status, headers = await raw.head()
                while status < 200:
                    status, headers = await raw.head()
                assert ("lomi-egress" in headers) <= (status in (502, 504))
                if status not in (204, 304):
                    await raw.reader.readexactly(int(headers["content-length"]))
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError, KeyError):
            return
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            raw.ask(f"{server.origin}/next")
            status, headers, body = await raw.answer()
            assert (headers.get("mark"), body) == ("1", b"next")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(ANSWERS), max_size=8), st.booleans())
def test_noise_from_a_server_never_becomes_the_next_answer(pieces: list[bytes], closes: bool) -> None:
    """Surplus bytes, split answers and broken framing end a connection; they never answer another request."""
    asyncio.run(listen([b"HTTP/1.1 200 OK\r\n", *pieces] if pieces and pieces[0] == b"\n" else pieces, closes=closes))
