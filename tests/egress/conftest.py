"""Real sockets for the egress tests: servers that record what reaches them, and a raw client of the proxy."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
from harness.accepting import close_quietly

from browser.egress import EgressGrant, EgressProxy, Origin

Answer = bytes | Callable[["Seen", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that reached a server."""

    connection: int
    line: str
    headers: dict[str, str]
    body: bytes


def plain(body: bytes = b"hello", *, status: str = "200 OK", headers: str = "", media_type: str = "text/html") -> bytes:
    """Return a whole answer with a length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


@dataclass(slots=True)
class Server:
    """A small web server that remembers every connection and request."""

    host: str
    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    fallback: Answer = field(default_factory=plain)
    reads_chunks: bool = False
    connections: int = 0
    open: int = 0
    seen: list[Seen] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        """The http origin."""
        return f"http://{self.authority}"

    @property
    def paths(self) -> list[str]:
        """The targets asked for, in order."""
        return [seen.line.split(" ")[1] for seen in self.seen]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that this server records makes `condition` true."""
        async with self.changed:
            await self.changed.wait_for(condition)

    async def _note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if self.reads_chunks and headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
            return body
        return await reader.readexactly(int(headers.get("content-length", "0")))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it ends."""
        self.connections += 1
        self.open += 1
        number = self.connections
        await self._note()
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *lines = head.split("\r\n")[:-2]
                headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
                body = await self._body(reader, headers)
                seen = Seen(number, line, headers, body)
                self.seen.append(seen)
                await self._note()
                answer = self.answers.get(line.split(" ")[1].partition("?")[0], self.fallback)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(seen, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.open -= 1
            await self._note()


@asynccontextmanager
async def listening(host: str, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve on a free port of `host` until the block is left, over TLS with a context."""
    server = Server(host)
    async with asyncio.TaskGroup() as connections:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = connections.create_task(server.serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(lambda _task: writer.close())  # it may end before it has begun

        listener = await asyncio.start_server(accept, host, 0, ssl=context)
        server.port = listener.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            await close_quietly(listener)
            for task in list(tasks):
                task.cancel()


@dataclass(slots=True)
class Raw:
    """A connection to the proxy, spoken by hand."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    credential: str

    def send(self, text: str | bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(text.encode("latin-1") if isinstance(text, str) else text)

    def ask(self, url: str, *, method: str = "GET", headers: str = "", body: bytes = b"") -> None:
        """Send one proper request."""
        authority = url.partition("://")[2].partition("/")[0] if "://" in url else url
        head = f"{method} {url} HTTP/1.1\r\nHost: {authority}\r\n{self.credential}{headers}\r\n"
        self.send(head.encode("latin-1") + body)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read one answer's head: status and headers."""
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = text.split("\r\n")[:-2]
        return int(line.split(" ")[1]), {
            name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)
        }

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one whole answer."""
        status, headers = await self.head()
        if "content-length" in headers:
            return status, headers, await self.reader.readexactly(int(headers["content-length"]))
        if headers.get("transfer-encoding") == "chunked":
            return status, headers, await self.reader.readuntil(b"0\r\n\r\n")
        if status in (204, 304):
            return status, headers, b""
        return status, headers, await self.reader.read()

    async def gone(self) -> bool:
        """Read to the end and say that the other side closed or broke the connection."""
        with suppress(ConnectionError):
            await self.reader.read()
        return True


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


class Lab:
    """Starts servers, proxies and raw connections that all end with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def server(self, host: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> Server:
        """Start a recording server."""
        return await self._stack.enter_async_context(listening(host, context))

    async def proxy(self, *origins: str, **options: object) -> EgressProxy:
        """Start a proxy that grants `origins`; other options go to the grant or to `serve`."""
        held = {name: options.pop(name) for name in ("resources", "refused_ports") if name in options}
        grant = EgressGrant(origins=frozenset(Origin.parse(text) for text in origins), **held)  # type: ignore[arg-type]
        return await self._stack.enter_async_context(EgressProxy.serve(grant, **options))  # type: ignore[arg-type]

    async def raw(self, proxy: EgressProxy) -> Raw:
        """Open a connection to a proxy."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        self._stack.push_async_callback(_closed, writer)
        secret = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        return Raw(reader, writer, f"Proxy-Authorization: Basic {secret}\r\n")


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """Give a test its own servers, proxies and connections."""
    async with AsyncExitStack() as stack:
        yield Lab(stack)
