"""The frame that a page has on display, as it stands.

`Page.captureScreenshot` has the page drawn anew and is told of that only with the display's next tick: a third of such
a picture is waiting. The first frame of a screencast is a copy of what is on display, at once and the same in every
pixel. So it will do wherever nothing that the page is now has still to be drawn, which the page's own compositor says
(`onDisplay` in our script). Both as traced in Chromium 156.
"""

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING

import msgspec

from browser.errors import BrowserError
from browser.png import png_size
from browser.wire import listen, send
from browser.world import World

if TYPE_CHECKING:
    from browser.page import Page

LOOK_S = 2.0
_ANSWER_S = 1.0
_FRAME_S = 0.5
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 4.0


class Window(msgspec.Struct, frozen=True):
    """The viewport in CSS pixels of the document, and device pixels for each; `shown` when all of it is on display."""

    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    scale: float = 1
    shown: bool = False

    @property
    def pixels(self) -> tuple[int, int]:
        """Its size in device pixels."""
        return round(self.width * self.scale), round(self.height * self.scale)


class _Metadata(msgspec.Struct, rename="camel"):
    monotonic_timestamp: float | None = None


class _Frame(msgspec.Struct):
    data: str
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class Display:
    """What one page has on display. One look at a time.

    Of `windows` no frame is taken: their display may be slower than 60 frames a second, which `onDisplay` counts on.
    """

    def __init__(self, page: "Page", *, windows: bool) -> None:
        self._page = page
        self._never = windows
        self._turn = asyncio.Lock()
        self._since = 0.0
        self._arrived: asyncio.Future[str] | None = None
        self._pause_s = 0.0
        self._paused_until = 0.0
        page.on_navigation.append(self._document_came)
        listen(page.session, "Page.screencastFrame", _Frame, self._received, page.faults)

    @property
    def paused(self) -> bool:
        """Whether there is no use in a look: a short while ago not all was on display.

        The longer that goes on, the more seldom is looked. What processes of other sites draw is not vouched for.
        """
        return self._never or self._page.clock() < self._paused_until or self._page.frames.separate

    def pause(self) -> None:
        """A look led to no picture."""
        self._pause_s = min(self._pause_s * 2 or _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._paused_until = self._page.clock() + self._pause_s

    async def look(self, world: World) -> tuple[bytes, Window] | None:
        """The frame's PNG in device pixels and where the window of the page's document stands.

        None when not all is on display, when the engine gives no whole frame of that window or the page no answer in
        time.
        """
        async with self._turn:
            if self.paused:
                return None
            try:
                window = await world.call("onDisplay", shape=Window, deadline_s=_ANSWER_S)
                frame = await self._frame() if window.shown else None
                fits = frame is not None and png_size(frame) == window.pixels
            except BrowserError:
                frame, fits = None, False
        if frame is None or not fits:
            self.pause()
            return None
        self._pause_s = 0.0
        return frame, window

    async def _frame(self) -> bytes | None:
        arrived = self._arrived = asyncio.get_running_loop().create_future()
        self._since = self._page.clock()
        try:
            options = {"format": "png", "everyNthFrame": 1}
            await send(self._page.session, "Page.startScreencast", options, deadline_s=_ANSWER_S)
            async with asyncio.timeout(_FRAME_S):
                return base64.b64decode(await arrived) or None
        except (TimeoutError, binascii.Error):
            return None
        finally:
            self._arrived = None
            self._page.session.post("Page.stopScreencast")

    def _received(self, frame: _Frame) -> None:
        # One that was still being encoded when its screencast was stopped comes under the next one's number. The engine
        # counts on the clock that ours is (CLOCK_MONOTONIC), at the copy and not when it is encoded.
        at = frame.metadata.monotonic_timestamp
        # An engine that does not say the time of the copy (an older one) is asked for no second.
        self._never = self._never or at is None
        if (at is None or at >= self._since) and self._arrived is not None and not self._arrived.done():
            self._arrived.set_result("" if at is None else frame.data)

    def _document_came(self) -> None:
        self._pause_s = self._paused_until = 0.0
