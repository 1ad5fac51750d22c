"""The real helper process between a client and a broker over the real link."""

import asyncio
import base64
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_world import (
    ERAS,
    PICTURE,
    FakeBackend,
    RawHelper,
    broker,
    call,
    data_of,
    helper_arguments,
    message,
    opening,
    parameters,
    raw_helper,
)

from lomi.link.connection import Connection
from lomi.link.server import serve
from lomi.mcp.helper import _connecting, _parser
from lomi.mcp.wire_session import serve_mcp

each_era = pytest.mark.parametrize("era", ERAS)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_sdk_client(tmp_path: Path, mode: str) -> None:
    """The SDK's own client lists, calls, gets pictures and progress through the helper in both of its modes."""
    backend = FakeBackend()
    steps: list[tuple[float, float | None, str | None]] = []

    async def on_progress(done: float, total: float | None, text: str | None) -> None:
        steps.append((done, total, text))

    async with broker(tmp_path, backend) as endpoint:
        server = stdio_client(
            parameters([*helper_arguments(endpoint), "--profile", "qa", "--tools", "git,lomi_files_read"])
        )
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools(cache_mode="bypass")).tools
            assert [tool.name for tool in tools][:2] == ["lomi_status", "echo"]
            said = await client.call_tool("echo", {"text": "é漢🙂"})
            assert said.structured_content is not None
            assert json.loads(said.structured_content["data"]["arguments"]) == {"text": "é漢🙂"}
            assert said.structured_content["data"]["options"] == {"profile": "qa", "tools": "git,lomi_files_read"}
            assert said.content[0].text == "echo é漢🙂"
            picture = await client.call_tool("picture", {})
            assert base64.b64decode(picture.content[1].data) == PICTURE
            assert picture.content[1].mime_type == "image/png"
            await client.call_tool("progress", {}, progress_callback=on_progress)
            assert steps == [(1, 2, "half"), (2, 2, None)]
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("nothing", {})
            assert unknown.value.code == -32602


@each_era
async def test_answers_fit_the_era(tmp_path: Path, era: str) -> None:
    """Every kind of answer is valid for its era; a fault tells nothing of its inside; a cursor is refused."""
    async with broker(tmp_path, FakeBackend()) as endpoint, raw_helper(helper_arguments(endpoint), era) as helper:
        listed = await helper.ask(message("tools/list", number=1, era=era))
        assert len(listed["result"]["tools"]) == 7
        assert data_of(await helper.ask(call("echo", {"a": 1}, 2, era)))["tool"] == "echo"
        fault = await helper.ask(call("fault", {}, 3, era))
        assert fault["error"]["code"] == -32603
        assert "secret" not in json.dumps(fault)
        cursor = await helper.ask(message("tools/list", {"cursor": "x"}, 4, era))
        assert cursor["error"]["code"] == -32602
        other = await helper.ask(message("resources/list", number=5, era=era))
        assert other["error"]["code"] == -32601
        if era == ERAS[1]:
            found = await helper.ask(message("server/discover", number=6, era=era))
            assert found["result"]["capabilities"] == {"tools": {"listChanged": False}}
        assert await helper.end() == 0
        assert await helper.rest() == b""


@each_era
async def test_cancel_reaches_the_backend(tmp_path: Path, era: str) -> None:
    """A cancelled call ends with the client's wish visible to the backend, has no answer, and the session goes on."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint), era) as helper:
        await helper.send(call("wait", {}, 7, era))
        await asyncio.wait_for(backend.waiting.wait(), 10)
        await helper.send(message("notifications/cancelled", {"requestId": 7}))
        await asyncio.wait_for(backend.ended.wait(), 10)
        assert backend.ends == ["cancelled"]
        assert (await helper.ask(call("echo", {}, 8, era)))["id"] == 8


async def test_cancel_before_the_call_begins(tmp_path: Path) -> None:
    """A cancellation that comes in the same moment as its call leaves it unanswered; the next call works."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(
            call("wait", {}, 7), message("notifications/cancelled", {"requestId": 7}), call("echo", {}, 8)
        )
        assert (await helper.receive())["id"] == 8
        assert backend.ends in ([], ["cancelled"])


