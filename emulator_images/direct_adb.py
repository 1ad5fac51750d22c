"""A minimal adb client that speaks with one device's adbd directly, without a server.

It signs nothing, so it works only where authentication is off (`-skip-adb-auth`): for verifying images.
"""

import asyncio
import struct

_CNXN, _OPEN, _OKAY, _WRTE, _CLSE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"OPEN", b"OKAY", b"WRTE", b"CLSE")
)
_VERSION, _LARGEST = 0x01000001, 256 * 1024
_HEADER = struct.Struct("<6I")


class NoAnswerError(Exception):
    """Raised when the device does not answer as an adbd without authentication does."""


class DirectAdb:
    """Runs commands on one device."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    async def run(self, command: str, *, seconds: float = 30.0) -> bytes:
        """What a command prints, bytes as they are.

        Raises:
            NoAnswerError: no connection, no answer in time, or authentication is on.
        """
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                try:
                    return await _run(reader, writer, command)
                finally:
                    writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            raise NoAnswerError(f"{self._host}:{self._port}: {error}") from error


def _packet(command: int, first: int, second: int, payload: bytes = b"") -> bytes:
    return _HEADER.pack(command, first, second, len(payload), 0, command ^ 0xFFFFFFFF) + payload


async def _run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, command: str) -> bytes:
    writer.write(_packet(_CNXN, _VERSION, _LARGEST, b"host::features=shell_v2\0"))
    out = bytearray()
    while True:
        kind, first, _, length, _, _ = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        payload = await reader.readexactly(length)
        if kind == _CNXN:
            writer.write(_packet(_OPEN, 1, 0, f"exec:{command}\0".encode()))
        elif kind == _WRTE:
            out += payload
            writer.write(_packet(_OKAY, 1, first))
        elif kind == _CLSE:
            return bytes(out)
        elif kind != _OKAY:
            raise NoAnswerError("the device asks for authentication")
