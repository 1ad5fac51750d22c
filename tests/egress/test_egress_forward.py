"""Plain http through the proxy, over real sockets: what passes, how it is framed, what the proxy answers itself."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Lab, Seen


def simple(body: bytes = b"hello", *, headers: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


async def test_a_granted_request_reaches_the_server_and_is_logged(lab: Lab) -> None:
    """The server sees origin form without the credential; the log shows the URL without its query."""
    server = await lab.server()
    server.fallback = simple(headers="Content-Type: text/html; charset=utf-8\r\n")
    proxy = await lab.proxy(server.origin)
    raw = await lab.raw(proxy)
    raw.ask(f"{server.origin}/a?token=secret")
    assert await raw.answer() == (
        200,
        {"content-length": "5", "content-type": "text/html; charset=utf-8"},
        b"hello",
    )
    assert server.seen[0].line == "GET /a?token=secret HTTP/1.1"
    assert server.seen[0].headers == {"host": server.authority}
    (entry,) = proxy.network_log
    assert (entry.sequence, entry.method, entry.url) == (1, "GET", f"{server.origin}/a?…")
    assert (entry.status, entry.type, entry.bytes) == (200, "text/html", 5)
    assert entry.duration >= 0


async def test_queries_are_kept_on_wish(lab: Lab) -> None:
    """`keep_queries` puts the whole URL into the log."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin, keep_queries=True)
    raw = await lab.raw(proxy)
    raw.ask(f"{server.origin}/a?q=1")
    await raw.answer()
    assert next(iter(proxy.network_log)).url == f"{server.origin}/a?q=1"


async def test_one_connection_serves_many_requests_on_both_sides(lab: Lab) -> None:
    """Keep-alive holds towards the engine and towards the server, pipelined requests are answered in order."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin)
    raw = await lab.raw(proxy)
    for number in range(50):
        raw.ask(f"{server.origin}/{number}")
    for _ in range(50):
        assert (await raw.answer())[0] == 200
    assert server.paths == [f"/{number}" for number in range(50)]
    assert server.connections == 1


async def test_bodies_pass_unchanged_both_ways(lab: Lab) -> None:
    """A large upload and its large echo keep their bytes, with a length and chunked."""
    server = await lab.server()
    sent = bytes(range(256)) * 20_000

    async def echo(seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(seen.body), 70_000):
            piece = seen.body[start : start + 70_000]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    server.fallback = echo
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/up", method="POST", headers=f"Content-Length: {len(sent)}\r\n", body=sent)
    _, headers = await raw.head()
    assert headers["transfer-encoding"] == "chunked"
    got = b""
    while size := int(await raw.reader.readline(), 16):
        got += await raw.reader.readexactly(size)
        await raw.reader.readexactly(2)
    assert hashlib.sha256(server.seen[0].body).digest() == hashlib.sha256(sent).digest()
    assert got == sent


async def test_a_chunked_upload_passes(lab: Lab) -> None:
    """The chunks of a request reach the server as they were."""
    server = await lab.server()
    received = asyncio.get_running_loop().create_future()

    async def take(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(simple())

    server.fallback = take
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/", method="POST", headers="Transfer-Encoding: chunked\r\n", body=b"5\r\nhel")
    raw.send(b"lo\r\n0\r\n\r\n")
    assert (await raw.answer())[0] == 200
    assert await received == b"5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "answer", "status", "body"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", 200, b""),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        ("GET", b"HTTP/1.1 304 Not Modified\r\n\r\n", 304, b""),
        ("GET", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 103, b""),
    ],
)
async def test_answers_without_a_body_leave_the_connection_in_step(
    lab: Lab, method: str, answer: bytes, status: int, body: bytes
) -> None:
    """HEAD, 204, 304 and interim answers are followed by the next answer, not by a wait for a body."""
    server = await lab.server()
    server.answers["/odd"] = answer
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/odd", method=method)
    assert (await raw.head())[0] == status
    if status == 103:
        assert (await raw.answer())[2] == b"ok"
    raw.ask(f"{server.origin}/next")
    assert (await raw.answer())[2] == b"hello"


async def test_a_body_that_ends_with_its_connection_ends_the_engines_too(lab: Lab) -> None:
    """An old server's answer is whole, and marked as the last on its connection."""
    server = await lab.server()

    async def old(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + b"z" * 100_000)
        await writer.drain()
        writer.close()

    server.fallback = old
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/")
    status, headers, body = await raw.answer()
    assert (status, headers["connection"], len(body)) == (200, "close", 100_000)


