"""The blocking client, from plain threads."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mcp_world import FakeBackend, broker

from lomi.client.blocking import BlockingClient, connect_blocking
from lomi.client.errors import ConnectionLostError, InvalidArgumentsError
from lomi.link.errors import BrokerAbsentError


async def test_calls_from_threads(tmp_path: Path) -> None:
    """Threads share one connection, each gets its own answer, and nothing of it is left afterwards."""
    async with broker(tmp_path, FakeBackend()) as endpoint:

        def use() -> list[int]:
            with connect_blocking(endpoint.discovery_path, endpoint.discovery_key, label="tests") as client:
                assert client.welcome.phase == "connected"
                with pytest.raises(InvalidArgumentsError):
                    client.call("nothing", {})

                def one(n: int) -> int:
                    said = json.loads(str(client.call("echo", {"n": n}).plain()["arguments"]))
                    return int(said["n"])

                with ThreadPoolExecutor(8) as pool:
                    return list(pool.map(one, range(50)))

        assert await asyncio.to_thread(use) == list(range(50))
    assert "lomi-client" not in {thread.name for thread in threading.enumerate()}


async def test_loss_and_absence(tmp_path: Path) -> None:
    """A lost connection raises CONTROL_REVOKED in the waiting thread; an absent broker raises at once."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint:
        place, key = endpoint.discovery_path, endpoint.discovery_key

        def use() -> None:
            with connect_blocking(place, key, label="tests") as client:
                with pytest.raises(ConnectionLostError):
                    client.call("wait", {})
                _still_lost(client)

        async with asyncio.TaskGroup() as tasks:
            using = tasks.create_task(asyncio.to_thread(use))
            await asyncio.wait_for(backend.waiting.wait(), 20)
            for connection in list(endpoint._serving):
                connection.cancel()
            await using

    def fail() -> None:
        with pytest.raises(BrokerAbsentError), connect_blocking(place, key, label="tests"):
            pass

    await asyncio.to_thread(fail)


def _still_lost(client: BlockingClient) -> None:
    with pytest.raises(ConnectionLostError):
        client.call("echo", {})
