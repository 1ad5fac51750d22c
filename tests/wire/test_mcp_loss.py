"""The helper without a broker, with one that comes later, and with one that dies."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp_world import (
    ERAS,
    FakeBackend,
    RawHelper,
    broker,
    call,
    data_of,
    helper_arguments,
    message,
    raw_helper,
)

each_era = pytest.mark.parametrize("era", ERAS)


@asynccontextmanager
async def broker_process(
    home: Path, instance: str = "first"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, list[str]]]:
    """A broker in a process of its own, and the arguments of a helper that finds it."""
    # One that is killed leaves its socket behind: it goes with this folder.
    with tempfile.TemporaryDirectory(prefix="lw-") as runtime:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("mcp_broker_process.py")),
            str(home),
            instance,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "XDG_RUNTIME_DIR": runtime},
        )
        try:
            assert process.stdout is not None
            file, key = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
            yield process, ["--discovery-file", file, "--discovery-key", key]
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            process._transport.close()  # type: ignore[attr-defined]


def code_of(answer: dict[str, object]) -> str:
    """The code of an error envelope."""
    result = answer["result"]
    assert result["isError"]  # type: ignore[index]
    return result["structuredContent"]["code"]  # type: ignore[index,no-any-return]


async def _revoked(helper: RawHelper, era: str) -> None:
    """Everything answers CONTROL_REVOKED; the list is still there."""
    for number, tool in enumerate(("lomi_status", "lomi_diagnostics", "lomi_connect"), start=100):
        assert code_of(await helper.ask(call(tool, {}, number, era))) == "CONTROL_REVOKED"
    assert "result" in await helper.ask(message("tools/list", number=200, era=era))


@each_era
async def test_without_a_broker(tmp_path: Path, era: str) -> None:
    """Without a broker status and diagnostics say so and what to do, every other tool is APP_UNAVAILABLE."""
    async with raw_helper([], era, LOMI_HOME=str(tmp_path / "home")) as helper:
        listed = await helper.ask(message("tools/list", number=1, era=era))
        assert "lomi_connect" in {tool["name"] for tool in listed["result"]["tools"]}
        status = data_of(await helper.ask(call("lomi_status", {}, 2, era)))
        assert status["connection"] == "app_unavailable"
        assert "lomi up" in str(status["limitations"])
        assert "lomi up" in str(data_of(await helper.ask(call("lomi_diagnostics", {}, 3, era)))["nextStep"])
        assert code_of(await helper.ask(call("lomi_connect", {"workspaceId": "w1"}, 4, era))) == "APP_UNAVAILABLE"
        assert (await helper.ask(call("made_up", {}, 5, era)))["error"]["code"] == -32602
        assert (await helper.ask(call("lomi_status", {"wait": 1}, 6, era)))["error"]["code"] == -32602
        assert await helper.end() == 0
    assert not (tmp_path / "home").exists()


@each_era
async def test_a_broker_that_starts_later(tmp_path: Path, era: str) -> None:
    """A session that began without a broker goes on in one that starts later, and waiting for it ends at once."""
    backend = FakeBackend()
    async with raw_helper([], era, LOMI_HOME=str(tmp_path)) as helper:
        assert code_of(await helper.ask(call("lomi_connect", {"workspaceId": "w1"}, 1, era))) == "APP_UNAVAILABLE"
        await helper.send(call("lomi_status", {"waitMs": 30000}, 2, era))
        # Lines are handled in order: after this answer the wait has begun.
        assert (await helper.ask(message("tools/list", number="begun", era=era)))["id"] == "begun"
        async with broker(tmp_path, backend):
            status = await helper.receive()
            assert (status["id"], data_of(status)["connection"]) == (2, "connecting")
            assert data_of(await helper.ask(call("echo", {"x": 1}, 3, era)))["tool"] == "echo"
            assert len((await helper.ask(message("tools/list", number=4, era=era)))["result"]["tools"]) == 7
            await helper.send(call("wait", {}, 5, era))
            await asyncio.wait_for(backend.waiting.wait(), 10)
        assert code_of(await helper.receive()) == "CONTROL_REVOKED"
        await _revoked(helper, era)
        assert await helper.end() == 0


@each_era
async def test_broker_killed_in_mid_call(tmp_path: Path, era: str) -> None:
    """What a killed broker left unanswered and everything after it is CONTROL_REVOKED; a new broker changes nothing."""
    async with broker_process(tmp_path) as (process, arguments), raw_helper(arguments, era) as helper:
        await helper.send(call("wait", {}, 1, era), call("wait", {}, 2, era), call("wait", {}, 3, era))
        await helper.send(message("notifications/cancelled", {"requestId": 2}))
        assert data_of(await helper.ask(call("echo", {}, 4, era)))["tool"] == "echo"
        process.kill()
        answers = [await helper.receive(), await helper.receive()]
        assert {answer["id"] for answer in answers} == {1, 3}
        assert {code_of(answer) for answer in answers} == {"CONTROL_REVOKED"}
        async with broker(tmp_path, FakeBackend(), "second"):
            await _revoked(helper, era)
            assert await helper.end() == 0


async def test_broker_that_was_killed_before(tmp_path: Path) -> None:
    """The file a killed broker left behind leads nowhere, and the helper says that it has stopped."""
    async with broker_process(tmp_path) as (process, arguments):
        process.kill()
        await process.wait()
        async with raw_helper(arguments) as helper:
            status = data_of(await helper.ask(call("lomi_status", {}, 1)))
            assert status["connection"] == "app_unavailable"
            assert "has stopped" in str(status["limitations"])


async def test_a_discovery_file_of_another_key(tmp_path: Path) -> None:
    """A helper registered with another key uses nothing of the file, and names the reason."""
    async with broker(tmp_path, FakeBackend()) as endpoint:
        arguments = ["--discovery-file", str(endpoint.discovery_path), "--discovery-key", "00" * 32]
        async with raw_helper(arguments) as helper:
            status = data_of(await helper.ask(call("lomi_status", {}, 1)))
            assert status["connection"] == "app_unavailable"
            assert "signature_invalid" in str(status["limitations"])


async def test_home_and_endpoint_arguments(tmp_path: Path) -> None:
    """LOMI_HOME alone finds its own broker, and so do socket, instance and pin."""
    async with broker(tmp_path, FakeBackend()) as endpoint:
        async with raw_helper([], LOMI_HOME=str(tmp_path)) as helper:
            assert data_of(await helper.ask(call("echo", {}, 1)))["tool"] == "echo"
        direct = ["--endpoint", str(endpoint.socket_path), "--instance", endpoint.instance_id]
        async with raw_helper([*direct, "--broker-sha256", endpoint.broker_sha256]) as helper:
            assert data_of(await helper.ask(call("echo", {}, 1)))["tool"] == "echo"


async def test_stray_prints_never_reach_the_client(tmp_path: Path) -> None:
    """Libraries and children in the helper that print all the time leave every line of its stdout valid."""
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(
        "import os, subprocess, threading\n"
        "def shout():\n"
        "    while os.fstat(1).st_ino != os.fstat(2).st_ino:\n"
        "        pass\n"
        "    for n in range(200):\n"
        "        print('noise', n, flush=True)\n"
        "        os.write(1, b'raw noise\\n')\n"
        "    subprocess.run(['echo', 'noise of a child'], check=True)\n"
        "    open(os.environ['NOISE_DONE'], 'w').close()\n"
        "threading.Thread(target=shout, daemon=True).start()\n"
    )
    done = tmp_path / "done"
    async with broker(tmp_path / "home", FakeBackend()) as endpoint:
        environment = {"PYTHONPATH": os.pathsep.join([str(noise), *sys.path]), "NOISE_DONE": str(done)}
        async with raw_helper(helper_arguments(endpoint), **environment) as helper:
            number = 0
            while not done.exists():
                number += 1
                assert (await helper.ask(call("slow_print", {}, number)))["id"] == number
            assert await helper.end() == 0
            assert await helper.rest() == b""


@pytest.mark.parametrize(
    "arguments", [["--instance", "x"], ["--discovery-file", "/x"], ["--what"], ["--profile", "x"], ["--tools", "x"]]
)
async def test_bad_arguments(arguments: list[str]) -> None:
    """Half a pair of arguments, an unknown one, profile or tool ends with a usage message and code 2."""
    async with raw_helper(arguments, open_session=False) as helper:
        assert await helper.rest() == b""
        assert await helper.process.wait() == 2


async def test_version() -> None:
    """`--version` prints one line and touches nothing."""
    async with raw_helper(["--version"], open_session=False) as helper:
        assert (await helper.rest()).startswith(b"lomi-mcp ")
        assert await helper.process.wait() == 0
