"""Loopback HTTP in front of a stdio MCP server, for a suite that speaks only HTTP. Tests only; the product has no port.

A process for each session of the handshake era, one for all requests of the envelope era. What is HTTP's own (headers,
event streams, Origin) is hardly there: those scenarios are not about our server.
"""

import asyncio
import itertools
import json
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_STATUS = {-32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
_MODERN_KEY = "io.modelcontextprotocol/protocolVersion"
_ENVELOPE = {_MODERN_KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Server:
    """One stdio server process; requests get ids of our own, so that clients can't collide."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, object]]] = {}

    async def read(self) -> None:
        """Hand answers to those who wait."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            waiting = self._waiting.pop(message.get("id"), None) if "method" not in message else None
            if waiting is not None:
                waiting.set_result(message)

    async def ask(self, message: dict[str, object]) -> dict[str, object]:
        """The answer to one request, under the request's own id."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self.tell({**message, "id": number})
        return {**await asyncio.wait_for(self._waiting[number], 20), "id": message["id"]}

    async def tell(self, message: dict[str, object]) -> None:
        """Send one message that has no answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()


class Bridge:
    """The HTTP endpoint `/mcp`."""

    def __init__(self, command: Sequence[str], tasks: asyncio.TaskGroup, processes: AsyncExitStack) -> None:
        self._command = command
        self._tasks = tasks
        self._processes = processes
        self._sessions: dict[str, Server] = {}
        self._modern: Server | None = None

    async def answer(self, request: Request) -> Response:
        """One HTTP request."""
        if request.method == "DELETE":
            return Response(status_code=200 if self._sessions.pop(_session_of(request), None) else 404)
        if request.method != "POST":
            return Response(status_code=405)
        try:
            message = json.loads(await request.body())
        except ValueError:
            error = {"code": -32700, "message": "not JSON"}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=400)
        session = _session_of(request)
        if session and session not in self._sessions:
            return Response(status_code=404)
        headers = {}
        if session:
            server = self._sessions[session]
        elif message.get("method") == "initialize" and _MODERN_KEY not in (message.get("params") or {}).get(
            "_meta", {}
        ):
            session, server = uuid.uuid4().hex, await self._start()
            self._sessions[session] = server
            headers = {"mcp-session-id": session}
        else:
            server = await self._envelope_era()
        if "id" not in message:
            await server.tell(message)
            return Response(status_code=202)
        answer = await server.ask(message)
        error = answer.get("error")
        modern = server is self._modern and isinstance(error, dict)
        return JSONResponse(answer, _STATUS.get(error["code"], 200) if modern else 200, headers)  # type: ignore[index]

    async def _envelope_era(self) -> Server:
        if self._modern is None:
            server = await self._start()
            # On a stream the first request decides the era; over HTTP each request stands alone.
            await server.ask({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": _ENVELOPE}})
            self._modern = server
        return self._modern

    async def _start(self) -> Server:
        return await self._processes.enter_async_context(self._process())

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[Server]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, limit=16 << 20)
        server = Server(process)
        reading = self._tasks.create_task(server.read())
        try:
            yield server
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
            await reading


def _session_of(request: Request) -> str:
    return request.headers.get("mcp-session-id", "")


@asynccontextmanager
async def bridge(command: Sequence[str]) -> AsyncIterator[str]:
    """Serve `command` under the URL that this yields."""
    listener = socket.create_server(("127.0.0.1", 0))
    async with asyncio.TaskGroup() as tasks, AsyncExitStack() as processes:
        route = Route("/mcp", Bridge(command, tasks, processes).answer, methods=["GET", "POST", "DELETE"])
        config = uvicorn.Config(Starlette(routes=[route]), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        serving = tasks.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await serving


async def main(command: Sequence[str]) -> None:
    """Serve until stdin ends."""
    async with bridge(command) as url:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
