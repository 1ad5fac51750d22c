"""The emulator's console: a line protocol on loopback that wants a token before it obeys."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from devices.faults import ChannelLost

_LINE_LIMIT = 65536
_TOKEN_NAME = ".emulator_console_auth_token"  # noqa: S105 - the name of a file


class Console:
    """An authenticated console connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, step_s: float) -> None:
        self._reader = reader
        self._writer = writer
        self._step_s = step_s

    async def command(self, line: str) -> tuple[str, ...]:
        """Send one command and answer with the lines before OK.

        Raises:
            ChannelLost: reason adb_timeout, channel_lost, or adb_refused with the console's KO words.
        """
        self._writer.write(line.encode() + b"\r\n")
        return await self.answer()

    async def answer(self) -> tuple[str, ...]:
        """Lines up to and without the closing OK."""
        lines: list[str] = []
        try:
            async with asyncio.timeout(self._step_s):
                await self._writer.drain()
                while True:
                    raw = await self._reader.readline()
                    if not raw.endswith(b"\n"):
                        raise ChannelLost("channel_lost", "the console closed", effect="unknown")
                    line = raw.decode("utf-8", "replace").strip()
                    if line == "OK" or line.startswith("OK:"):
                        return tuple(lines)
                    if line.startswith("KO"):
                        raise ChannelLost("adb_refused", line)
                    lines.append(line)
        except TimeoutError:
            raise ChannelLost("adb_timeout", "the console is silent", effect="unknown") from None
        except (OSError, ValueError) as broken:
            raise ChannelLost("channel_lost", f"console: {broken}", effect="unknown") from broken


@asynccontextmanager
async def open_console(port: int, home: Path, *, step_s: float) -> AsyncIterator[Console]:
    """Connect to a console and authenticate when it asks, with the token file it names if that lies below `home`.

    Raises:
        ChannelLost: nobody listens, it stays silent, or the token is refused.
    """
    try:
        async with asyncio.timeout(step_s):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LINE_LIMIT)
    except TimeoutError:
        raise ChannelLost("adb_timeout", "the console does not accept") from None
    except OSError as broken:
        raise ChannelLost("channel_lost", f"no console on {port}: {broken}") from broken
    try:
        console = Console(reader, writer, step_s)
        greeting = await console.answer()
        if any("auth" in line.lower() for line in greeting):
            await console.command(f"auth {await asyncio.to_thread(_token, greeting, home)}")
        yield console
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _token(greeting: tuple[str, ...], home: Path) -> str:
    named = re.search(r"'(/[^']+)'", "\n".join(greeting))
    path = home / _TOKEN_NAME
    if named and Path(named[1]).name == _TOKEN_NAME and home in Path(named[1]).parents:
        path = Path(named[1])
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as missing:
        raise ChannelLost("channel_lost", f"no console token: {missing}") from missing
