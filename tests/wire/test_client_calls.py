"""The Python client against the broker's end of a `calls` connection, over the real link."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from mcp_world import PICTURE, FakeBackend, broker

from lomi.client.client import Client, connect
from lomi.client.errors import BrokerFaultError, ConnectionLostError, InvalidArgumentsError, ToolError
from lomi.client.protocol import encode_request
from lomi.contract.codes import ErrorCode
from lomi.core.backend import Request, ToolReply
from lomi.link.client import connect as connect_link
from lomi.link.errors import BrokerAbsentError, ChannelClosedError
from lomi.link.frames import Frame, Kind


class Said(msgspec.Struct):
    """What the fake backend says."""

    tool: str
    arguments: str
    options: dict[str, str]


@asynccontextmanager
async def connected(home: Path, backend: FakeBackend) -> AsyncIterator[Client]:
    """A client of a broker of our own."""
    async with (
        broker(home, backend) as endpoint,
        connect(endpoint.discovery_path, endpoint.discovery_key, label="tests", options={"a": "b"}) as client,
    ):
        yield client


async def test_call(tmp_path: Path) -> None:
    """A call brings typed data, its short text, and pictures byte for byte."""
    async with connected(tmp_path, FakeBackend()) as client:
        assert client.welcome.phase == "connected"
        answer = await client.call("picture", {"text": "é漢🙂"})
        said = answer.read(Said)
        assert (said.tool, json.loads(said.arguments), said.options) == ("picture", {"text": "é漢🙂"}, {"a": "b"})
        assert answer.plain()["tool"] == "picture"
        assert answer.text == "picture é漢🙂"
        assert [picture.content for picture in answer.pictures] == [PICTURE]


async def test_many_at_once(tmp_path: Path) -> None:
    """Calls on one connection overtake a waiting one, each gets its own answer, and they begin in order."""
    backend = FakeBackend()
    async with connected(tmp_path, backend) as client, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(client.call("wait", {}))
        many = [tasks.create_task(client.call("echo", {"n": n})) for n in range(100)]
        for n, task in enumerate(many):
            assert json.loads((await task).read(Said).arguments) == {"n": n}
        assert not waiting.done()
        assert [json.loads(raw).get("n") for _, raw in backend.seen] == [None, *range(100)]
        backend.release.set()
        assert (await waiting).read(Said).tool == "wait"


async def test_error_envelope(tmp_path: Path) -> None:
    """An error envelope is raised with its code, reason, field, hint and details."""

    class Refusing(FakeBackend):
        async def call(self, tool: str, arguments: bytes, *, request: Request) -> ToolReply:
            said = {"code": "TARGET_BUSY", "message": "m", "reason": "r", "field": "/a", "hint": "h"}
            envelope = {"controlApiVersion": "1.0", "status": "error", **said, "details": {"have": 3}}
            return ToolReply(structured=json.dumps(envelope).encode(), text="t", is_error=True)

    async with connected(tmp_path, Refusing()) as client:
        with pytest.raises(ToolError) as raised:
            await client.call("echo", {})
        error = raised.value
        assert (error.code, error.reason, error.field, error.hint) == (ErrorCode.TARGET_BUSY, "r", "/a", "h")
        assert error.details is not None
        assert error.details.have == 3
        assert (await client.call_raw("echo", b"{}")).is_error


async def test_refused_and_failed_calls(tmp_path: Path) -> None:
    """Bad arguments and faults behind the backend cost their call only, and a fault tells nothing of its inside."""
    async with connected(tmp_path, FakeBackend()) as client:
        with pytest.raises(InvalidArgumentsError, match="unknown tool nothing"):
            await client.call("nothing", {})
        with pytest.raises(InvalidArgumentsError, match="64 KiB"):
            await client.call("echo", {"x": "x" * 65536})
        for bad in (b'{"a":1,"a":2}', b"[]", b'{"a":"\\ud800"}'):
            with pytest.raises(InvalidArgumentsError):
                await client.call_raw("echo", bad)
        with pytest.raises(BrokerFaultError) as fault:
            await client.call("fault", {})
        assert "secret" not in str(fault.value)
        assert (await client.call("echo", {})).read(Said).tool == "echo"


async def test_too_large_an_answer(tmp_path: Path) -> None:
    """An answer over 8 MiB is an error of its call and ends nothing."""
    backend = FakeBackend()
    async with connected(tmp_path, backend) as client:
        await client.call("echo", {})
        backend.options = {"large": "x" * (8 << 20)}
        with pytest.raises(BrokerFaultError, match="too_large"):
            await client.call("echo", {})
        backend.options = {}
        assert (await client.call("echo", {})).read(Said).tool == "echo"


async def test_cancel(tmp_path: Path) -> None:
    """Cancelling the wait reaches the backend as the client's wish; the connection goes on."""
    backend = FakeBackend()
    async with connected(tmp_path, backend) as client, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(client.call("wait", {}))
        await asyncio.wait_for(backend.waiting.wait(), 10)
        waiting.cancel()
        await asyncio.wait_for(backend.ended.wait(), 10)
        assert backend.ends == ["cancelled"]
        assert (await client.call("echo", {})).read(Said).tool == "echo"


