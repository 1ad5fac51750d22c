"""File sync, versions 1 and 2: stat, list, send and receive."""

import stat
import struct
import zlib
from typing import IO, cast

from emulator_images.paper.files import Entry, FileTree
from emulator_images.paper.shell.interpreter import FileError
from emulator_images.paper.wire.transport import Stream

_CHUNK = 64 * 1024
_LONGEST_PATH = 1024
_STAT_V2 = struct.Struct("<IQQIIIIQqqq")
_DENT_V1 = struct.Struct("<4sIIII")


async def serve_sync(files: FileTree, stream: Stream) -> None:
    """Answer sync requests until the client quits."""
    while True:
        kind, length = struct.unpack("<4sI", await stream.exactly(8))
        if kind == b"QUIT":
            return
        if length > _LONGEST_PATH:
            await _fail(stream, "path too long")
            return
        path = (await stream.exactly(length)).decode("utf-8", "surrogateescape")
        if kind == b"STAT":
            await stream.write(b"STAT" + struct.pack("<III", *_stat_v1(files.find(path))))
        elif kind in {b"STA2", b"LST2"}:
            await stream.write(kind + _stat_v2(files, path))
        elif kind in {b"LIST", b"LIS2"}:
            await _list(files, stream, path, newer=kind == b"LIS2")
        elif kind in {b"SEND", b"SND2"}:
            await _receive_file(files, stream, path, newer=kind == b"SND2")
        elif kind in {b"RECV", b"RCV2"}:
            if kind == b"RCV2":
                await stream.exactly(8)
            await _send_file(files, stream, path)
        else:
            await _fail(stream, f"unknown command {kind.decode('ascii', 'replace')}")
            return


async def _fail(stream: Stream, text: str) -> None:
    message = text.encode()
    await stream.write(b"FAIL" + struct.pack("<I", len(message)) + message)


def _stat_v1(entry: Entry | None) -> tuple[int, int, int]:
    return (entry.mode, entry.size, entry.modified) if entry else (0, 0, 0)


def _stat_v2(files: FileTree, path: str) -> bytes:
    entry = files.find(path)
    if entry is None:
        return _STAT_V2.pack(2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    number = zlib.crc32(files.resolve(path).encode("utf-8", "surrogateescape"))
    times = (entry.modified,) * 3
    return _STAT_V2.pack(0, 1, number, entry.mode, 1, 2000, 2000, entry.size, *times)


async def _list(files: FileTree, stream: Stream, path: str, *, newer: bool) -> None:
    out = bytearray()
    try:
        names = files.children(path)
    except FileError:
        names = []
    for name in names:
        entry = files.find(f"{path.rstrip('/')}/{name}")
        label = name.encode("utf-8", "surrogateescape")
        if newer:
            out += b"DNT2" + _stat_v2(files, f"{path.rstrip('/')}/{name}") + struct.pack("<I", len(label)) + label
        else:
            out += _DENT_V1.pack(b"DENT", *_stat_v1(entry), len(label)) + label
    out += b"DONE" + bytes(_STAT_V2.size + 4 if newer else 16)
    await stream.write(bytes(out))


async def _receive_file(files: FileTree, stream: Stream, path: str, *, newer: bool) -> None:
    if newer:
        _, mode, flags = struct.unpack("<4sII", await stream.exactly(12))
    else:
        path, _, digits = path.rpartition(",")
        mode, flags = int(digits or 0), 0
    with files.spool() as gathered:
        while True:
            kind, length = struct.unpack("<4sI", await stream.exactly(8))
            if kind == b"DONE":
                break
            if kind != b"DATA":
                await _fail(stream, "invalid data message")
                return
            gathered.write(await stream.exactly(length))
        if flags:
            await _fail(stream, "compression is not supported")
            return
        bits = mode & 0o700
        shared = (mode & 0o777) | bits >> 3 | bits >> 6  # adbd gives group and others what the owner has
        try:
            _make_parents(files, path)
            files.adopt(path, cast("IO[bytes]", gathered), mode=shared, modified=length)
        except FileError as error:
            parents_failed = str(error).startswith("secure_mkdirs")
            await _fail(stream, str(error) if parents_failed else f"couldn't create file: {error}")
            return
    await stream.write(b"OKAY" + bytes(4))


def _make_parents(files: FileTree, path: str) -> None:
    parent = path.rsplit("/", 1)[0] or "/"
    if files.find(parent) is not None:
        return
    try:
        files.make_directory(parent, parents=True)
    except FileError as error:
        raise FileError(f"secure_mkdirs failed: {error}") from error


async def _send_file(files: FileTree, stream: Stream, path: str) -> None:
    entry = files.find(path)
    if entry is None:
        await _fail(stream, "open failed: No such file or directory")
        return
    if stat.S_ISDIR(entry.mode):
        await _fail(stream, "read failed: Is a directory")
        return
    with entry.opened() as source:
        while part := source.read(_CHUNK):
            await stream.write(b"DATA" + struct.pack("<I", len(part)) + part)
    await stream.write(b"DONE" + bytes(4))
