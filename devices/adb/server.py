"""An adb server of our own: a child on a private unix socket with its own key, unknown to every other adb."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import adbutils
import msgspec

from devices import processes
from devices.adb.wire import AdbClient, Row
from devices.faults import ChannelLost
from devices.tasks import background
from devices.world import Child, OutputTail, World
from lomi.core.processes import ProcessName, is_alive, name_of
from lomi.disk.private import private_directory, read_private, write_private
from lomi.disk.refusal import DiskRefusedError

_SOCKET_LIMIT = 107
_START_S = 10.0


def bundled_adb() -> Path:
    """The adb binary inside the adbutils wheel, by absolute path; PATH is never searched."""
    return Path(adbutils.__file__).resolve().parent / "binaries" / "adb"


class AdbServer:
    """A running server of ours; made by `serve`.

    `user_home` holds `adbkey` and `adbkey.pub`: emulators that are given it as ANDROID_USER_HOME trust this server and
    no other. `rows` is the newest device list; `changed` is set and replaced whenever it changes.
    """

    def __init__(self, binary: Path, directory: Path, user_home: Path) -> None:
        self.binary = binary
        self.socket_path = directory / "adb.sock"
        self.user_home = user_home
        self.client = AdbClient(self.socket_path)
        self.process: ProcessName | None = None
        self.rows: tuple[Row, ...] = ()
        self._listeners: set[Callable[[tuple[Row, ...]], None]] = set()

    @property
    def runtime_directory(self) -> Path:
        """A 0700 directory of ours for the discovery files of emulators."""
        return self.socket_path.parent / "run"

    @property
    def home(self) -> Path:
        """The HOME that our emulators are given; consoles keep their token below it."""
        return self.user_home.parent

    def state_of(self, serial: str) -> str | None:
        """The state of a device in the newest list, None when it is not listed."""
        return next((row.state for row in self.rows if row.serial == serial), None)

    @asynccontextmanager
    async def listening(self, listener: Callable[[tuple[Row, ...]], None]) -> AsyncIterator[None]:
        """Call `listener` with the current list and after every change while inside."""
        self._listeners.add(listener)
        listener(self.rows)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def wait_state(self, serial: str, wanted: Callable[[str | None], bool]) -> str | None:
        """Wait until the device's state satisfies `wanted`; bound it with `asyncio.timeout`."""
        hit = asyncio.Event()

        def look(rows: tuple[Row, ...]) -> None:
            if wanted(next((row.state for row in rows if row.serial == serial), None)):
                hit.set()

        async with self.listening(look):
            await hit.wait()
        return self.state_of(serial)

    async def follow(self) -> None:
        """Keep `rows` true for as long as the server lives; one task of `serve` does this."""
        try:
            async for rows in self.client.track():
                self._publish(rows)
        except ChannelLost:
            pass
        self._publish(())

    def _publish(self, rows: tuple[Row, ...]) -> None:
        self.rows = rows
        for listener in tuple(self._listeners):
            listener(rows)


@asynccontextmanager
async def serve(
    state: Path, *, world: World, binary: Path | None = None, environment: Mapping[str, str] | None = None
) -> AsyncIterator[AdbServer]:
    """Run our adb server while inside; `state` becomes a 0700 directory with the socket, the key and the log place.

    A server that an earlier life of ours left in `state` is ended first, if its recorded pid and start time prove it.

    Raises:
        ChannelLost: the server does not come up, with the tail of its output as evidence.
        ChannelLost: the socket path would be longer than the system allows (socket_path_too_long).
    """
    adb = (binary or bundled_adb()).resolve()
    server = await asyncio.to_thread(_prepared, adb, state)
    record = state / "server.json"
    await _end_earlier(record, world)
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(server.user_home.parent),
        "TMPDIR": str(state),
        "ANDROID_USER_HOME": str(server.user_home),
        "ADB_VENDOR_KEYS": str(server.user_home / "adbkey"),
        "ADB_MDNS": "0",
        "ADB_USB": "0",
        "ADB_EMU": "0",
        "ADB_REJECT_KILL_SERVER": "1",
        **(environment or {}),
    }
    await _ensure_key(adb, server.user_home, variables, world)
    run = _Run(server, variables, record, world)
    await run.begin()
    try:
        async with background() as group:
            keeper = group.create_task(run.keep(), name="adb-server")
            try:
                yield server
            finally:
                keeper.cancel()
    finally:
        await run.end()
        server.socket_path.unlink(missing_ok=True)
        record.unlink(missing_ok=True)


