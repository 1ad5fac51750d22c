"""The emulator's gRPC channel: touch with two fingers, clipboard, pictures and a change-driven stream of frames."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

from devices.engine import codec
from devices.engine.codec import Finger, Image
from devices.engine.discovery import Announced
from devices.faults import ChannelLost

try:
    import grpc
    import grpc.aio
except ImportError:  # the extra `grpc` is not installed: every device then uses adb
    grpc = None

_SERVICE = "/android.emulation.control.EmulatorController/"
_MAX_MESSAGE = 64 << 20
_T = TypeVar("_T")


def is_available() -> bool:
    """Whether the optional grpcio package is installed."""
    return grpc is not None


class EmulatorChannel:
    """One authenticated channel; made by `open_channel`."""

    def __init__(self, channel: Any, token: str, step_s: float) -> None:
        self._channel = channel
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._step_s = step_s

    async def booted(self) -> bool:
        """Whether the emulator says that it booted.

        Raises:
            ChannelLost: no answer, or the token is refused.
        """
        return await self._call("getStatus", b"", codec.read_booted)

    async def picture(self) -> Image:
        """A PNG of the display.

        Raises:
            ChannelLost: no answer.
        """
        return await self._call("getScreenshot", codec.image_format(codec.PNG), codec.read_image)

    async def touch(
        self, fingers: tuple[Finger, ...], *, effect: AbstractAsyncContextManager[None] | None = None
    ) -> None:
        """Put fingers down, move or lift them.

        Raises:
            ChannelLost: effect unknown once it was sent.
        """
        await self._call("sendTouch", codec.touch_event(fingers), _nothing, effect=effect)

    async def key(self, name: str, *, down: bool, effect: AbstractAsyncContextManager[None] | None = None) -> None:
        """Put a key down, or let go of it, by its W3C name.

        Raises:
            ChannelLost: effect unknown once it was sent.
        """
        await self._call("sendKey", codec.key_event("keydown" if down else "keyup", key=name), _nothing, effect=effect)

    async def clipboard(self) -> str:
        """The clipboard's text.

        Raises:
            ChannelLost: no answer.
        """
        return await self._call("getClipboard", b"", codec.read_clip)

    async def set_clipboard(self, text: str) -> None:
        """Set the clipboard's text.

        Raises:
            ChannelLost: effect unknown once it was sent.
        """
        await self._call("setClipboard", codec.clip(text), _nothing)

    async def frames(self, *, width: int = 0, height: int = 0) -> AsyncIterator[Image]:
        """PNG frames, one now and one after each change, until the emulator ends or the caller leaves.

        Raises:
            ChannelLost: the stream broke.
        """
        method = self._channel.unary_stream(
            f"{_SERVICE}streamScreenshot", request_serializer=bytes, response_deserializer=bytes
        )
        call = method(codec.image_format(codec.PNG, width=width, height=height), metadata=self._metadata)
        try:
            async for raw in call:
                yield codec.read_image(raw)
        except grpc.aio.AioRpcError as broken:
            raise _lost(broken) from broken
        except ValueError as broken:
            raise ChannelLost("channel_lost", f"not a frame: {broken}") from broken
        finally:
            call.cancel()

    async def _call(
        self,
        name: str,
        request: bytes,
        read: Callable[[bytes], _T],
        *,
        effect: AbstractAsyncContextManager[None] | None = None,
    ) -> _T:
        method = self._channel.unary_unary(f"{_SERVICE}{name}", request_serializer=bytes, response_deserializer=bytes)
        async with effect or nullcontext():
            try:
                return read(await method(request, metadata=self._metadata, timeout=self._step_s))
            except grpc.aio.AioRpcError as broken:
                raise _lost(broken) from broken
            except ValueError as broken:
                raise ChannelLost("channel_lost", f"not an answer: {broken}", effect="unknown") from broken


@asynccontextmanager
async def open_channel(where: Announced, *, step_s: float = 10.0) -> AsyncIterator[EmulatorChannel]:
    """A channel to a service on loopback, closed on leaving.

    Raises:
        ChannelLost: grpcio is not installed, nobody answers, or the token is refused.
    """
    if grpc is None:
        raise ChannelLost("channel_lost", "the grpc extra is not installed")
    options = (("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.enable_http_proxy", 0))
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{where.port}", options=options)
    try:
        opened = EmulatorChannel(channel, where.token, step_s)
        try:
            async with asyncio.timeout(step_s):
                await opened.booted()
        except TimeoutError:
            raise ChannelLost("adb_timeout", "the emulator's gRPC does not answer") from None
        yield opened
    finally:
        await channel.close()


def _nothing(_: bytes) -> None:
    return None


def _lost(broken: Any) -> ChannelLost:
    refused = broken.code() in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
    never_ran = refused or broken.code() is grpc.StatusCode.UNIMPLEMENTED
    reason = "adb_refused" if refused else "channel_lost"
    return ChannelLost(reason, f"gRPC {broken.code().name}", effect="none" if never_ran else "unknown")