@each_era
async def test_end_of_input_is_no_cancellation(tmp_path: Path, era: str) -> None:
    """At the end of input a call under way is let go without a wish to cancel, and the helper exits at once."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint), era) as helper:
        await helper.send(call("wait", {}, 7, era))
        await asyncio.wait_for(backend.waiting.wait(), 10)
        assert await helper.end() == 0
        await asyncio.wait_for(backend.ended.wait(), 10)
        assert backend.ends == ["gone"]


async def test_quick_calls_answer_after_end_of_input(tmp_path: Path) -> None:
    """A script that writes its calls and closes stdin still gets its answers."""
    async with broker(tmp_path, FakeBackend()) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(*(call("echo", {"n": n}, n) for n in range(20)))
        assert await helper.end() == 0
        assert {json.loads(line)["id"] for line in (await helper.rest()).splitlines()} == set(range(20))


async def test_killed_helper_lets_its_calls_go(tmp_path: Path) -> None:
    """A helper that is killed in mid-call ends its session; the backend sees a loss, not a cancellation."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(call("wait", {}, 7))
        await asyncio.wait_for(backend.waiting.wait(), 10)
        helper.process.kill()
        await asyncio.wait_for(backend.ended.wait(), 10)
        assert backend.ends == ["gone"]


@each_era
async def test_bad_lines_are_answered(tmp_path: Path, era: str) -> None:
    """What is not JSON-RPC, names a key twice or is too long gets an error at once, and the session goes on."""
    backend = FakeBackend()
    head = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":'
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint), era) as helper:
        assert (await helper.ask(b"this is not JSON"))["error"]["code"] == -32700
        assert (await helper.ask(b'{"jsonrpc":"2.0","id":1,"method":"x\\ud800"}'))["error"]["code"] == -32700
        assert (await helper.ask(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'))["error"]["code"] == -32700
        opened = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"\xff"}}'
        assert (await helper.ask(opened))["error"]["code"] == -32700
        assert (await helper.ask(b"[]"))["error"]["code"] == -32600
        twice = await helper.ask(head + b'{"a":1,"b":[{"c":1,"c":2}]}}}')
        assert (twice["id"], twice["error"]["code"]) == (3, -32600)
        long = await helper.ask(head + b'{"a":"' + b"x" * 65530 + b'"}}}')
        assert (long["id"], long["error"]["code"]) == (3, -32602)
        assert (await helper.ask(head + b"[]}}"))["error"]["code"] == -32602
        largest = {"a": "x" * ((64 << 10) - len('{"a": ""}'))}
        assert "result" in await helper.ask(call("echo", largest, 4, era))
        assert [tool for tool, _ in backend.seen] == ["echo"]


async def test_raw_arguments(tmp_path: Path) -> None:
    """The backend gets the very bytes of the arguments, whatever their spacing and number format."""
    backend = FakeBackend()
    odd = b'{ "n" : 1.50e1 , "deep":{"x" :[ ]} }'
    line = b'{"params":{"arguments":' + odd + b',"name":"echo"},"method":"tools\\/call","id":"q","jsonrpc":"2.0"}'
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        assert (await helper.ask(line))["id"] == "q"
        assert backend.seen == [("echo", odd)]


async def test_order_of_arrival(tmp_path: Path) -> None:
    """Pipelined calls reach the backend in the order of their lines."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(*(call("echo", {"n": n}, n) for n in range(200)))
        for _ in range(200):
            await helper.receive()
        assert [json.loads(arguments)["n"] for _, arguments in backend.seen] == list(range(200))


async def test_order_of_arrival_in_pieces(tmp_path: Path) -> None:
    """Wherever the pipe cuts the lines, and whether their reader waits or not: each arrives once, whole, in order."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        assert helper.process.stdin is not None
        lines = [call("echo", {"n": n, "x": "y" * (n % 97)}, n) for n in range(300)]
        written, size = b"".join(line + b"\n" for line in lines), 0
        while written:
            size = size * 7 % 991 + 1
            helper.process.stdin.write(written[:size])
            await helper.process.stdin.drain()
            written = written[size:]
            await asyncio.sleep(0.001 if size % 3 else 0)
        answered = [json.loads(await _line(helper))["id"] for _ in lines]
        assert sorted(answered) == list(range(300))
        assert [json.loads(arguments)["n"] for _, arguments in backend.seen] == list(range(300))


