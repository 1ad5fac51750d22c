"""A broker-like server as a process of its own, to be killed: prints one line when ready, ends with its stdin.

usage: mcp_broker_process.py HOME INSTANCE
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp_world import FakeBackend, broker


async def main(home: Path, instance: str) -> None:
    """Serve until stdin ends."""
    async with broker(home, FakeBackend(), instance) as endpoint:
        sys.stdout.write(json.dumps([str(endpoint.discovery_path), endpoint.discovery_key]) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
