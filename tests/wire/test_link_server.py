"""Where the broker listens, how many it lets in, and what it leaves behind."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from link_peers import INSTANCE, Broker, broker, client, raw_client, short_directory, until

from lomi.disk.refusal import DiskRefusedError
from lomi.link.client import connect
from lomi.link.connection import Connection
from lomi.link.discovery import read
from lomi.link.errors import EnrolmentRefusedError, LinkError, SocketPathTooLongError
from lomi.link.frames import Frame, Kind
from lomi.link.limits import DESKTOP, LAB
from lomi.link.server import serve


@pytest.fixture
def runtime() -> Iterator[Path]:
    """Where the socket's directory goes."""
    with short_directory() as place:
        yield place


async def answers(running: Broker) -> bool:
    """Whether the broker can be found and echoes."""
    async with client(running) as connection:
        await connection.send(Frame(Kind.MCP, b"?"))
        return await connection.receive() == Frame(Kind.MCP, b"?")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_there(path: str) -> bool:
    return Path(path).exists()


class TestPlace:
    """Socket and discovery file."""

    async def test_the_socket_is_ours_alone(self, tmp_path: Path, runtime: Path) -> None:
        """Below the runtime directory, 0700 and 0600; at the end socket, directory and discovery file are gone."""
        async with broker(tmp_path / "home", runtime) as running:
            path = running.endpoint.socket_path
            assert path.name == "control.sock"
            assert path.parent.parent == runtime
            assert path.parent.name.startswith("lomi-control-")
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert read(running.endpoint.discovery_path, running.endpoint.discovery_key).endpoint == str(path)
        assert not path.parent.exists()
        assert [entry.name for entry in (tmp_path / "home" / "agent-control").iterdir()] == ["registration-key.pk8"]

    @pytest.mark.parametrize("setting", [None, "", "relative", "/nowhere/at/all"])
    async def test_without_a_runtime_directory_it_is_the_temp_directory(
        self, tmp_path: Path, runtime: Path, setting: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When XDG_RUNTIME_DIR is unset or unusable the socket goes below the temp directory."""
        monkeypatch.setattr(tempfile, "tempdir", str(runtime))
        environment = {} if setting is None else {"XDG_RUNTIME_DIR": setting}
        async with serve(
            tmp_path / "home", INSTANCE, on_connection=Broker().serve, environment=environment
        ) as endpoint:
            assert endpoint.socket_path.parent.parent == runtime

    async def test_a_too_long_path_is_a_clear_refusal(
        self, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When no directory is short enough, the error says how long, how much is allowed and what to set."""
        deep = runtime / ("d" * 60) / ("e" * 40)
        deep.mkdir(parents=True)
        monkeypatch.setattr(tempfile, "tempdir", str(deep))
        with pytest.raises(SocketPathTooLongError) as caught:
            async with serve(
                tmp_path / "home", INSTANCE, on_connection=Broker().serve, environment={"XDG_RUNTIME_DIR": str(deep)}
            ):
                pass
        assert caught.value.reason == "socket_path_too_long"
        assert caught.value.length > caught.value.limit == 107
        assert "XDG_RUNTIME_DIR or TMPDIR" in str(caught.value)
        assert list(deep.iterdir()) == []
        deep.rmdir()
        deep.parent.rmdir()

    async def test_a_long_runtime_directory_gives_way_to_a_short_temp_directory(
        self, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One candidate that is too long does not keep the other from serving; 107 bytes exactly still fit."""
        rest = 107 - len(os.fsencode(runtime)) - len("//lomi-control-0123456789abcdef/control.sock")
        exact = runtime / ("e" * rest)
        longer = runtime / ("e" * (rest + 1))
        for place in (exact, longer):
            place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(runtime))
        async with broker(tmp_path / "home", exact) as running:
            assert len(os.fsencode(running.endpoint.socket_path)) == 107
            assert await answers(running)
        async with broker(tmp_path / "home", longer) as running:
            assert running.endpoint.socket_path.parent.parent == runtime
        for place in (exact, longer):
            place.rmdir()

    @pytest.mark.parametrize("way", ["socket", "directory", "moved"])
    async def test_a_vanished_name_comes_back(self, tmp_path: Path, runtime: Path, way: str) -> None:
        """When a cleaner takes the socket's name, the broker binds and publishes anew; sessions do not notice."""
        async with broker(tmp_path / "home", runtime) as running, client(running) as before:
            endpoint = running.endpoint
            old = endpoint.socket_path
            if way == "moved":
                old.parent.rename(runtime / "elsewhere")
            else:
                old.unlink()
            if way == "directory":
                old.parent.rmdir()
            async with asyncio.timeout(20):
                await until(lambda: endpoint.socket_path != old and endpoint.discovery_path.exists())
                await until(lambda: read(endpoint.discovery_path, endpoint.discovery_key).endpoint != str(old))
            assert await answers(running)
            await before.send(Frame(Kind.MCP, b"still here"))
            assert await before.receive() == Frame(Kind.MCP, b"still here")
            if way == "moved":
                (runtime / "elsewhere" / "control.sock").unlink()
                (runtime / "elsewhere").rmdir()
            assert not await endpoint.ensure()

    async def test_a_vanished_discovery_file_comes_back_on_demand(self, tmp_path: Path, runtime: Path) -> None:
        """`ensure` publishes a discovery file that somebody deleted."""
        async with broker(tmp_path / "home", runtime) as running:
            running.endpoint.discovery_path.unlink()
            assert await running.endpoint.ensure()
            assert await answers(running)

    async def test_a_name_that_cannot_be_bound_again_is_a_fault_and_not_the_end(
        self, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Sessions go on when the socket can't come back; the fault is there to be shown, and mends on demand."""
        async with broker(tmp_path / "home", runtime) as running, client(running) as before:
            deep = runtime / ("d" * 90)
            deep.mkdir()
            monkeypatch.setattr(tempfile, "tempdir", str(deep))
            running.endpoint._environment = {}
            running.endpoint.socket_path.unlink()
            async with asyncio.timeout(20):
                await until(lambda: running.endpoint.fault is not None)
            assert isinstance(running.endpoint.fault, SocketPathTooLongError)
            await before.send(Frame(Kind.MCP, b"still here"))
            assert await before.receive() == Frame(Kind.MCP, b"still here")
            monkeypatch.setattr(tempfile, "tempdir", str(runtime))
            assert await running.endpoint.ensure()
            assert running.endpoint.fault is None
            assert await answers(running)
            deep.rmdir()

    async def test_a_later_broker_keeps_its_discovery_file(self, tmp_path: Path, runtime: Path) -> None:
        """An earlier instance that stops late removes nothing of the later one's."""
        async with contextlib.AsyncExitStack() as earlier:
            await earlier.enter_async_context(broker(tmp_path / "home", runtime))
            async with broker(tmp_path / "home", runtime, instance="instance-2") as later:
                await earlier.aclose()
                assert await answers(later)

    async def test_a_state_directory_that_others_can_write_is_refused(self, tmp_path: Path, runtime: Path) -> None:
        """The control directory is ours alone or not used."""
        (tmp_path / "home" / "agent-control").mkdir(parents=True)
        (tmp_path / "home" / "agent-control").chmod(0o777)
        with pytest.raises(DiskRefusedError):
            async with broker(tmp_path / "home", runtime):
                pass


class TestBounds:
    """Connections and handshakes."""

    async def test_the_desktop_refuses_one_handshake_too_many(self, tmp_path: Path, runtime: Path) -> None:
        """With four handshakes open the fifth client is refused at once and told why; a place that frees is given."""
        async with contextlib.AsyncExitStack() as stack:
            running = await stack.enter_async_context(broker(tmp_path / "home", runtime, limits=DESKTOP))
            async with contextlib.AsyncExitStack() as idle:
                for _ in range(4):
                    await idle.enter_async_context(raw_client(running.endpoint.socket_path))
                await until(lambda: running.endpoint.gate.connections == 4)
                with pytest.raises(EnrolmentRefusedError) as caught:
                    await answers(running)
                assert caught.value.reason == "handshakes_full"
                assert running.endpoint.gate.refused == 1
            await until(lambda: running.endpoint.gate.connections == 0)
            assert await answers(running)

    async def test_the_lab_lets_handshakes_queue(self, tmp_path: Path, runtime: Path) -> None:
        """A client over the bound waits for its turn, and is refused only after its time in the queue."""
        limits = LAB._replace(max_handshakes=1)
        async with (
            broker(tmp_path / "home", runtime, limits=limits) as running,
            raw_client(running.endpoint.socket_path) as idle,
        ):
            await until(lambda: running.endpoint.gate.connections == 1)
            async with asyncio.TaskGroup() as tasks:
                waiting = [tasks.create_task(answers(running)) for _ in range(5)]
                await until(lambda: running.endpoint.gate.connections == 6)
                assert not any(task.done() for task in waiting)
                idle.writer.transport.abort()
            assert all(task.result() for task in waiting)
        async with (
            broker(tmp_path / "home", runtime, limits=limits._replace(handshake_queue_seconds=0.05)) as running,
            raw_client(running.endpoint.socket_path),
        ):
            await until(lambda: running.endpoint.gate.connections == 1)
            with pytest.raises(EnrolmentRefusedError) as caught:
                await answers(running)
            assert caught.value.reason == "handshakes_full"

    async def test_one_connection_too_many_is_refused(self, tmp_path: Path, runtime: Path) -> None:
        """The bound on connections counts live ones; the one over it learns the reason; the others are untouched."""
        async with (
            broker(tmp_path / "home", runtime, limits=DESKTOP._replace(max_connections=2)) as running,
            client(running) as first,
        ):
            async with client(running):
                for _ in range(3):
                    with pytest.raises(EnrolmentRefusedError) as caught:
                        await answers(running)
                    assert caught.value.reason == "connections_full"
            await until(lambda: running.endpoint.gate.connections == 1)
            assert await answers(running)
            await first.send(Frame(Kind.MCP, b"x"))
            await first.receive()

    async def test_many_clients_at_once(self, tmp_path: Path, runtime: Path) -> None:
        """Forty clients that arrive together under the lab's bounds are all served."""
        async with broker(tmp_path / "home", runtime, limits=LAB) as running:
            async with asyncio.TaskGroup() as tasks:
                serving = [tasks.create_task(answers(running)) for _ in range(40)]
            assert all(task.result() for task in serving)
            assert len({connection.client_sha256 for connection in running.accepted}) == 40

    async def test_descriptors_do_not_pile_up(self, tmp_path: Path, runtime: Path) -> None:
        """After good, broken and refused connections no more descriptors are open than before."""
        async with broker(tmp_path / "home", runtime) as running:
            await answers(running)
            await until(lambda: running.endpoint.gate.connections == 0)
            before = open_descriptors()
            for _ in range(10):
                await answers(running)
                async with raw_client(running.endpoint.socket_path) as broken:
                    await broken.announce()
                    await broken.acknowledged()
                    await broken.send_bytes(b"no TLS at all, and more than a record header")
                    await broken.is_cut_off()
                async with raw_client(running.endpoint.socket_path):
                    pass
            async with asyncio.timeout(20):
                await until(lambda: open_descriptors() == before)


class TestEnds:
    """Stopping, crashing and going away."""

    async def test_stopping_ends_every_connection(self, tmp_path: Path, runtime: Path) -> None:
        """Live sessions, half-open handshakes and fresh connections all end with the broker."""
        async with contextlib.AsyncExitStack() as stack:
            running = await stack.enter_async_context(broker(tmp_path / "home", runtime))
            async with client(running) as live, raw_client(running.endpoint.socket_path) as half:
                await half.announce()
                await half.acknowledged()
                async with raw_client(running.endpoint.socket_path) as fresh:
                    await until(lambda: running.endpoint.gate.connections == 3)
                    async with asyncio.timeout(10):
                        await stack.aclose()
                    assert [frame async for frame in live.frames()] == []
                    assert await half.is_cut_off()
                    assert await fresh.is_cut_off()

    async def test_a_client_that_breaks_the_framing_ends_only_itself(self, tmp_path: Path, runtime: Path) -> None:
        """A breach after the hello cuts that client off; another one is served on."""
        async with broker(tmp_path / "home", runtime) as running, client(running) as good:
            for breach in (b"\xff" * 4, b"\0\0\0\0", b"\0\0\0\x02\x09x", b"\0\0\0\x02\x02x"):
                running.ended.clear()
                async with raw_client(running.endpoint.socket_path) as bad:
                    await bad.enrol()
                    await bad.hello()
                    await bad.send_clear(Frame(Kind.MCP, b"x"))
                    await bad.read_frame()
                    await bad.send_bytes(breach)
                    assert await bad.is_cut_off()
                await running.ended.wait()
                await good.send(Frame(Kind.MCP, b"x"))
                assert await good.receive() == Frame(Kind.MCP, b"x")
            assert running.ends == ["frame_too_large", "frame_empty", "frame_kind_unknown", "binary_without_header"]

    async def test_an_error_of_the_broker_is_not_swallowed(self, tmp_path: Path, runtime: Path) -> None:
        """What `on_connection` raises besides a refusal ends the broker visibly, and everything is cleaned up."""

        async def fail(connection: Connection) -> None:
            await connection.greet("connected")
            raise ZeroDivisionError

        async def serve_until_failure() -> None:
            environment = {"XDG_RUNTIME_DIR": str(runtime)}
            async with serve(tmp_path / "home", INSTANCE, on_connection=fail, environment=environment) as endpoint:
                with contextlib.suppress(LinkError):
                    async with connect(endpoint.discovery_path, endpoint.discovery_key, label="x") as connection:
                        await connection.receive()
                await asyncio.Event().wait()

        with pytest.raises(ExceptionGroup) as caught:
            await serve_until_failure()
        assert caught.group_contains(ZeroDivisionError)

    async def test_an_error_of_the_caller_comes_out_as_it_is(self, tmp_path: Path, runtime: Path) -> None:
        """What the body of `serve` raises is not wrapped in a group."""
        with pytest.raises(ZeroDivisionError):
            async with broker(tmp_path / "home", runtime):
                raise ZeroDivisionError

    async def test_a_killed_broker_leaves_nothing_for_long(self, tmp_path: Path, runtime: Path) -> None:
        """After kill -9 clients find nobody; the next broker of the same state removes the dead socket."""
        program = (
            "import asyncio, pathlib, sys\n"
            "from lomi.link.server import serve\n"
            "async def main():\n"
            "    async def on_connection(connection): pass\n"
            "    async with serve(pathlib.Path(sys.argv[1]), 'killed-1', on_connection=on_connection) as endpoint:\n"
            "        print(endpoint.socket_path, endpoint.discovery_key, flush=True)\n"
            "        await asyncio.Event().wait()\n"
            "asyncio.run(main())\n"
        )
        home = tmp_path / "home"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            str(home),
            stdout=subprocess.PIPE,
            env=os.environ | {"XDG_RUNTIME_DIR": str(runtime)},
        )
        assert process.stdout is not None
        socket_path, key = (await process.stdout.readline()).decode().split()
        process.send_signal(signal.SIGKILL)
        await process.wait()
        assert is_there(socket_path)
        with pytest.raises(LinkError) as caught:
            async with connect(home.resolve() / "agent-control" / "discovery.json", key, label="x"):
                pass
        assert caught.value.reason == "socket_absent"
        async with broker(home, runtime) as running:
            assert not is_there(str(Path(socket_path).parent))
            assert running.endpoint.discovery_key == key
            assert await answers(running)


def test_the_client_side_starts_light() -> None:
    """What a helper imports to connect holds no X.509 library, no msgspec, no ctypes and nothing of the server."""
    program = "import sys, json, lomi.link.client; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    loaded = set(json.loads(shown.stdout))
    heavy = {
        "cryptography.x509",
        "cryptography.hazmat.primitives.serialization",
        "msgspec",
        "ctypes",
        "tempfile",
        "dataclasses",
        "lomi.link.server",
        "lomi.link.place",
    }
    assert not loaded & heavy
