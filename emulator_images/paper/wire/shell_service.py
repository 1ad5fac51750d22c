"""Shell services: the legacy byte stream, `exec:`, `abb:` and the shell protocol with separate streams."""

import asyncio
import shlex
import struct

from emulator_images.paper.commands import new_shell
from emulator_images.paper.phone import Phone
from emulator_images.paper.shell.flow import BrokenPipe
from emulator_images.paper.shell.interpreter import Shell, Streams
from emulator_images.paper.wire.transport import Stream, StreamClosedError

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN, WINDOW_SIZE = range(6)
_HEADER = struct.Struct("<BI")
_CHUNK = 32 * 1024
_MOST_WAITING = 256 * 1024
"""Bytes of output that wait for the client before the command has to."""


class _Raw:
    """A stream whose bytes are the command's own input and output."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        """Bytes from the client."""
        return await self._stream.read()

    async def write(self, payload: bytes) -> None:
        """Bytes to the client."""
        await self._stream.write(payload)


class _Packets:
    """The shell protocol's packets on a stream.

    What is written while the client has yet to take the last packet goes out together, as from behind a pipe.
    """

    def __init__(self, stream: Stream, tasks: asyncio.TaskGroup) -> None:
        self._stream = stream
        self._tasks = tasks
        self._closed = False
        self._waiting = bytearray()
        self._broken = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def read(self) -> bytes:
        """The next bytes of standard input; empty once the client closed it."""
        while not self._closed:
            try:
                kind, length = _HEADER.unpack(await self._stream.exactly(_HEADER.size))
                payload = await self._stream.exactly(length) if length else b""
            except StreamClosedError:
                break
            if kind == STDIN and payload:
                return payload
            if kind == CLOSE_STDIN:
                break
        self._closed = True
        return b""

    async def send(self, kind: int, payload: bytes) -> None:
        """Send one kind of output.

        Raises:
            StreamClosedError: the client has closed the stream.
        """
        for start in range(0, len(payload), _CHUNK):
            part = payload[start : start + _CHUNK]
            self._waiting += _HEADER.pack(kind, len(part)) + part
            if self._idle.is_set():
                self._idle.clear()
                self._tasks.create_task(self._pump())
            if len(self._waiting) > _MOST_WAITING:
                await self._idle.wait()
        if self._broken:
            raise StreamClosedError

    async def sent(self) -> None:
        """Wait until the client has taken everything.

        Raises:
            StreamClosedError: it has closed the stream.
        """
        await self._idle.wait()
        if self._broken:
            raise StreamClosedError

    async def _pump(self) -> None:
        while self._waiting and not self._broken:
            together, self._waiting = bytes(self._waiting), bytearray()
            try:
                await self._stream.write(together)
            except StreamClosedError:
                self._broken = True
        self._waiting.clear()
        self._idle.set()


class _Output:
    def __init__(self, packets: _Packets, kind: int) -> None:
        self._packets = packets
        self._kind = kind

    async def write(self, payload: bytes) -> None:
        """Bytes to the client."""
        await self._packets.send(self._kind, payload)


async def serve_shell(phone: Phone, stream: Stream, service: str) -> None:
    """`shell:` and `shell,v2,...:`; without a command a script is read line by line from standard input."""
    head, _, command = service.partition(":")
    options = head.split(",")[1:]
    await phone.latency.spend("shell")
    if "v2" not in options:
        raw = _Raw(stream)
        await _run(phone, command, Streams(raw, raw, raw), terminal=True)
        return
    failure: StreamClosedError | None = None
    async with asyncio.TaskGroup() as tasks:
        packets = _Packets(stream, tasks)
        streams = Streams(packets, _Output(packets, STDOUT), _Output(packets, STDERR))
        try:
            code = await _run(phone, command, streams, terminal="pty" in options)
            await packets.send(EXIT, bytes([code & 255]))
            await packets.sent()
        except StreamClosedError as closed:
            failure = closed  # raised below, outside the group that would wrap it
    if failure is not None:
        raise failure


async def serve_exec(phone: Phone, stream: Stream, command: str) -> None:
    """`exec:`: one command, bytes both ways, no exit code."""
    await phone.latency.spend("shell")
    raw = _Raw(stream)
    await _run(phone, command, Streams(raw, raw, raw), terminal=False)


async def serve_abb(phone: Phone, stream: Stream, words: str) -> None:
    """`abb_exec:`: a framework command with its arguments separated by NUL."""
    command = "cmd " + " ".join(shlex.quote(word) for word in words.rstrip("\0").split("\0"))
    await serve_exec(phone, stream, command)


async def _run(phone: Phone, command: str, streams: Streams, *, terminal: bool) -> int:
    if (hang := phone.faults.strikes("shell_hangs")) is not None:
        phone.record("shell_hangs", seconds=hang.seconds)
        await asyncio.sleep(hang.seconds or 3600)
    shell = new_shell(phone)
    try:
        if command:
            return await shell.run_text(command, streams)
        return await _interactive(shell, streams, terminal=terminal)
    except BrokenPipe:
        return 141


async def _interactive(shell: Shell, streams: Streams, *, terminal: bool) -> int:
    prompt = b"lomi_paper:/ $ "
    pending = b""
    if terminal:
        await streams.stdout.write(prompt)
    while chunk := await streams.stdin.read():
        if terminal:
            await streams.stdout.write(chunk.replace(b"\r", b"\r\n"))
            chunk = chunk.replace(b"\r", b"\n")
        pending += chunk
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            text = line.decode("utf-8", "surrogateescape")
            if text.strip() == "exit":
                return shell.code
            if text.startswith("exit ") and text[5:].strip().isdecimal():
                return int(text[5:])
            await shell.run_text(text, streams)
            if terminal:
                await streams.stdout.write(prompt)
    if pending.strip():
        await shell.run_text(pending.decode("utf-8", "surrogateescape"), streams)
    return shell.code
