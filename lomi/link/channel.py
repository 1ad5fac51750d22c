"""One connection's frames over asyncio: bounded reading, one write per frame, TLS put on in mid-stream."""

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable

from lomi.link.errors import (
    ChannelClosedError,
    EnrolmentRefusedError,
    FrameRefusedError,
    LinkError,
    PeerNotReadingError,
)
from lomi.link.frames import JSON_ONLY, Frame, FrameParser, encode
from lomi.link.limits import MAX_ENROLMENT, MAX_METADATA, LinkLimits

_PAUSE_FRAMES = 64
_PAUSE_BYTES = 1 << 20
_SEND_BYTES = 512 << 10


class Channel(asyncio.Protocol):
    """Frames both ways over one stream socket; begins in clear, where only one JSON frame of 16 KiB may pass each way.

    One task receives; any number may send.
    """

    def __init__(self, limits: LinkLimits, on_made: "Callable[[Channel], None] | None" = None) -> None:
        self._limits = limits
        self._on_made = on_made
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = FrameParser()
        self._parser.narrow(MAX_ENROLMENT, JSON_ONLY)
        self._frames: deque[Frame] = deque()
        self._queued = 0
        self._paused = False
        self._clear = True
        self._heard = False
        self._end: LinkError | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._deadline: asyncio.TimerHandle | None = None
        self.take: Callable[[Frame], bool] = lambda _frame: False
        """Offered a frame before `receive` gives it, where that waits for nothing else; it says whether it took it.

        It must not raise.
        """

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport and say that there is one."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # A picture goes through in one piece: each further one waits for both processes to be scheduled.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        if self._on_made is not None:
            self._on_made(self)

    def data_received(self, data: bytes) -> None:
        """Cut arrived bytes into frames."""
        if self._end is not None:
            return
        if self._clear and self._heard:
            self._finish(EnrolmentRefusedError("bytes_before_tls"))
            self.abort()
            return
        try:
            for frame in self._parser.feed(data):
                self._heard = True
                if self._is_awaited and not self._frames and self.take(frame):
                    continue
                self._frames.append(frame)
                self._queued += len(frame.body)
        except FrameRefusedError as error:
            self._finish(error)
            self.abort()
            return
        self._watch_frame()
        if not self._frames:
            return
        if self._transport is not None and (len(self._frames) >= _PAUSE_FRAMES or self._queued >= _PAUSE_BYTES):
            self._pause(self._transport)
        self._wake()

    def eof_received(self) -> None:
        """Note the end of the peer's stream; the transport closes itself."""
        self._finish(FrameRefusedError("frame_incomplete") if self._parser.partial else ChannelClosedError())

    def connection_lost(self, error: Exception | None) -> None:
        """Note that nothing comes or goes any more."""
        if self._parser.partial:
            self._finish(FrameRefusedError("frame_incomplete"))
        self._finish(ChannelClosedError(f"the connection broke: {error}" if error else "the connection is closed"))
        self._writable.set()
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """Hold senders until the peer has read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let senders go on."""
        self._writable.set()

    # Called by us.

    @property
    def socket(self) -> socket.socket:
        """The connection's socket, to look at; the transport owns it."""
        found = self._open_transport().get_extra_info("socket")
        assert found is not None
        return found  # type: ignore[no-any-return]  # untyped in the standard library

    @property
    def tls(self) -> ssl.SSLObject:
        """The TLS state after a finished handshake.

        Raises:
            EnrolmentRefusedError: there is none.
        """
        found = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        if not isinstance(found, ssl.SSLObject):
            raise EnrolmentRefusedError("tls_failed")
        return found

    @property
    def closing(self) -> bool:
        """Whether the connection ended or is about to."""
        return self._end is not None or self._transport is None or self._transport.is_closing()

    @property
    def writable(self) -> bool:
        """Whether the peer keeps up with what is sent."""
        return self._writable.is_set()

    @property
    def in_clear(self) -> bool:
        """Whether nothing but clear frames has passed so far."""
        return self._clear

    async def receive(self) -> Frame:
        """Return the next frame.

        Raises:
            FrameRefusedError: the peer broke the framing.
            ChannelClosedError: the connection ended between two frames.
        """
        while not self._frames:
            if self._end is not None:
                raise self._end
            self._arrival = self._loop.create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        frame = self._frames.popleft()
        self._queued -= len(frame.body)
        if self._paused and not self._frames:
            self._resume()
        return frame

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield frames until the connection ends between two of them.

        Raises:
            FrameRefusedError: the peer broke the framing.
        """
        while True:
            try:
                frame = await self.receive()
            except ChannelClosedError:
                return
            yield frame

    async def send(self, *frames: Frame) -> None:
        """Send frames together, never interleaved with another sender's; a binary frame goes with its JSON frame.

        The bytes are on their way before the first await: cancelling the wait takes nothing back.

        Raises:
            ChannelClosedError: the connection is gone.
            PeerNotReadingError: the peer left bytes unread for too long; the connection was cut.
            ValueError: a body is empty or too large.
        """
        self.send_nowait(*frames)
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(self._limits.send_seconds):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
            raise PeerNotReadingError from None

    def send_nowait(self, *frames: Frame) -> None:
        """Put frames on their way without waiting for the peer to read; see `send`."""
        buffers = encode(*frames)
        if self.closing:
            raise ChannelClosedError
        transport = self._open_transport()
        if len(buffers) == 1:
            transport.write(buffers[0])
        else:
            transport.writelines(buffers)

    def check_quiet(self) -> None:
        """Check that no byte has come since the last received frame.

        Raises:
            EnrolmentRefusedError: something has; the connection was cut.
        """
        if self._end is not None:
            raise self._end
        if self._frames or self._parser.partial:
            self.abort()
            raise EnrolmentRefusedError("bytes_before_tls")

    async def upgrade(self, context: ssl.SSLContext, *, server_side: bool, server_name: str | None = None) -> None:
        """Put TLS on; the first frame under it is a JSON frame of at most 64 KiB.

        Bytes that came in clear after the last frame could be anybody's and are refused.

        Raises:
            EnrolmentRefusedError: bytes in clear were waiting, or the handshake failed.
        """
        self.check_quiet()
        self._clear = False
        self._parser.narrow(MAX_METADATA, JSON_ONLY)
        transport = None
        try:
            transport = await self._loop.start_tls(
                self._open_transport(),
                self,
                context,
                server_side=server_side,
                server_hostname=server_name,
                ssl_handshake_timeout=self._limits.accept_seconds,
                ssl_shutdown_timeout=self._limits.close_seconds,
            )
        except OSError as error:
            raise EnrolmentRefusedError("tls_failed") from error
        finally:
            if transport is None:
                # A handshake cut off half-way does not tell us that the connection is lost; nobody else will either.
                self.abort()
                self.connection_lost(None)
        if transport is None:
            raise EnrolmentRefusedError("tls_failed")
        self._transport = transport

    def abort(self) -> None:
        """Cut the connection now."""
        self._finish(ChannelClosedError())
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Close in good order, within the limit, and wait until the descriptor is gone."""
        self._finish(ChannelClosedError())
        if self._transport is None:
            return
        self._transport.close()
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await asyncio.shield(self._closed)
        except TimeoutError:
            self._transport.abort()
            await self._closed
        except asyncio.CancelledError:
            self._transport.abort()
            raise

    async def closed(self) -> None:
        """Wait until the connection is gone."""
        await asyncio.shield(self._closed)

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None:
            raise ChannelClosedError
        return self._transport

    def _finish(self, reason: LinkError) -> None:
        if self._end is None:
            self._end = reason
        self._stop_watch()
        self._wake()

    @property
    def _is_awaited(self) -> bool:
        return self._arrival is not None and not self._arrival.done()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _pause(self, transport: asyncio.Transport) -> None:
        # While we do not read, a slow frame is our doing and not the peer's: the frame deadline stops too.
        if not self._paused:
            self._paused = True
            transport.pause_reading()
            self._stop_watch()

    def _resume(self) -> None:
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            with contextlib.suppress(RuntimeError):
                self._transport.resume_reading()
            self._watch_frame()

    def _watch_frame(self) -> None:
        if not self._parser.partial:
            self._stop_watch()
        elif self._deadline is None:
            self._deadline = self._loop.call_later(self._limits.frame_seconds, self._too_slow)

    def _stop_watch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._finish(FrameRefusedError("frame_too_slow"))
        self.abort()
