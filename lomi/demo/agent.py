"""The agent: the SDK's own MCP client over stdio, which starts `lomi mcp` as any agent host would."""

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import ImageContent, TextContent

from lomi.demo.record import CallRecord, DemoFailedError
from lomi.demo.reply import Reply

CALL_S = 60.0
"""A call that takes longer is lost; the slowest of the demo, a phone's boot, has a wait of 15 s."""

Heard = Callable[[CallRecord], None]


class Agent:
    """Calls tools one after the other and writes each down. Fills in what every call of a session repeats."""

    def __init__(self, client: Client, heard: Heard, since: float, clock: Callable[[], float]) -> None:
        self._client = client
        self._heard = heard
        self._since = since
        self._clock = clock
        self._count = 0
        self._revision = "0"
        self._epoch = ""
        self.workspace = ""

    @property
    def era(self) -> str:
        """The protocol revision that client and server agreed on."""
        return self._client.protocol_version

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Reply:
        """Call a tool with exactly these arguments.

        Raises:
            DemoFailedError: the tool refused, or its receipt did not settle as succeeded.
        """
        self._count += 1
        number, started = self._count, self._clock()
        try:
            result = await self._client.call_tool(tool, dict(arguments), read_timeout_seconds=CALL_S)
        except MCPError as error:
            raise DemoFailedError(f"{tool}: {error}") from error
        took = self._clock() - started
        envelope = result.structured_content or {}
        reply = Reply(
            tool=tool,
            data=envelope.get("data") or {},
            text="\n".join(block.text for block in result.content if isinstance(block, TextContent)),
            pictures=tuple(base64.b64decode(b.data) for b in result.content if isinstance(b, ImageContent)),
        )
        record = CallRecord(
            number=number,
            tool=tool,
            arguments=arguments,
            started_s=started - self._since,
            took_s=took,
            text=reply.text,
            is_error=bool(result.is_error),
            receipt=reply.receipt,
            observed=reply.observed,
            settled=reply.settled,
        )
        self._heard(record)
        if result.is_error:
            raise DemoFailedError(f"{tool} was refused: {' | '.join(reply.text.splitlines()[:3])}")
        if reply.receipt is not None and (reply.receipt.state, reply.receipt.effect_state) != ("succeeded", "complete"):
            raise DemoFailedError(f"{tool} did not succeed: {' | '.join(reply.text.splitlines()[:3])}")
        revision = reply.at("observation", "domainRevision") or reply.at("domainRevision")
        self._revision = revision if isinstance(revision, str) else self._revision
        return reply

    async def reread(self) -> Reply:
        """Read the layout's revision again, after a change that was not this agent's own act."""
        return await self.call("lomi_workspace_list", {})

    async def connect(self) -> None:
        """Find the workspace and begin to write: the two calls with which each session starts."""
        listed = await self.reread()
        rows = listed.rows("items")
        if not rows:
            raise DemoFailedError("no workspace is granted")
        self.workspace = str(rows[0]["id"])
        connected = await self.call("lomi_connect", {"workspaceId": self.workspace})
        self._epoch = connected.word("retryEpoch")

    async def read(self, tool: str, **arguments: object) -> Reply:
        """Call a tool that only looks."""
        return await self.call(tool, {"workspaceId": self.workspace, **arguments})

    async def sequenced(self, tool: str, **arguments: object) -> Reply:
        """Call a tool whose retry identity is in its own arguments (a phone's input)."""
        return await self.read(tool, retryEpoch=self._epoch, **arguments)

    async def keyed(self, tool: str, **arguments: object) -> Reply:
        """Call a tool that acts, under a request key of its own."""
        return await self.sequenced(tool, requestKey=f"demo-{self._count + 1}", **arguments)

    async def revised(self, tool: str, **arguments: object) -> Reply:
        """Call a tool that acts against the revision of the layout that was last seen."""
        return await self.keyed(tool, expectedRevision=self._revision, **arguments)


@asynccontextmanager
async def opened_agent(
    command: list[str], environment: Mapping[str, str], heard: Heard, since: float, clock: Callable[[], float]
) -> AsyncIterator[Agent]:
    """Start the helper and speak MCP with it; it ends with the context."""
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(environment))
    async with Client(stdio_client(server), mode="auto") as client:
        yield Agent(client, heard, since, clock)
