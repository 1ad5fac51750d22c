"""The emulator process: files, ports, boots and the end."""

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from emulator_images.paper import avd as avds
from emulator_images.paper import userdata
from emulator_images.paper.boot import Stage
from emulator_images.paper.console import Console, make_token
from emulator_images.paper.control.door import controlled
from emulator_images.paper.faults import Faults
from emulator_images.paper.flags import Flags
from emulator_images.paper.guests import Guests
from emulator_images.paper.journal import FILE_NAME, Journal
from emulator_images.paper.phone import Phone, Setup
from emulator_images.paper.running import announced
from emulator_images.paper.screen.description import load_apps
from emulator_images.paper.troubles import hold_pipes, run_troubles
from emulator_images.paper.wire.keys import PublicKey, trusted_keys
from emulator_images.paper.wire.services import Reverses, accepts, banner, serve
from emulator_images.paper.wire.transport import Connection, Doorkeeper, Stream

_FIRST_PORT, _LAST_PORT = 5554, 5584


class CannotStartError(Exception):
    """Raised when the emulator must give up; the text is the real emulator's."""


def run(flags: Flags, environment: Mapping[str, str], command_line: list[str]) -> int:
    """Run an emulator process to its end.

    Raises:
        CannotStartError: ports are taken.
        avds.UnknownAvdError: there is no such AVD.
        avds.AvdLockedError: another process runs it.
    """
    places = avds.directories(environment)
    avd = avds.load(places.avd_home, flags.avd)
    plan = environment.get("PAPER_FAULTS")
    faults = Faults.load(Path(plan)) if plan else Faults()
    if (early := faults.strikes("exit_early")) is not None:
        raise CannotStartError(early.text or "qcow2: Image is corrupt; cannot be opened read/write")
    with ExitStack() as stack:
        stack.enter_context(
            avds.locked(avd, read_only=flags.read_only, pretend_stale=faults.strikes("stale_lock") is not None)
        )
        console_socket, adb_socket = _bind(flags, taken=faults.strikes("port_taken") is not None)
        stack.callback(console_socket.close)
        stack.callback(adb_socket.close)
        ports = (console_socket.getsockname()[1], adb_socket.getsockname()[1])
        token = make_token(places.console_token)
        if flags.wipe_data:
            (avd.directory / FILE_NAME).unlink(missing_ok=True)
        journal = Journal.opened(avd.directory)
        stack.callback(journal.close)
        spools = avd.directory / "paper-data"
        if flags.read_only:
            spools = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paper-data-")))
        elif flags.wipe_data and spools.exists():
            shutil.rmtree(spools)
        spools.mkdir(exist_ok=True)
        setup = _setup(flags, environment, avd, faults, spools)
        discovery = stack.enter_context(
            announced(
                places.running,
                avd,
                console_port=ports[0],
                adb_port=ports[1],
                command_line=command_line,
                keep=faults.strikes("stale_pid_file") is not None,
            )
        )
        phone = Phone(setup, journal)
        userdata.restore(phone, spools)
        if not flags.read_only:
            stack.callback(userdata.save, phone, spools)
        doors = _Doors(phone, flags, trusted_keys(environment))
        console = Console(phone, places.console_token, token)

        async def live() -> None:
            async with controlled(phone, flags.grpc_port, discovery, jwt=flags.grpc_jwt):
                await _live(phone, doors, console, console_socket, adb_socket, environment)

        asyncio.run(live())
    return 0


def _setup(flags: Flags, environment: Mapping[str, str], avd: avds.Avd, faults: Faults, spools: Path) -> Setup:
    apps = load_apps(Path(__file__).parent / "apps")
    if environment.get("PAPER_APPS"):
        apps += load_apps(Path(environment["PAPER_APPS"]))
    return Setup(
        avd=avd,
        seed=int(environment.get("PAPER_SEED") or 1),
        profile=environment.get("PAPER_LATENCY") or "instant",
        faults=faults,
        apps=apps,
        monotonic=time.monotonic,
        spools=spools,
        timezone=flags.timezone or "UTC",
        locale=flags.locale or "en-US",
        properties=flags.properties,
    )


def _bind(flags: Flags, *, taken: bool) -> tuple[socket.socket, socket.socket]:
    pairs = (
        [(flags.console_port, flags.adb_port)]
        if flags.console_port is not None and flags.adb_port is not None
        else [(port, port + 1) for port in range(_FIRST_PORT, _LAST_PORT + 1, 2)]
    )
    for console_port, adb_port in pairs if not taken else []:
        console_socket = _listening(console_port)
        if console_socket is None:
            continue
        adb_socket = _listening(adb_port)
        if adb_socket is not None:
            return console_socket, adb_socket
        console_socket.close()
    raise CannotStartError("It seems too many emulator instances are running on this machine. Aborting.")