async def _line(helper: RawHelper) -> bytes:
    assert helper.process.stdout is not None
    return await asyncio.wait_for(helper.process.stdout.readline(), 40)


@each_era
async def test_what_belongs_to_the_other_era_is_refused(tmp_path: Path, era: str) -> None:
    """The first request decides; a later one of the other era is told, and the session goes on."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint), era) as helper:
        assert data_of(await helper.ask(call("echo", {"n": 1}, 1, era)))["tool"] == "echo"
        stray = call("echo", {"n": 2}, 2, ERAS[1]) if era == ERAS[0] else opening(ERAS[0])[0]
        refused = await helper.ask(stray)
        assert refused["id"] == json.loads(stray)["id"]
        assert refused["error"]["code"] == (-32600 if era == ERAS[0] else -32022)
        assert data_of(await helper.ask(call("echo", {"n": 3}, 3, era)))["tool"] == "echo"
        assert [json.loads(arguments)["n"] for _, arguments in backend.seen] == [1, 3]


async def test_notification_flood(tmp_path: Path) -> None:
    """Ten thousand notifications of every kind delay a call and do nothing else."""
    flood = [
        message("notifications/progress", {"progressToken": 1, "progress": 1}),
        message("notifications/cancelled", {"requestId": "never sent"}),
        message("notifications/roots/list_changed"),
        message("notifications/made_up", {"x": 1}),
        b"",
    ]
    async with broker(tmp_path, FakeBackend()) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        for _ in range(20):
            await helper.send(*flood * 100)
        assert (await helper.ask(call("echo", {}, 1)))["id"] == 1


async def test_too_many_pending(tmp_path: Path) -> None:
    """The 1,025th request under way is refused by name; the others are not hurt."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(*(call("wait", {}, n) for n in range(1025)))
        refused = await helper.receive()
        assert (refused["id"], refused["error"]["code"]) == (1024, -32010)
        backend.release.set()
        assert {(await helper.receive())["id"] for _ in range(1024)} == set(range(1024))


async def test_id_under_way_is_refused(tmp_path: Path) -> None:
    """A second request with the id of one under way is refused without an id, and the first is answered once."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(call("wait", {}, 7))
        for again in (call("echo", {}, "7"), call("echo", {}, 7, ERAS[1])):
            refused = await helper.ask(again)
            assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        backend.release.set()
        assert (await helper.receive())["id"] == 7


async def test_half_a_line_then_silence(tmp_path: Path) -> None:
    """A line that does not end within 5 s of its first byte closes the input side, with a reason on the wire."""
    async with broker(tmp_path, FakeBackend()) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        assert helper.process.stdin is not None
        started = asyncio.get_running_loop().time()
        helper.process.stdin.write(b'{"jsonrpc":"2.0","id"')
        said = await helper.receive()
        assert 4.5 < asyncio.get_running_loop().time() - started < 15
        assert said["error"]["code"] == -32600
        assert await asyncio.wait_for(helper.process.wait(), 10) == 1


async def test_line_over_8_mib(tmp_path: Path) -> None:
    """A line over 8 MiB closes the input side before it is ever whole; one of 8 MiB is carried and judged."""
    async with broker(tmp_path, FakeBackend()) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        full = b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"'
        full += b"x" * ((8 << 20) - len(full) - 3) + b'"}}'
        assert len(full) == 8 << 20
        assert (await helper.ask(full))["error"]["code"] == -32602
        await helper.send(call("echo", {}, 6))
        assert (await helper.receive())["id"] == 6
        assert helper.process.stdin is not None
        helper.process.stdin.write(b"x" * ((8 << 20) + 2))
        assert (await helper.receive())["error"]["code"] == -32600
        assert await asyncio.wait_for(helper.process.wait(), 10) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_end_it_like_the_end_of_input(tmp_path: Path, number: signal.Signals) -> None:
    """A host that sends a signal instead of closing stdin gets a clean end; the call under way is let go."""
    backend = FakeBackend()
    async with broker(tmp_path, backend) as endpoint, raw_helper(helper_arguments(endpoint)) as helper:
        await helper.send(call("wait", {}, 1))
        await asyncio.wait_for(backend.waiting.wait(), 10)
        helper.process.send_signal(number)
        assert await asyncio.wait_for(helper.process.wait(), 10) == 0
        await asyncio.wait_for(backend.ended.wait(), 10)
        assert backend.ends == ["gone"]


async def test_a_client_that_stops_reading(tmp_path: Path) -> None:
    """When the client's end of stdout is gone the helper ends, though stdin is still open."""
    theirs, ours = os.pipe()
    async with broker(tmp_path, FakeBackend()) as endpoint:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lomi.mcp.helper",
            *helper_arguments(endpoint),
            stdin=asyncio.subprocess.PIPE,
            stdout=ours,
        )
        os.close(ours)
        assert process.stdin is not None
        process.stdin.write(opening(ERAS[0])[0] + b"\n")
        assert await asyncio.to_thread(os.read, theirs, 1 << 16)
        os.close(theirs)
        process.stdin.write(message("ping", number=2) + b"\n")
        assert await asyncio.wait_for(process.wait(), 10) == 0
        process._transport.close()  # type: ignore[attr-defined]


