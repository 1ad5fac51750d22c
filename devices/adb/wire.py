"""The adb host protocol over our server's unix socket: length-prefixed requests, OKAY or FAIL, then a raw stream."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from devices.faults import ChannelLost

_ROW = re.compile(r"^(?P<serial>\S+)[ \t]+(?P<state>no permissions|[a-z]+)\b(?P<rest>.*)$")
_STATES = frozenset(
    (
        "authorizing",
        "bootloader",
        "connecting",
        "detached",
        "device",
        "host",
        "no permissions",
        "offline",
        "recovery",
        "rescue",
        "sideload",
        "unauthorized",
    )
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the server's device list."""

    serial: str
    state: str


def parse_rows(text: str) -> tuple[Row, ...]:
    """Read a device list, ignoring titles, `*` daemon lines and version noise; a repeated serial counts once."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        if line.startswith(("*", "List of devices", "adb ", "error:")):
            continue
        match = _ROW.match(line)
        if match and match["state"] in _STATES:
            rows[match["serial"]] = Row(match["serial"], match["state"])
    return tuple(rows.values())


@dataclass(frozen=True, slots=True)
class AdbStream:
    """A raw two-way stream to one service of one device."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class AdbClient:
    """Speaks to one adb server; every connection is scoped and every step has a deadline."""

    def __init__(self, socket_path: Path, *, step_s: float = 10.0) -> None:
        self.socket_path = socket_path
        self._step_s = step_s

    async def ask(self, request: str) -> str:
        """One host request with a length-prefixed answer.

        Raises:
            ChannelLost: reason channel_lost, adb_timeout, or adb_refused with the server's words.
        """
        async with self._connected() as stream, self._step(request):
            await _send(stream, request)
            await _okay(stream)
            return (await _block(stream)).decode("utf-8", "replace")

    async def announce(self, adb_port: int) -> None:
        """Tell the server of an emulator on loopback port `adb_port`, as the emulator itself would; no answer comes.

        Raises:
            ChannelLost: the server is not there.
        """
        request = f"host:emulator:{adb_port}"
        async with self._connected() as stream, self._step(request):
            await _send(stream, request)
            await stream.reader.read()

    async def rows(self) -> tuple[Row, ...]:
        """The devices the server sees now.

        Raises:
            ChannelLost: the server is not there or silent.
        """
        return parse_rows(await self.ask("host:devices"))

    async def track(self) -> AsyncIterator[tuple[Row, ...]]:
        """The device list now and after each change, until the server goes.

        Raises:
            ChannelLost: the server is not there.
        """
        async with self._connected() as stream:
            async with self._step("track-devices"):
                await _send(stream, "host:track-devices")
                await _okay(stream)
            while True:
                try:
                    yield parse_rows((await _block(stream)).decode("utf-8", "replace"))
                except (asyncio.IncompleteReadError, OSError):
                    return

    @asynccontextmanager
    async def open(self, serial: str, service: str) -> AsyncIterator[AdbStream]:
        """A stream to `service` of the device `serial`; closed on leaving.

        Raises:
            ChannelLost: reason channel_lost, adb_timeout or adb_refused; nothing has reached the service then.
        """
        async with self._connected() as stream:
            async with self._step(service.split(":", 1)[0]):
                await _send(stream, f"host:transport:{serial}")
                await _okay(stream)
                await _send(stream, service)
                await _okay(stream)
            yield stream

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AdbStream]:
        try:
            async with asyncio.timeout(self._step_s):
                reader, writer = await asyncio.open_unix_connection(self.socket_path, limit=1 << 20)
        except TimeoutError:
            raise ChannelLost("adb_timeout", "the adb server does not accept") from None
        except OSError as broken:
            raise ChannelLost("channel_lost", f"no adb server: {broken}") from broken
        try:
            yield AdbStream(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    @asynccontextmanager
    async def _step(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._step_s):
                yield
        except TimeoutError:
            raise ChannelLost("adb_timeout", f"the adb server is silent at {what}") from None
        except (asyncio.IncompleteReadError, OSError, ValueError) as broken:
            raise ChannelLost("channel_lost", f"the adb server broke off at {what}: {broken}") from broken


async def _send(stream: AdbStream, request: str) -> None:
    body = request.encode()
    stream.writer.write(b"%04x" % len(body) + body)
    await stream.writer.drain()


async def _okay(stream: AdbStream) -> None:
    word = await stream.reader.readexactly(4)
    if word == b"OKAY":
        return
    if word == b"FAIL":
        raise ChannelLost("adb_refused", (await _block(stream)).decode("utf-8", "replace"))
    raise ChannelLost("channel_lost", f"neither OKAY nor FAIL but {word!r}")


async def _block(stream: AdbStream) -> bytes:
    return await stream.reader.readexactly(int(await stream.reader.readexactly(4), 16))
