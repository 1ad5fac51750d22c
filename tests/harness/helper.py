"""A real MCP client over the real helper process."""

import contextlib
import sys
from collections.abc import AsyncIterator

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from harness.world import World


def helper_parameters(world: World, *arguments: str, label: str = "qa", **environment: str) -> StdioServerParameters:
    """How an agent host starts the helper."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "lomi.mcp.helper", *arguments],
        env=world.environment(LOMI_CLIENT_LABEL=label, **environment),
    )


@contextlib.asynccontextmanager
async def mcp_agent(world: World, *arguments: str, label: str = "qa", **environment: str) -> AsyncIterator[Client]:
    """The SDK's client, connected through a helper of this world."""
    async with Client(stdio_client(helper_parameters(world, *arguments, label=label, **environment))) as client:
        yield client