async def test_a_file_as_input(tmp_path: Path) -> None:
    """A file as stdin works as a pipe does: its calls are answered, then the helper ends."""
    script = tmp_path / "script"
    script.write_bytes(b"\n".join([*opening(ERAS[0]), *(call("echo", {"n": n}, n) for n in range(3)), b""]))
    async with broker(tmp_path, FakeBackend()) as endpoint:
        with script.open("rb") as stdin:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "lomi.mcp.helper",
                *helper_arguments(endpoint),
                stdin=stdin,
                stdout=asyncio.subprocess.PIPE,
            )
        said, _ = await asyncio.wait_for(process.communicate(), 20)
        assert [json.loads(line)["id"] for line in said.splitlines()] == ["opening", 0, 1, 2]


async def test_no_input_at_all(tmp_path: Path) -> None:
    """With /dev/null as stdin, as a service gets it, the helper ends at once and in good order."""
    async with broker(tmp_path, FakeBackend()) as endpoint:
        command = (sys.executable, "-m", "lomi.mcp.helper", *helper_arguments(endpoint))
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe)
        assert await asyncio.wait_for(process.communicate(), 20) == (b"", b"")
        assert process.returncode == 0


async def test_the_token_is_proven_and_not_sent(tmp_path: Path) -> None:
    """The client token reaches the broker as a proof only, and is gone from the helper's environment."""
    proofs: list[bool] = []

    async def on_connection(connection: Connection) -> None:
        hello = await connection.greet("connected")
        proofs.append(connection.proves(hello, hashlib.sha256(b"a secret").digest()))
        proofs.append(connection.proves(hello, hashlib.sha256(b"another").digest()))
        assert b"a secret" not in repr(hello).encode()
        assert connection.label == "my label"
        await serve_mcp(connection, FakeBackend())

    environment = {"LOMI_CLIENT_TOKEN": "a secret", "LOMI_CLIENT_LABEL": "my label"}
    async with (
        serve(tmp_path, "test", on_connection=on_connection) as endpoint,
        raw_helper(helper_arguments(endpoint), **environment) as helper,
    ):
        assert "result" in await helper.ask(message("ping", number=1))
        assert proofs == [True, False]


def test_reading_the_token_takes_it_away() -> None:
    """Nothing that the helper starts can find the token in its environment."""
    environment = {"LOMI_CLIENT_TOKEN": "a secret", "PATH": "/bin"}
    _connecting(_parser().parse_args([]), environment)
    assert environment == {"PATH": "/bin"}
