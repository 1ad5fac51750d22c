"""One adb connection: handshake, authentication and its multiplexed streams."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from emulator_images.paper.wire import packets
from emulator_images.paper.wire.keys import PublicKey, parse_public_key
from emulator_images.paper.wire.packets import Packet

_HANG_UP_SECONDS = 1.0  # a command whose client has left gets this long to finish what it began


class StreamClosedError(Exception):
    """Raised when a service writes to, or needs more bytes from, a stream the client has closed."""


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Whom the phone lets in: its trusted keys, or everybody when `skip` (the emulator's `-skip-adb-auth`).

    Before `open_at`, in seconds of `monotonic`, nobody is let in.
    """

    keys: frozenset[PublicKey]
    skip: bool
    open_at: float
    monotonic: Callable[[], float]
    make_token: Callable[[], bytes]
    on_stranger: Callable[[PublicKey | None], None]

    def opens_for(self, token: bytes, signature: bytes) -> bool:
        """Whether one of the trusted keys made this signature; never before `open_at`."""
        return self.monotonic() >= self.open_at and any(key.accepts(token, signature) for key in self.keys)


class Stream:
    """One service opened by the client; a byte pipe in each direction."""

    def __init__(self, connection: "Connection", local: int, remote: int) -> None:
        self._connection = connection
        self.local = local
        self.remote = remote
        self._received: asyncio.Queue[bytes] = asyncio.Queue()
        self._rest = b""
        self._ready = asyncio.Event()
        self.closed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def feed(self, payload: bytes) -> None:
        """Bytes from the client."""
        self._received.put_nowait(payload)

    def acknowledge(self) -> None:
        """The client took the last write."""
        self._ready.set()

    async def accepted(self) -> None:
        """Wait until the other side has taken the stream.

        Raises:
            StreamClosedError: it refused.
        """
        await self._ready.wait()
        if self.closed.is_set():
            raise StreamClosedError

    def end(self) -> None:
        """The client closed its side or the connection is gone."""
        self.closed.set()
        self._ready.set()
        self._received.put_nowait(b"")

    async def read(self) -> bytes:
        """Some bytes; empty when the client has closed the stream."""
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        if self.closed.is_set() and self._received.empty():
            return b""
        chunk = await self._received.get()
        if chunk:
            self._connection.post(Packet(packets.OKAY, self.local, self.remote))
        return chunk

    async def exactly(self, count: int) -> bytes:
        """Exactly `count` bytes.

        Raises:
            StreamClosedError: the stream ended before.
        """
        parts: list[bytes] = []
        missing = count
        while missing:
            chunk = await self.read()
            if not chunk:
                raise StreamClosedError
            if len(chunk) > missing:
                self._rest = chunk[missing:]
                chunk = chunk[:missing]
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)

    async def write(self, payload: bytes) -> None:
        """Send bytes, one packet at a time, each after the client acknowledged the one before.

        Raises:
            StreamClosedError: the client has closed the stream.
        """
        view = memoryview(payload)
        size = self._connection.largest_payload
        for start in range(0, len(view), size):
            if self.closed.is_set():
                raise StreamClosedError
            self._ready.clear()
            await self._connection.send(
                Packet(packets.WRTE, self.local, self.remote, bytes(view[start : start + size]))
            )
            await self._ready.wait()
        if self.closed.is_set():
            raise StreamClosedError


Serve = Callable[[Stream, str], Awaitable[None]]


