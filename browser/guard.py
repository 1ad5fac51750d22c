"""Documents are held at the page itself, and each redirect of theirs too.

The egress proxy is the wall. This guard makes a refused navigation leave the old document in place, and reports it.
"""

from collections.abc import Callable

import msgspec
from playwright.async_api import CDPSession

from browser.errors import BrowserError, ContextGoneError
from browser.page import Page
from browser.wire import listen, send


class _Asked(msgspec.Struct):
    url: str = ""


class _Paused(msgspec.Struct, rename="camel"):
    request_id: str
    request: _Asked = msgspec.field(default_factory=_Asked)
    resource_type: str = ""


class DocumentGuard:
    """Holds every document request of a page's sessions against the grant."""

    def __init__(self, page: Page, admits: Callable[[str], bool]) -> None:
        self._page = page
        self._admits = admits

    async def hold(self, session: CDPSession) -> None:
        """Hold the documents of one protocol session."""
        listen(session, "Fetch.requestPaused", _Paused, lambda event: self._paused(session, event), self._page.faults)
        patterns = [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]
        await send(session, "Fetch.enable", {"patterns": patterns})

    def hold_later(self, session: CDPSession) -> None:
        """Hold a session that turned up on its own (a frame that moved into another process)."""
        if session is not self._page.session:
            self._page.background(self.hold(session))

    def _paused(self, session: CDPSession, event: _Paused) -> None:
        url = event.request.url
        if event.resource_type != "Document" or self._admits(url):
            self._page.background(self._answer(session, "Fetch.continueRequest", {"requestId": event.request_id}))
            return
        self._page.activity.refused.append(url[:2048])
        self._page.activity.stir()
        self._page.background(
            self._answer(session, "Fetch.failRequest", {"requestId": event.request_id, "errorReason": "Aborted"})
        )

    async def _answer(self, session: CDPSession, method: str, params: dict[str, object]) -> None:
        try:
            await send(session, method, params)
        except (BrowserError, ContextGoneError) as error:  # the request or the page is gone, and with it the question
            self._page.faults.note(method, error)