def _listening(port: int) -> socket.socket | None:
    # The protocol must be named: asyncio switches the delay of small packets off only where it sees TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
    except OSError:
        listener.close()
        return None
    return listener


class _Doors:
    """The adb side: takes connections and keeps them so that a fault or reboot can cut them."""

    def __init__(self, phone: Phone, flags: Flags, keys: frozenset[PublicKey]) -> None:
        self._phone = phone
        unauthorized = phone.faults.strikes("unauthorized")
        closed_for = 0.0 if unauthorized is None else unauthorized.seconds or float("inf")
        self._doorkeeper = Doorkeeper(
            keys,
            flags.skip_adb_auth,
            time.monotonic() + closed_for,
            time.monotonic,
            lambda: os.urandom(20),
            lambda _key: phone.record("stranger"),
        )
        self._connections: set[Connection] = set()
        self._silent_until = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One adb transport."""
        phone = self._phone
        if phone.faults.strikes("adb_silent") is not None:
            await reader.read()
            writer.close()
            return
        await phone.boot.reached(Stage.ADBD)
        await asyncio.sleep(max(0.0, self._silent_until - time.monotonic()))

        async def serve_stream(stream: Stream, service: str) -> None:
            if phone.faults.strikes("cut_connection") is not None:
                connection.cut()
                return
            await serve(phone, connection, reverses, stream, service)

        connection = Connection(
            reader,
            writer,
            doorkeeper=self._doorkeeper,
            banner=lambda: banner(phone),
            accepts=accepts,
            serve=serve_stream,
        )
        reverses = Reverses(connection)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            reverses.close()
            self._connections.discard(connection)

    def go_offline(self, seconds: float) -> None:
        """Drop every transport and answer no new one for a while."""
        self._silent_until = time.monotonic() + seconds
        self._phone.record("offline", seconds=seconds)
        self.cut_all()

    def cut_all(self) -> None:
        """Drop every transport."""
        for connection in list(self._connections):
            connection.cut()


async def _live(
    phone: Phone,
    doors: _Doors,
    console: Console,
    console_socket: socket.socket,
    adb_socket: socket.socket,
    environment: Mapping[str, str],
) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, _end, phone)
    if (held := phone.faults.strikes("held_pipes")) is not None:
        phone.record("child", pid=hold_pipes(held))
    async with asyncio.TaskGroup() as group:
        tasks = (
            group.create_task(_boots(phone, doors)),
            group.create_task(_announce(phone, adb_socket, environment)),
            group.create_task(run_troubles(phone, doors.go_offline, os._exit)),
        )
        guests = Guests(group, phone.stop_asked)
        console_server = await asyncio.start_server(guests.door(console.serve), sock=console_socket)
        adb_server = await asyncio.start_server(guests.door(doors.serve), sock=adb_socket)
        await phone.stop_asked.wait()
        console_server.close()
        adb_server.close()
        guests.let_go()
        for task in tasks:
            task.cancel()


def _end(phone: Phone) -> None:
    if phone.faults.strikes("ignored_term") is None:
        phone.stop_asked.set()


async def _boots(phone: Phone, doors: _Doors) -> None:
    while True:
        phone.reboot_asked.clear()
        await phone.run_boot()
        loop_fault = phone.faults.strikes("boot_loop")
        if loop_fault is not None:
            await asyncio.sleep(loop_fault.seconds or 0.3)
        else:
            await phone.reboot_asked.wait()
            await asyncio.sleep(0.05)  # let the answer to `reboot` out before the phone goes
        doors.cut_all()


async def _announce(phone: Phone, adb_socket: socket.socket, environment: Mapping[str, str]) -> None:
    """Tell an adb server of this phone at each start of its adbd, as the emulator does.

    Only one named by `ANDROID_ADB_SERVER_PORT`: a phone of ours never shows itself to the server on the usual port.
    """
    port = environment.get("ANDROID_ADB_SERVER_PORT", "")
    if not port.isdecimal():
        return
    message = f"host:emulator:{adb_socket.getsockname()[1]}"
    while True:
        await phone.boot.reached(Stage.ADBD)
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(f"{len(message):04x}{message}".encode())
            writer.close()
        await phone.boot.left(Stage.ADBD)