async def test_a_broken_answer_does_not_look_complete(lab: Lab) -> None:
    """A server that dies in the middle of a body leaves the engine with a broken connection, not with a short body."""
    server = await lab.server()

    async def die(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    server.fallback = die
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/")
    await raw.head()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await raw.reader.readexactly(100)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "empty_response"),
        (b"nonsense\r\n\r\n", "invalid_response"),
        (b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", "invalid_response"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "invalid_response"),
    ],
)
async def test_a_server_that_fails_is_told_apart_from_a_refusal(lab: Lab, answer: bytes, reason: str) -> None:
    """No, senseless and over-long answers become 502 with the reason in the proxy's own header."""
    server = await lab.server()

    async def fail(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    server.fallback = fail
    proxy = await lab.proxy(server.origin)
    raw = await lab.raw(proxy)
    raw.ask(f"{server.origin}/")
    status, headers, _ = await raw.answer()
    assert (status, headers["lomi-egress"]) == (502, reason)
    assert len(proxy.refusals) == 0
    assert next(iter(proxy.network_log)).status == 0


async def test_nothing_is_sent_twice_when_a_kept_connection_dies(lab: Lab) -> None:
    """The engine finds its connection closed without an answer, as it would without a proxy; the next request works."""
    server = await lab.server()

    async def last(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server.answers["/dies"] = last
    proxy = await lab.proxy(server.origin)
    raw = await lab.raw(proxy)
    raw.ask(f"{server.origin}/")
    await raw.answer()
    raw.ask(f"{server.origin}/dies")
    assert await raw.reader.read() == b""
    assert server.paths == ["/", "/dies"]


async def test_a_server_that_closed_while_idle_costs_the_engine_nothing(lab: Lab) -> None:
    """The next request on the engine's kept connection goes through a new connection to the server."""
    server = await lab.server()
    server.answers["/bye"] = simple(headers="Connection: close\r\n")
    raw = await lab.raw(await lab.proxy(server.origin))
    for path in ("/bye", "/bye", "/"):
        raw.ask(f"{server.origin}{path}")
        assert (await raw.answer())[0] == 200
    assert server.connections == 3


async def test_an_early_answer_to_an_upload_is_passed_on(lab: Lab) -> None:
    """A server that answers before it read the body is heard, the rest is read away, the connection goes on."""
    server = await lab.server()

    async def early(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(simple(b"no"))

    server.fallback = early
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/", method="POST", headers="Transfer-Encoding: chunked\r\n", body=b"5\r\nhello\r\n")
    assert (await raw.answer())[2] == b"no"
    raw.send(b"0\r\n\r\n")
    raw.ask(f"{server.origin}/next")
    assert (await raw.answer())[2] == b"no"


async def test_a_connection_may_go_to_another_granted_place(lab: Lab) -> None:
    """One engine connection can serve two origins in turn, each by its own server."""
    one, two = await lab.server(), await lab.server("127.0.0.2")
    two.fallback = simple(b"second")
    raw = await lab.raw(await lab.proxy(one.origin, two.origin))
    for server, body in ((one, b"hello"), (two, b"second"), (one, b"hello")):
        raw.ask(f"{server.origin}/")
        assert (await raw.answer())[2] == body
    await one.until(lambda: one.open == 1)
    await two.until(lambda: two.open == 0)


async def test_ipv6_literals_work(lab: Lab) -> None:
    """An origin with an IPv6 address is granted and reached like any other."""
    server = await lab.server("::1")
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.ask(f"{server.origin}/")
    assert (await raw.answer())[0] == 200


@pytest.mark.parametrize(
    "credential", ["", "Proxy-Authorization: Basic bm86bm8=\r\n", "Proxy-Authorization: Bearer x\r\n"]
)
async def test_without_the_credential_nothing_is_asked_for(lab: Lab, credential: str) -> None:
    """Another process on this machine that finds the port gets 407 for every request, granted or not."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin)
    for url, method in ((f"{server.origin}/", "GET"), ("http://127.0.0.9/", "GET"), (server.authority, "CONNECT")):
        raw = await lab.raw(proxy)
        raw.credential = credential
        raw.ask(url, method=method)
        status, headers, _ = await raw.answer()
        assert (status, headers["lomi-egress"]) == (407, "credential_missing")
        assert headers["proxy-authenticate"].startswith("Basic ")
    assert server.connections == 0
    assert len(proxy.refusals) == 0


async def test_each_context_has_a_credential_of_its_own(lab: Lab) -> None:
    """One context's credential opens no other context's proxy."""
    server = await lab.server()
    one, two = await lab.proxy(server.origin), await lab.proxy(server.origin)
    raw = await lab.raw(one)
    stolen = await lab.raw(two)
    stolen.credential = raw.credential
    stolen.ask(f"{server.origin}/")
    assert (await stolen.answer())[0] == 407
    assert one.password not in (one.username, two.password)


async def test_a_malformed_request_gets_a_typed_answer_and_the_connection_ends(lab: Lab) -> None:
    """The reason is in the header, and nothing after a bad head is read as a request."""
    server = await lab.server()
    raw = await lab.raw(await lab.proxy(server.origin))
    raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    raw.ask(f"{server.origin}/")
    status, headers, _ = await raw.answer()
    assert (status, headers["lomi-egress"], headers["connection"]) == (400, "malformed", "close")
    assert await raw.reader.read() == b""
    assert server.connections == 0
