"""What goes on in one page, as events: navigations, requests, dialogs. Actions wait on it and never poll."""

import asyncio
from collections.abc import Callable

import msgspec

from browser.inspector.connection import Session
from browser.wire import Faults, Nothing, listen

# An action's answer waits for these; pictures, media, beacons and open streams may take as long as they like.
_WAITED = frozenset({"Document", "Stylesheet", "Script", "XHR", "Fetch", "Preflight"})

MOST_REFUSED = 16
MOST_URL = 2048


class _Request(msgspec.Struct):
    url: str = ""
    method: str = "GET"


class RequestSent(msgspec.Struct, rename="camel"):
    """A request leaves the page, or is sent on after a redirect."""

    request_id: str
    request: _Request = msgspec.field(default_factory=_Request)
    type: str = "Other"
    frame_id: str | None = None
    loader_id: str = ""
    timestamp: float = 0.0
    wall_time: float = 0.0


class _Response(msgspec.Struct, rename="camel"):
    status: int = 0
    mime_type: str = ""
    encoded_data_length: float = 0.0


class ResponseReceived(msgspec.Struct, rename="camel"):
    """The head of a response."""

    request_id: str
    response: _Response = msgspec.field(default_factory=_Response)
    type: str = "Other"
    timestamp: float = 0.0


class RequestEnded(msgspec.Struct, rename="camel"):
    """A request is over; `error_text` when it failed."""

    request_id: str
    timestamp: float = 0.0
    error_text: str | None = None
    canceled: bool = False
    encoded_data_length: float = 0.0
    blocked_reason: str | None = None


class _Frame(msgspec.Struct, rename="camel"):
    frame_id: str = ""


class Activity:
    """The running account since the last `begin`. One per page; `changed` is set at every event that can end a wait."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.navigating = False
        self.coming = 0
        self._foretold = 0
        self._begun = 0
        self.committed = 0
        self.within = 0
        self.loaded = False
        self.dialog: str | None = None
        self.ended: str | None = None
        self.opened: list[str] = []
        self.choosers: list[str] = []
        self.downloads: list[str] = []
        self.refused: list[str] = []
        self.errors: list[str] = []
        self._pending: set[str] = set()
        self.observers: list[Callable[[object], None]] = []

    def begin(self) -> None:
        """Forget everything but what lasts (an open dialog, the end of the page)."""
        self.navigating = False
        self.coming = self._foretold = self._begun = 0
        self._pending.clear()
        for noted in (self.opened, self.choosers, self.downloads, self.refused, self.errors):
            noted.clear()

    def stir(self) -> None:
        """Wake whoever waits."""
        self.changed.set()

    @property
    def pending(self) -> int:
        """Requests begun since `begin` that an answer waits for and that are not over."""
        return len(self._pending)

    def busy(self) -> bool:
        """Whether a navigation, request, popup or download begun since `begin` is pending."""
        return self.navigating or bool(self._pending) or self.coming > 0

    def arrived(self) -> None:
        """One of the popups or downloads that were coming is here, or was refused."""
        self.coming = max(0, self.coming - 1)
        self.stir()

    def foretell_download(self) -> None:
        """A link that downloads was clicked: its download is pending from now on, not only once its server answers."""
        if not self._begun:
            self._foretold += 1
            self.coming += 1

    def _download_begins(self) -> None:
        self._begun += 1
        if self._foretold:
            self._foretold -= 1
        else:
            self.coming += 1

    def refuse(self, url: str) -> None:
        """A document of this address was kept from the page; the first of them are remembered."""
        if len(self.refused) < MOST_REFUSED:
            self.refused.append(url[:MOST_URL])
        self.stir()

    def interrupted(self) -> bool:
        """Whether nothing can be learned from the page now: a dialog is open or the page has ended."""
        return self.dialog is not None or self.ended is not None

    def document_came(self) -> None:
        """The main frame has a new document; what it loads is counted from now."""
        self.committed += 1
        self.loaded = False
        self.stir()

    def follow(self, session: Session, main_frame: Callable[[], str], faults: Faults, *, main: bool) -> None:
        """Take the events of one protocol session into account; the `main` one is that of the main frame."""

        def sent(event: RequestSent) -> None:
            if event.type in _WAITED and not event.request.url.startswith(("data:", "blob:")):
                self._pending.add(event.request_id)
            if event.type == "Document" and event.frame_id == main_frame():
                self.navigating = True
            self._tell(event)

        def received(event: ResponseReceived) -> None:
            self._tell(event)

        def ended(event: RequestEnded) -> None:
            self._pending.discard(event.request_id)
            self._tell(event)
            self.stir()

        def started(event: _Frame) -> None:
            if event.frame_id == main_frame():
                self.navigating = True

        def coming(_event: Nothing) -> None:
            self.coming += 1

        def stopped(event: _Frame) -> None:
            if event.frame_id == main_frame():
                self.navigating = False
                self.stir()

        def loaded(_event: Nothing) -> None:
            self.loaded = True
            self.stir()

        listen(session, "Network.requestWillBeSent", RequestSent, sent, faults)
        listen(session, "Network.responseReceived", ResponseReceived, received, faults)
        listen(session, "Network.loadingFinished", RequestEnded, ended, faults)
        listen(session, "Network.loadingFailed", RequestEnded, ended, faults)
        listen(session, "Page.frameStartedLoading", _Frame, started, faults)
        listen(session, "Page.frameRequestedNavigation", _Frame, started, faults)
        listen(session, "Page.frameStoppedLoading", _Frame, stopped, faults)
        listen(session, "Page.windowOpen", Nothing, coming, faults)
        listen(session, "Page.downloadWillBegin", Nothing, lambda _event: self._download_begins(), faults)
        if main:
            listen(session, "Page.loadEventFired", Nothing, loaded, faults)

    def _tell(self, event: object) -> None:
        for observer in self.observers:
            observer(event)

    async def wait(self, seconds: float) -> bool:
        """Wait for the next event; False when none came in time."""
        if seconds <= 0:
            return False
        self.changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        except TimeoutError:
            return False
        return True