class _Run:
    """The server's process: begun, followed, and begun again when it dies."""

    def __init__(self, server: AdbServer, variables: Mapping[str, str], record: Path, world: World) -> None:
        self._server = server
        self._variables = variables
        self._record = record
        self._world = world
        self._child: Child | None = None

    async def begin(self) -> None:
        """Start the process and wait until it answers.

        Raises:
            ChannelLost: it does not, with the tail of its output as evidence.
        """
        server = self._server
        server.socket_path.unlink(missing_ok=True)
        async with OutputTail(16384) as tail:
            argv = (str(server.binary), "-L", f"localfilesystem:{server.socket_path}", "server", "nodaemon")
            directory = server.socket_path.parent
            child = self._child = await self._world.spawn(
                argv, environment=self._variables, output=tail.child_end, directory=directory
            )
            tail.handed_over()
            server.process = name_of(child.pid)
            try:
                if server.process is not None:
                    await asyncio.to_thread(_remember, self._record, server.process)
                await _await_socket(server, lambda: child.returncode is not None, tail, self._world)
            except BaseException:
                await self.end()
                raise

    async def keep(self) -> None:
        """Follow the server; when it is lost, end what is left of it and start another, without haste."""
        pause = 0.05
        while True:
            began = self._world.monotonic()
            await self._server.follow()
            await self.end()
            if self._world.monotonic() - began > 60:
                pause = 0.05
            await self._world.sleep(pause)
            pause = min(pause * 2, 5.0)
            try:
                await self.begin()
            except ChannelLost:
                continue

    async def end(self) -> None:
        """End the process and reap it."""
        child, self._child = self._child, None
        name, self._server.process = self._server.process, None
        if name is not None:
            await processes.end_processes((name,), world=self._world, term_s=3.0, kill_s=3.0)
        if child is not None:
            await child.wait()


def _prepared(adb: Path, state: Path) -> AdbServer:
    server = AdbServer(adb, state, state / "home" / ".android")
    for directory in (server.user_home, server.runtime_directory):
        private_directory(directory)
    if len(os.fsencode(server.socket_path)) > _SOCKET_LIMIT:
        raise ChannelLost(
            "socket_path_too_long", f"adb's socket path is longer than {_SOCKET_LIMIT} bytes: {server.socket_path}"
        )
    return server


async def _ensure_key(adb: Path, user_home: Path, variables: Mapping[str, str], world: World) -> None:
    key = user_home / "adbkey"
    if key.exists() and key.with_suffix(".pub").exists():
        return
    async with OutputTail() as tail:
        argv = (str(adb), "keygen", str(key))
        child = await world.spawn(argv, environment=variables, output=tail.child_end, directory=user_home)
        tail.handed_over()
        if await child.wait() != 0 or not key.exists():
            raise ChannelLost("channel_lost", "adb keygen failed", evidence=tail.text())
    key.chmod(0o600)


async def _await_socket(server: AdbServer, ended: Callable[[], bool], tail: OutputTail, world: World) -> None:
    end = world.monotonic() + _START_S
    while True:
        try:
            await server.client.ask("host:version")
        except ChannelLost as fault:
            if ended() or world.monotonic() > end:
                raise ChannelLost("channel_lost", "our adb server did not start", evidence=tail.text()) from fault
            await world.sleep(0.005)
        else:
            return


def _remember(record: Path, name: ProcessName) -> None:
    write_private(record, msgspec.json.encode(name))


async def _end_earlier(record: Path, world: World) -> None:
    try:
        name = msgspec.json.decode(await asyncio.to_thread(read_private, record, 4096), type=ProcessName)
    except (DiskRefusedError, OSError, msgspec.DecodeError):
        return
    if is_alive(name):
        processes.send_signal(name, signal.SIGTERM)
        await processes.wait_gone((name,), within=3.0, world=world)
        await processes.end_processes((name,), world=world, term_s=0.1, kill_s=3.0)
