"""The local web server of the demo: one small form, one popup, and a log of every request that reached it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qsl

_MOST_BODY = 64 * 1024
_STATUS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it reached the server."""

    method: str
    path: str
    fields: dict[str, str]
    agent: str = ""


@dataclass(slots=True, kw_only=True)
class Site:
    """The server's own log, and where it listens."""

    log: Path
    origin: str = ""
    requests: list[Request] = field(default_factory=list)

    def note(self, request: Request) -> None:
        """Append one request to the log."""
        self.requests.append(request)
        line = {"method": request.method, "path": request.path, "fields": request.fields}
        with self.log.open("a", encoding="utf-8") as target:
            target.write(json.dumps(line, ensure_ascii=False) + "\n")


def _page(name: str, /, **words: str) -> str:
    """The head that all pages share, and what this one says."""
    parts = (
        files("lomi.demo").joinpath("pages", f"{part}.html").read_text(encoding="utf-8") for part in ("head", name)
    )
    text = "".join(parts)
    for word, value in words.items():
        text = text.replace(f"[[{word}]]", escape(value))
    return text


def answer(request: Request) -> tuple[int, str]:
    """Status and document of a request."""
    match (request.method, request.path):
        case ("GET", "/"):
            return 200, _page("form")
        case ("GET", "/terms"):
            return 200, _page("terms")
        case ("POST", "/sign-up"):
            return 200, _page("thanks", name=request.fields.get("name", ""), email=request.fields.get("email", ""))
        case ("GET" | "POST", _):
            return 404, _page("missing")
        case _:
            return 405, _page("missing")


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ")
    if len(words) != 3:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    length = headers.get("content-length", "0")
    body = await reader.readexactly(min(int(length), _MOST_BODY)) if length.isdecimal() else b""
    fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    return Request(method=words[0], path=words[1].partition("?")[0], fields=fields, agent=headers.get("user-agent", ""))


async def _serve(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        request = await _read(reader)
        if request is not None:
            site.note(request)
            status, document = answer(request)
            body = document.encode()
            head = (
                f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def opened_site(log: Path) -> AsyncIterator[Site]:
    """Listen on a free port of 127.0.0.1; ends with the context."""
    site = Site(log=log)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _serve(site, reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        site.origin = f"http://127.0.0.1:{port}"
        yield site