class Connection:
    """The device side of one adb transport over TCP.

    `banner` gives the text of the CNXN answer, `serve` runs one opened service, and `accepts` says whether the phone
    knows a service at all (an unknown one is refused with CLSE, as adbd does).
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        doorkeeper: Doorkeeper,
        banner: Callable[[], str],
        accepts: Callable[[str], bool],
        serve: Serve,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._doorkeeper = doorkeeper
        self._banner = banner
        self._accepts = accepts
        self._serve = serve
        self._authorised = doorkeeper.skip and doorkeeper.monotonic() >= doorkeeper.open_at
        self._token = b""
        self._checksum = True
        self._peer_version = packets.VERSION_WITH_CHECKSUM
        self._streams: dict[int, Stream] = {}
        self._next_local = 1
        self.largest_payload = packets.LEGACY_PAYLOAD

    async def run(self) -> None:
        """Speak with the client until either side ends the connection."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._converse(group)
                for stream in self._streams.values():
                    stream.end()
                    if stream.task is not None:
                        stream.task.cancel()
        finally:
            for stream in self._streams.values():
                stream.end()
            self._writer.close()

    def post(self, packet: Packet) -> None:
        """Queue a packet without waiting for the socket."""
        if not self._writer.is_closing():
            self._writer.write(packets.encode(packet, checksum=self._checksum))

    async def send(self, packet: Packet) -> None:
        """Queue a packet and wait until the socket takes more."""
        self.post(packet)
        with suppress(ConnectionError):
            await self._writer.drain()

    def cut(self) -> None:
        """Drop the connection at once, as a phone that goes offline does."""
        self._writer.transport.abort()

    async def open_from_device(self, service: str) -> Stream:
        """Open a stream towards the adb server, as `adb reverse` needs it.

        Raises:
            StreamClosedError: the server refused it.
        """
        stream = self._new_stream(0)
        await self.send(Packet(packets.OPEN, stream.local, 0, service.encode() + b"\0"))
        await stream.accepted()
        return stream

    async def _converse(self, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                packet = await packets.receive(self._reader, checksum=self._checksum)
            except (asyncio.IncompleteReadError, ConnectionError, packets.BadPacketError):
                return
            if packet.command == packets.CNXN:
                await self._greet(packet)
            elif packet.command == packets.AUTH:
                await self._authenticate(packet)
            elif not self._authorised:
                continue
            elif packet.command == packets.OPEN:
                self._open(packet, group)
            else:
                self._deliver(packet)

    async def _greet(self, packet: Packet) -> None:
        self.largest_payload = max(1, min(packet.second, packets.LARGEST_PAYLOAD))
        self._peer_version = packet.first
        if self._authorised:
            await self._connect()
        else:
            await self._challenge()

    async def _challenge(self) -> None:
        self._token = self._doorkeeper.make_token()
        await self.send(Packet(packets.AUTH, packets.AUTH_TOKEN, 0, self._token))

    async def _authenticate(self, packet: Packet) -> None:
        if packet.first == packets.AUTH_SIGNATURE:
            if self._token and self._doorkeeper.opens_for(self._token, packet.payload):
                self._authorised = True
                await self._connect()
            else:
                await self._challenge()
        elif packet.first == packets.AUTH_PUBLIC_KEY:
            key = parse_public_key(packet.payload.rstrip(b"\0").decode("utf-8", "replace"))
            self._doorkeeper.on_stranger(key)
            wait = self._doorkeeper.open_at - self._doorkeeper.monotonic()
            if 0 < wait < float("inf"):  # a person will allow this key
                await asyncio.sleep(wait)
                self._authorised = True
                await self._connect()

    async def _connect(self) -> None:
        answer = Packet(
            packets.CNXN, packets.VERSION_WITHOUT_CHECKSUM, packets.LARGEST_PAYLOAD, self._banner().encode()
        )
        await self.send(answer)
        self._checksum = self._peer_version < packets.VERSION_WITHOUT_CHECKSUM

    def _new_stream(self, remote: int) -> Stream:
        stream = Stream(self, self._next_local, remote)
        self._streams[stream.local] = stream
        self._next_local += 1
        return stream

    def _open(self, packet: Packet, group: asyncio.TaskGroup) -> None:
        service = packet.payload.rstrip(b"\0").decode("utf-8", "surrogateescape")
        if not self._accepts(service):
            self.post(Packet(packets.CLSE, 0, packet.first))
            return
        stream = self._new_stream(packet.first)
        self.post(Packet(packets.OKAY, stream.local, stream.remote))
        stream.task = group.create_task(self._serve_stream(stream, service))

    async def _serve_stream(self, stream: Stream, service: str) -> None:
        try:
            (ended,) = await asyncio.gather(self._serve(stream, service), return_exceptions=True)
        finally:
            self.release(stream)
        if isinstance(ended, BaseExceptionGroup):  # raised below the task groups of a shell
            ended = ended.split(StreamClosedError)[1]
        if isinstance(ended, Exception) and not isinstance(ended, StreamClosedError):
            # A service that fails costs its own stream, never the phone.
            traceback.print_exception(ended)

    def release(self, stream: Stream) -> None:
        """Close a stream from the phone's side and forget it."""
        if self._streams.pop(stream.local, None) is not None:
            self.post(Packet(packets.CLSE, stream.local, stream.remote))
            stream.end()

    def _deliver(self, packet: Packet) -> None:
        stream = self._streams.get(packet.second)
        if stream is None:
            if packet.command == packets.WRTE:
                self.post(Packet(packets.CLSE, 0, packet.first))
            return
        if packet.command == packets.OKAY:
            stream.remote = stream.remote or packet.first
            stream.acknowledge()
        elif packet.command == packets.WRTE:
            stream.feed(packet.payload)
        elif packet.command == packets.CLSE:
            self._streams.pop(stream.local, None)
            stream.end()
            if stream.task is not None:
                asyncio.get_running_loop().call_later(_HANG_UP_SECONDS, stream.task.cancel)
