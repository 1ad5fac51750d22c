"""A broker-like server as a process of its own, to be killed: prints one line when ready, ends with its stdin.

usage: mcp_broker_process.py HOME INSTANCE [catalogue]; with `catalogue` it lists the real tools.
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp_world import FakeBackend, broker

from lomi.contract.profiles import select
from lomi.core.backend import ToolList
from lomi.core.tool_list import tool_list


class CatalogueBackend(FakeBackend):
    """Lists the real tools."""

    def listed(self) -> ToolList:
        """All of them."""
        return tool_list(select())


async def main(home: Path, instance: str, *, catalogue: bool) -> None:
    """Serve until stdin ends."""
    backend = CatalogueBackend() if catalogue else FakeBackend()
    async with broker(home, backend, instance) as endpoint:
        sys.stdout.write(json.dumps([str(endpoint.discovery_path), endpoint.discovery_key]) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], catalogue=sys.argv[3:] == ["catalogue"]))
