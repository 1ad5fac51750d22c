"""The session alone: no line of any client may end it, only its own end of input."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from mcp_world import ERAS, META, FakeBackend, call, message, opening

from lomi.link.errors import ChannelClosedError
from lomi.mcp.session import serve

ODD_VALUES: list[object] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    -(10**30),
    "",
    "x" * 5000,
    [],
    {},
    [[[]]],
    {"a": {"b": []}},
    {"progressToken": 10**30},
    {"progressToken": None},
    {"progressToken": [1]},
    {"progressToken": True},
    {"io.modelcontextprotocol/protocolVersion": "1999-01-01"},
    {"io.modelcontextprotocol/protocolVersion": 7},
    {**META, "io.modelcontextprotocol/clientCapabilities": 7},
    {**META, "io.modelcontextprotocol/clientInfo": []},
    {**META, "io.modelcontextprotocol/logLevel": "shout"},
]
METHODS = ["tools/call", "tools/list", "initialize", "ping", "server/discover", "notifications/cancelled", "x", ""]


def odd_lines() -> list[bytes]:
    """Well-formed JSON that a confused or hostile client might send."""
    lines = []
    for number, value in enumerate(ODD_VALUES):
        for method in METHODS:
            lines.append({"jsonrpc": "2.0", "id": f"{method}{number}", "method": method, "params": value})
            lines.append({"jsonrpc": "2.0", "method": method, "params": {"requestId": value, "_meta": value}})
            lines.append({"jsonrpc": "2.0", "id": f"m{method}{number}", "method": method, "params": {"_meta": value}})
        lines.append({"jsonrpc": "2.0", "id": value, "method": "ping"})
        lines.append({"jsonrpc": value, "id": 1, "method": "ping"})
        params = {"name": value, "arguments": value}
        lines.append({"jsonrpc": "2.0", "id": f"n{number}", "method": "tools/call", "params": params})
        params = {"name": "progress", "arguments": {}, "_meta": value}
        lines.append({"jsonrpc": "2.0", "id": f"p{number}", "method": "tools/call", "params": params})
        lines.append({"jsonrpc": "2.0", "id": f"r{number}", "result": value})
    deep = b'{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"echo","arguments":{"a":%b}}}'
    depths = [deep % (b"[" * depth + b"]" * depth) for depth in (100, 480, 900, 990, 5000)]
    return [json.dumps(line).encode() for line in lines] + depths


@pytest.mark.parametrize("era", ERAS)
async def test_no_line_ends_the_session(era: str) -> None:
    """After every odd line an ordinary call is answered, every answer is one line of JSON-RPC, and none comes twice."""
    answers: list[dict[str, object]] = []
    done = asyncio.Event()

    async def lines() -> AsyncIterator[bytes]:
        for line in opening(era):
            yield line
        if era == ERAS[1]:
            yield message("server/discover", {}, "opening", era)
        for line in odd_lines():
            yield line
        yield call("echo", {}, "last", era)
        await asyncio.wait_for(done.wait(), 20)

    async def send(line: bytes) -> None:
        assert b"\n" not in line
        answers.append(json.loads(line))
        if answers[-1].get("id") == "last":
            done.set()

    await serve(lines(), send, FakeBackend())
    last = next(answer for answer in answers if answer.get("id") == "last")
    assert "result" in last
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    named = [answer["id"] for answer in answers if answer.get("id") is not None]
    repeated = {number for number in named if named.count(number) > 1}
    assert repeated <= {1, "deep", 0, -1, ""}, "ids that the odd lines themselves use more than once"


async def test_a_client_that_is_gone_is_no_fault() -> None:
    """Answers that can't be sent any more end nothing but themselves."""

    async def lines() -> AsyncIterator[bytes]:
        for line in opening(ERAS[0]):
            yield line
        yield b"not JSON"
        yield call("echo", {}, 1)
        yield call("progress", {}, 2)
        yield call("fault", {}, 3)

    async def send(line: bytes) -> None:
        raise ChannelClosedError

    await asyncio.wait_for(serve(lines(), send, FakeBackend()), 10)


async def test_too_large_an_answer() -> None:
    """An answer over 8 MiB becomes an error, since no line may be longer."""
    backend = FakeBackend()
    answers: list[dict[str, object]] = []

    async def lines() -> AsyncIterator[bytes]:
        for line in opening(ERAS[0]):
            yield line
        backend.options = {"large": "x" * (8 << 20)}
        yield call("echo", {}, 1)

    async def send(line: bytes) -> None:
        answers.append(json.loads(line))

    await serve(lines(), send, backend)
    assert answers[-1]["error"]["code"] == -32603  # type: ignore[index]
