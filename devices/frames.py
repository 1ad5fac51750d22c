"""Live frames for viewers: one producer while anyone watches, the latest frame only, nobody waits for a slow viewer."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from devices.actor.actor import DeviceActor
from devices.actor.life import Host, Lanes
from devices.capture import Picture, bounded, check_png, grab
from devices.faults import CaptureFailed, ChannelLost, NotRunning
from devices.geometry import Screen
from devices.observing import rotation

_FASTEST_S, _SLOWEST_S = 1 / 30, 0.25
MAX_EDGE, _MAX_BYTES = 1280, 3 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture within 1280 pixels; `sequence` grows with each change, gaps are frames nobody had to look at."""

    png: bytes
    width: int
    height: int
    screen: Screen
    sequence: int


class FrameFeed:
    """The frames of one phone, made only while someone watches and only when the picture changes."""

    def __init__(self, actor: DeviceActor, host: Host, group: asyncio.TaskGroup) -> None:
        self._actor = actor
        self._host = host
        self._group = group
        self._latest: Frame | None = None
        self._watchers: dict[asyncio.Event, float] = {}
        self._producer: asyncio.Task[None] | None = None
        self._fault: CaptureFailed | ChannelLost | NotRunning | None = None

    @asynccontextmanager
    async def watch(self, *, fastest_s: float = _FASTEST_S) -> AsyncIterator[AsyncIterator[Frame]]:
        """Frames from now on, the last known one first; each turn of the loop gets the newest there is.

        Where pictures must be asked for, one comes every `fastest_s` at most, and as often as the most eager watcher
        wants. The iterator ends with NotRunning or ChannelLost when the device does.
        """
        news = asyncio.Event()
        self._watchers[news] = fastest_s
        if self._producer is None or self._producer.done():
            # What the ended one saw last may be of an earlier life; a watcher who lingers has kept it.
            self._fault = self._latest = None
            self._producer = self._group.create_task(self._produce(), name=f"frames-{self._actor.spec.name}")
        if self._latest is not None:
            news.set()
        try:
            yield self._frames(news)
        finally:
            del self._watchers[news]
            if not self._watchers and self._producer is not None:
                self._producer.cancel()
                self._producer = self._latest = None

    async def _frames(self, news: asyncio.Event) -> AsyncIterator[Frame]:
        while True:
            await news.wait()
            news.clear()
            if self._fault is not None:
                raise self._fault
            if self._latest is not None:
                yield self._latest

    async def _produce(self) -> None:
        try:
            _, lanes = self._actor.usable(None)
            if lanes.engine is not None:
                with suppress(ChannelLost):  # adb goes on where the channel fails; where the device is gone it says so
                    await self._follow(lanes)
            await self._poll()
        except (NotRunning, ChannelLost) as fault:
            self._fault = fault
            self._wake()

    async def _follow(self, lanes: Lanes) -> None:
        """The emulator sends a frame per change by itself."""
        assert lanes.engine is not None
        display = self._actor.spec.display
        scale = min(1.0, MAX_EDGE / max(display.width, display.height))
        size = {"width": int(display.width * scale), "height": int(display.height * scale)}
        async for image in lanes.engine.frames(**size):
            try:
                picture = check_png(image.data)
            except CaptureFailed:
                continue
            self._publish(picture, Screen(display, image.rotation))

    async def _poll(self) -> None:
        """Over adb there is nothing to wait for: look often while the picture changes, less often while it rests."""
        world, last, pause = self._host.world, b"", 0.0
        while True:
            _, lanes = self._actor.usable(None)
            began = world.monotonic()
            raw = await grab(lanes.film, within=10.0)
            digest = hashlib.blake2b(raw, digest_size=16).digest()
            fastest = min(self._watchers.values(), default=_FASTEST_S)
            if digest == last:
                pause = max(fastest, min(pause * 1.5, _SLOWEST_S))
            else:
                last, pause = digest, fastest
                await self._show(raw, lanes)
            await world.sleep(max(0.0, pause - (world.monotonic() - began)))

    async def _show(self, raw: bytes, lanes: Lanes) -> None:
        try:
            screen = Screen(self._actor.spec.display, await rotation(lanes.look, within=10.0))
            capture = await bounded(check_png(raw), screen, max_edge=MAX_EDGE, max_bytes=_MAX_BYTES)
        except CaptureFailed:
            return
        self._publish(capture.bounded, screen)

    def _publish(self, picture: Picture, screen: Screen) -> None:
        sequence = 1 if self._latest is None else self._latest.sequence + 1
        self._latest = Frame(picture.png, picture.width, picture.height, screen, sequence)
        self._wake()

    def _wake(self) -> None:
        for news in self._watchers:
            news.set()
