"""A broker-like server with a fake backend over the real link, and the real helper process beside it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcp.client.stdio import StdioServerParameters
from mcp_types.methods import validate_server_result

from lomi.client.protocol import ProtocolBrokenError
from lomi.client.service import serve_calls
from lomi.core.backend import InvalidParams, ListedTool, Request, ToolList, ToolReply
from lomi.core.port import Picture
from lomi.link.connection import Connection
from lomi.link.limits import LAB
from lomi.link.server import Endpoint, serve
from lomi.mcp.wire_session import serve_mcp

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
ERAS = ("2025-11-25", "2026-07-28")
PICTURE = bytes(range(256)) * 4096
SCHEMA = b'{"type": "object",\n "additionalProperties": true}'
NAMES = ("lomi_status", "echo", "wait", "picture", "progress", "fault", "slow_print")


@dataclass
class FakeBackend:
    """Tools that show what reached the backend. `seen` holds (tool, raw arguments); `ends` how waits ended."""

    options: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    def listed(self) -> ToolList:
        return ToolList(
            tools=tuple(
                ListedTool(
                    name=name,
                    description=f"The {name} tool.",
                    input_schema=SCHEMA,
                    output_schema=SCHEMA,
                    read_only=True,
                    destructive=False,
                    open_world=False,
                )
                for name in NAMES
            ),
            digest="fake",
        )

    async def call(self, tool: str, arguments: bytes, *, request: Request) -> ToolReply:
        self.seen.append((tool, arguments))
        if tool not in NAMES:
            raise InvalidParams(f"unknown tool {tool}")
        if tool == "fault":
            raise RuntimeError("/a/secret/path")
        if tool == "slow_print":
            os.write(1, b"noise of a library\n")
            sys.stdout.write("more noise\n")
            sys.stdout.flush()
        if tool == "wait":
            await self._wait(request)
        if tool == "progress" and request.progress is not None:
            await request.progress(1, 2, "half")
            await request.progress(2, 2, None)
        said = {"tool": tool, "arguments": arguments.decode(), "options": self.options}
        return ToolReply(
            structured=json.dumps({"controlApiVersion": "1.0", "status": "ok", "data": said}, indent=1).encode(),
            text=f"{tool} é漢🙂",
            pictures=(Picture("image/png", PICTURE),) if tool == "picture" else (),
        )

    async def _wait(self, request: Request) -> None:
        self.waiting.set()
        try:
            await self.release.wait()
            self.ends.append("released")
        except asyncio.CancelledError:
            self.ends.append("cancelled" if request.cancelled.is_set() else "gone")
            raise
        finally:
            self.ended.set()


@asynccontextmanager
async def broker(home: Path, backend: FakeBackend, instance: str = "test") -> AsyncIterator[Endpoint]:
    """A listening broker in this process."""

    async def on_connection(connection: Connection) -> None:
        hello = await connection.greet("connected")
        backend.options = dict(hello.options)
        try:
            await (serve_mcp if hello.purpose == "mcp" else serve_calls)(connection, backend)
        except ProtocolBrokenError:
            return

    async with serve(home, instance, limits=LAB, on_connection=on_connection) as endpoint:
        yield endpoint


def helper_arguments(endpoint: Endpoint) -> list[str]:
    """Arguments of a helper that finds `endpoint`."""
    return ["--discovery-file", str(endpoint.discovery_path), "--discovery-key", endpoint.discovery_key]


def parameters(arguments: Iterable[str], **environment: str) -> StdioServerParameters:
    """How an agent host starts the helper."""
    return StdioServerParameters(
        command=sys.executable, args=["-m", "lomi.mcp.helper", *arguments], env={**os.environ, **environment}
    )


def message(method: str, params: dict[str, object] | None = None, number: object = None, era: str = ERAS[0]) -> bytes:
    """One line of a client of an era."""
    made: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        made["id"] = number
        if era == ERAS[1]:
            params = {**(params or {}), "_meta": {**META, **((params or {}).get("_meta") or {})}}  # type: ignore[dict-item]
    if params is not None:
        made["params"] = params
    return json.dumps(made).encode()


def call(tool: str, arguments: dict[str, object] | None = None, number: object = 1, era: str = ERAS[0]) -> bytes:
    """One line that calls a tool."""
    return message("tools/call", {"name": tool, "arguments": arguments or {}}, number, era)


def opening(era: str) -> list[bytes]:
    """The lines that open a session of an era."""
    if era == ERAS[1]:
        return []
    info = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return [message("initialize", info, "opening"), message("notifications/initialized")]


class RawHelper:
    """A helper process whose lines are written and read by hand. Every line it prints must be JSON-RPC."""

    def __init__(self, process: asyncio.subprocess.Process, era: str) -> None:
        self.process = process
        self.era = era
        self._methods: dict[object, str] = {}

    async def send(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        for line in lines:
            try:
                made = json.loads(line)
            except ValueError:
                made = {}
            if isinstance(made, dict) and "id" in made and isinstance(made.get("method"), str):
                self._methods[made["id"]] = made["method"]
            self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def receive(self) -> dict[str, object]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 40)
        assert line.endswith(b"\n"), "the helper closed its stdout"
        found = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        if "result" in found:
            validate_server_result(self._methods[found["id"]], self.era, found["result"])
        return found  # type: ignore[no-any-return]

    async def ask(self, line: bytes) -> dict[str, object]:
        """Send one request and return its answer, the next line."""
        await self.send(line)
        return await self.receive()

    async def rest(self) -> bytes:
        """What comes until stdout ends."""
        assert self.process.stdout is not None
        return await asyncio.wait_for(self.process.stdout.read(), 20)

    async def end(self) -> int:
        """Close stdin and wait for the exit."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), 10)


@asynccontextmanager
async def raw_helper(
    arguments: Iterable[str], era: str = ERAS[0], *, open_session: bool = True, **environment: str
) -> AsyncIterator[RawHelper]:
    """A helper process; with its session opened unless told otherwise."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lomi.mcp.helper",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=16 << 20,
        env={**os.environ, **environment},
    )
    helper = RawHelper(process, era)
    try:
        if open_session and era == ERAS[0]:
            first, second = opening(era)
            assert "result" in await helper.ask(first)
            await helper.send(second)
        yield helper
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # else it is closed by the collector, with a warning


def data_of(answer: dict[str, object]) -> dict[str, object]:
    """The envelope's data in an answer."""
    return answer["result"]["structuredContent"]["data"]  # type: ignore[index,no-any-return]
