"""Live frames of a page for a person: sent when the picture changes, the last one to whoever joins late."""

import asyncio
import base64
from collections.abc import AsyncGenerator

import msgspec

from browser.errors import BrowserError
from browser.inspector.connection import Session
from browser.page import Page
from browser.wire import listen, send


class Frame(msgspec.Struct, frozen=True):
    """One picture of the viewport: JPEG bytes, its size in CSS pixels, and a number that grows."""

    number: int
    jpeg: bytes
    width: float
    height: float


class _Metadata(msgspec.Struct, rename="camel"):
    device_width: float = 0
    device_height: float = 0


class _Event(msgspec.Struct, rename="camel"):
    data: str
    session_id: int
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class Screencast:
    """The live view of one page.

    It runs while anybody watches; a slow watcher skips frames and never holds up another.
    """

    def __init__(self, page: Page, *, quality: int = 70, most_width: int = 1280, most_height: int = 1280) -> None:
        self.last: Frame | None = None
        self._page = page
        self._options = {
            "format": "jpeg",
            "quality": quality,
            "maxWidth": most_width,
            "maxHeight": most_height,
            "everyNthFrame": 1,
        }
        self._session: Session | None = None
        self._watchers: set[asyncio.Event] = set()
        self._changing = asyncio.Lock()
        self._count = 0
        page.on_ended.append(lambda _reason: self._wake())

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Frames as they come, newest first when late.

        Ends with the page. Raises PageEndedError when it is over already.
        """
        self._page.require_live()
        fresh = asyncio.Event()
        self._watchers.add(fresh)
        try:
            await self._begin()
            shown = 0
            while self._page.activity.ended is None:
                frame = self.last
                if frame is not None and frame.number != shown:
                    shown = frame.number
                    yield frame
                    continue
                fresh.clear()
                await fresh.wait()
        finally:
            self._watchers.discard(fresh)
            if not self._watchers:
                await self._end()

    async def _begin(self) -> None:
        async with self._changing:
            if self._session is not None:
                return
            session = await self._page.context.chromium.another_session(self._page.target.id)
            listen(
                session, "Page.screencastFrame", _Event, lambda event: self._received(session, event), self._page.faults
            )
            self._session = session
            await send(session, "Page.startScreencast", self._options)

    def _received(self, session: Session, event: _Event) -> None:
        self._count += 1
        self.last = Frame(
            self._count, base64.b64decode(event.data), event.metadata.device_width, event.metadata.device_height
        )
        self._wake()
        self._page.background(send(session, "Page.screencastFrameAck", {"sessionId": event.session_id}))

    async def _end(self) -> None:
        async with self._changing:
            session, self._session = self._session, None
            if session is None or self._watchers:
                self._session = session
                return
            try:
                await send(session, "Page.stopScreencast")
                session.detach()
            except BrowserError:
                pass  # the page went first
