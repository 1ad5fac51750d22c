"""Packets of the adb transport: a 24-byte header and a payload."""

import asyncio
import struct
from dataclasses import dataclass

CNXN, AUTH, OPEN, OKAY, WRTE, CLSE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"WRTE", b"CLSE")
)
VERSION_WITH_CHECKSUM = 0x01000000
VERSION_WITHOUT_CHECKSUM = 0x01000001
LARGEST_PAYLOAD = 1024 * 1024
LEGACY_PAYLOAD = 4096

AUTH_TOKEN, AUTH_SIGNATURE, AUTH_PUBLIC_KEY = 1, 2, 3

_HEADER = struct.Struct("<6I")


class BadPacketError(Exception):
    """Raised when a peer sends bytes that are no adb packet."""


@dataclass(frozen=True, slots=True)
class Packet:
    """One adb message: command, its two arguments and the payload."""

    command: int
    first: int
    second: int
    payload: bytes = b""


def encode(packet: Packet, *, checksum: bool) -> bytes:
    """The bytes of a packet; with the payload's byte sum for peers older than protocol version 0x01000001."""
    check = sum(packet.payload) & 0xFFFFFFFF if checksum else 0
    header = _HEADER.pack(
        packet.command, packet.first, packet.second, len(packet.payload), check, packet.command ^ 0xFFFFFFFF
    )
    return header + packet.payload


async def receive(reader: asyncio.StreamReader, *, checksum: bool) -> Packet:
    """Read the next packet.

    Raises:
        BadPacketError: magic, length or (when `checksum`) byte sum is wrong.
        asyncio.IncompleteReadError: the peer went away.
    """
    command, first, second, length, check, magic = _HEADER.unpack(await reader.readexactly(_HEADER.size))
    if magic != command ^ 0xFFFFFFFF or length > LARGEST_PAYLOAD:
        raise BadPacketError(f"header {command:#x} magic {magic:#x} length {length}")
    payload = await reader.readexactly(length) if length else b""
    if checksum and command not in {CNXN, AUTH} and check != sum(payload) & 0xFFFFFFFF:
        raise BadPacketError(f"checksum {check:#x} does not fit the payload")
    return Packet(command, first, second, payload)
