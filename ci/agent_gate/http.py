"""A small HTTP/1.1 server for this machine: the pages of the tasks and the stand-in model are served by it.

The demo's is not used for it: that one is shipped, and takes nothing but short forms and its own few pages.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

_MOST_BODY = 64 << 20
"""A model's request carries the whole conversation with its pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the query and of a form that was sent."""
        form = "" if "json" in self.headers.get("content-type", "") else self.body.decode("utf-8", "replace")
        return {**dict(parse_qsl(self.query, keep_blank_values=True)), **dict(parse_qsl(form, keep_blank_values=True))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Answer]


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ")
    if len(words) != 3:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _MOST_BODY:
        return None
    parts = urlsplit(words[1])
    body = await reader.readexactly(int(length))
    return Request(method=words[0], path=parts.path, query=parts.query, headers=headers, body=body)


async def _serve(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        request = await _read(reader)
        if request is not None:
            answer = handler(request)
            headers = {
                "Content-Type": answer.content_type,
                "Content-Length": str(len(answer.body)),
                "Cache-Control": "no-store",
                "Connection": "close",
                **answer.headers,
            }
            lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
            writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + answer.body)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """Serve on a free port of 127.0.0.1 until the context ends; its origin."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve(handler, reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
