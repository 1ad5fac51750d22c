"""Two kinds of real clients: the private socket, and MCP over the real helper. Each lives in a task of its own."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
from mcp import StdioServerParameters
from mcp.client import Client as McpClient
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from lomi.client.client import Client, connect
from lomi.client.errors import BrokerFaultError, ConnectionLostError, InvalidArgumentsError
from lomi.demo.broker import lomi_command
from rehearsal.place import Place

CALL_S = 60.0
Envelope = dict[str, object]
LOST: Envelope = {"status": "lost"}


class Speaker(Protocol):
    """Asks a tool and returns the envelope, or what came instead of one."""

    async def ask(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """One call."""


class SocketSpeaker:
    """Over the private socket."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """One call."""
        try:
            async with asyncio.timeout(CALL_S):
                reply = await self._client.call_raw(tool, msgspec.json.encode(arguments))
        except ConnectionLostError:
            return LOST
        except (InvalidArgumentsError, BrokerFaultError) as error:
            return {"status": "refused", "message": str(error)}
        return msgspec.json.decode(reply.structured, type=dict[str, object])


class McpSpeaker:
    """Over MCP, as an agent host would."""

    def __init__(self, client: McpClient) -> None:
        self._client = client

    async def ask(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """One call."""
        try:
            result = await self._client.call_tool(tool, dict(arguments), read_timeout_seconds=CALL_S)
        except MCPError as error:
            return {"status": "refused", "message": str(error)}
        said: Envelope = json.loads(json.dumps(result.structured_content or {}))
        # The helper that lost its broker says so in an envelope; on the socket the same is the end of the connection.
        return LOST if (said.get("code"), said.get("reason")) == ("CONTROL_REVOKED", "session_ended") else said


@asynccontextmanager
async def _opened(kind: str, name: str, place: Place) -> AsyncIterator[Speaker]:
    if kind == "mcp":
        command = lomi_command()
        environment = {
            **place.environment(),
            "LOMI_CLIENT_LABEL": name,
            "LOMI_CLIENT_TOKEN": place.tokens[name],
        }
        server = StdioServerParameters(command=command[0], args=[*command[1:], "mcp"], env=environment)
        async with McpClient(stdio_client(server), mode="auto") as spoken:
            yield McpSpeaker(spoken)
    else:
        file, key = place.broker()
        async with connect(file, key, label=name, token=place.tokens[name]) as client:
            yield SocketSpeaker(client)


class Member:
    """A client that can join and leave at any time, whatever order contexts would end in."""

    def __init__(self, name: str, kind: str, place: Place) -> None:
        self.name = name
        self.workspace = ""
        self.epoch = ""
        self._kind = kind
        self._place = place
        self._speaker: Speaker | None = None
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def joined(self) -> bool:
        """Whether it has a connection (which may be lost)."""
        return self._speaker is not None

    async def join(self, tasks: asyncio.TaskGroup) -> None:
        """Connect.

        Raises:
            ConnectionError: it could not.
        """
        await self.leave()
        ready: asyncio.Future[Speaker] = asyncio.get_running_loop().create_future()
        self._leaving = asyncio.Event()
        self._task = tasks.create_task(self._live(ready, self._leaving), name=f"client-{self.name}")
        self._speaker = await ready

    async def _live(self, ready: asyncio.Future[Speaker], leaving: asyncio.Event) -> None:
        async with _opened(self._kind, self.name, self._place) as speaker:
            ready.set_result(speaker)
            await leaving.wait()

    async def leave(self) -> None:
        """End the connection; nothing without one."""
        if self._task is not None:
            self._leaving.set()
            await self._task
        self._task = self._speaker = None

    async def ask(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """One call of this client."""
        if self._speaker is None:
            return LOST
        return await self._speaker.ask(tool, arguments)


async def owner_ask(place: Place, command: str, arguments: Mapping[str, object]) -> Envelope:
    """One of the owner's own commands, over a connection of its own."""
    file, key = place.broker()
    async with connect(file, key, label="lomi owner", options={"role": "owner"}) as client:
        return await SocketSpeaker(client).ask(f"owner.{command}", arguments)