async def test_leaving_is_no_cancellation(tmp_path: Path) -> None:
    """A client that goes away lets its calls go without a wish to cancel them."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint:
        async with connect_link(endpoint.discovery_path, endpoint.discovery_key, label="tests") as wire:
            await wire.send(encode_request("r1", "wait", b"{}"))
            await asyncio.wait_for(backend.waiting.wait(), 10)
        await asyncio.wait_for(backend.ended.wait(), 10)
        assert backend.ends == ["gone"]


async def test_loss(tmp_path: Path) -> None:
    """When the broker ends, calls under way and later ones raise CONTROL_REVOKED."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint:
        place, key = endpoint.discovery_path, endpoint.discovery_key
        async with connect(place, key, label="tests") as client, asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(_lost(client))
            await asyncio.wait_for(backend.waiting.wait(), 10)
            for connection in list(endpoint._serving):
                connection.cancel()
            await waiting
            with pytest.raises(ConnectionLostError) as raised:
                await client.call("echo", {})
            assert raised.value.code is ErrorCode.CONTROL_REVOKED
    with pytest.raises(BrokerAbsentError):
        async with connect(place, key, label="tests"):
            pass


async def _lost(client: Client) -> None:
    with pytest.raises(ConnectionLostError):
        await client.call("wait", {})


@pytest.mark.parametrize(
    "frames",
    [
        [Frame(Kind.JSON, b"{}")],
        [Frame(Kind.JSON, b"not JSON")],
        [Frame(Kind.JSON, b'{"ipcVersion":2,"requestId":"a","request":{"tool":"echo","arguments":{}}}')],
        [Frame(Kind.JSON, b'{"ipcVersion":1,"requestId":"","request":{"tool":"echo","arguments":{}}}')],
        [Frame(Kind.JSON, b'{"ipcVersion":1,"requestId":"a","request":{"tool":"echo","arguments":{}},"x":1}')],
        [Frame(Kind.CANCEL, b"[]")],
        [Frame(Kind.MCP, b"{}")],
        [encode_request("a", "wait", b"{}"), encode_request("a", "wait", b"{}")],
    ],
)
async def test_broken_protocol_ends_the_connection(tmp_path: Path, frames: list[Frame]) -> None:
    """What is not of the protocol ends that connection and no other."""
    async with broker(tmp_path, FakeBackend()) as endpoint:
        place, key = endpoint.discovery_path, endpoint.discovery_key
        async with connect(place, key, label="other") as other, connect_link(place, key, label="tests") as wire:
            for frame in frames:
                await wire.send(frame)
            with pytest.raises(ChannelClosedError):
                await asyncio.wait_for(wire.receive(), 10)
            assert (await other.call("echo", {})).read(Said).tool == "echo"


async def test_bounded(tmp_path: Path) -> None:
    """The 1,025th call under way is refused; the others are answered."""
    backend = FakeBackend()
    async with connected(tmp_path, backend) as client, asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(client.call("wait", {})) for _ in range(1024)]
        await asyncio.wait_for(backend.waiting.wait(), 10)
        with pytest.raises(BrokerFaultError, match="too_many"):
            await client.call("echo", {})
        backend.release.set()
        assert {(await task).read(Said).tool for task in waiting} == {"wait"}
