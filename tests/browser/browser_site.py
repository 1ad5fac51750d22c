"""A small local web server whose pages and answers a test writes, and whose requests it can read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from harness.accepting import close_quietly


@dataclass(slots=True)
class Request:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Answer:
    """What the server answers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hold: asyncio.Event | None = None


Handler = Callable[[Request], Awaitable[Answer] | Answer]


def html(body: str, **headers: str) -> Answer:
    """A page that is not cached."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        body.encode("utf-8", "surrogatepass"),
        headers={"content-type": "text/html; charset=utf-8", "cache-control": "no-store", **named},
    )


class Site:
    """Pages by path; what is not there is 404. `requests` are those that arrived."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer | Handler] = {}
        self.requests: list[Request] = []
        self.arrived = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def other_url(self) -> str:
        """The same server as another site, so that the engine gives it another process."""
        return f"http://localhost:{self.port}"

    def show(self, body: str, path: str = "/", **headers: str) -> str:
        """Put a page up; its address."""
        self.pages[path] = html(body, **headers)
        return self.url + path

    def seen(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    async def until(self, path: str, count: int = 1) -> list[Request]:
        """The requests for a path once there are `count` of them."""
        async with asyncio.timeout(10):
            while len(self.seen(path)) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return self.seen(path)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await self._head(reader):
                request = await self._request(head, reader)
                self.requests.append(request)
                self.arrived.set()
                answer = (
                    self.pages.get(request.path) or self.pages.get(request.path.partition("?")[0]) or Answer(status=404)
                )
                if not isinstance(answer, Answer):
                    made = answer(request)
                    answer = made if isinstance(made, Answer) else await made
                if answer.hold is not None:
                    await answer.hold.wait()
                lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in answer.headers.items())]
                if answer.status != 204:
                    lines.append(f"content-length: {len(answer.body)}")
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""

    async def _request(self, head: bytes, reader: asyncio.StreamReader) -> Request:
        first, *rest = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(method, path, headers, body)


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    """A site on a port of its own."""
    site = Site()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(site.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _task: writer.close())  # it may end before it has begun

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 20)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        await close_quietly(server)
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
