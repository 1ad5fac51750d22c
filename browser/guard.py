"""Documents are held at the page itself, and each redirect of theirs too.

The egress proxy is the wall. This guard makes a refused navigation leave the old document in place, and reports it. It
also shows the proxy the context's credential once, with the first document; the engine then sends it unasked.

A document that page script had fetched ahead (speculation rules) is shown without a request that could be held: if it
is outside the grant, the page ends when it comes.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from browser.errors import BrowserError, ContextGoneError, PageEndedError
from browser.inspector.connection import Session
from browser.page import Page
from browser.wire import ATTACH_S, listen, send


class _Asked(msgspec.Struct):
    url: str = ""


class _Paused(msgspec.Struct, rename="camel"):
    request_id: str
    request: _Asked = msgspec.field(default_factory=_Asked)
    resource_type: str = ""


class _Navigated(msgspec.Struct):
    frame: _Asked = msgspec.field(default_factory=_Asked)


class _Challenge(msgspec.Struct):
    source: str = ""


class _AuthRequired(msgspec.Struct, rename="camel"):
    request_id: str
    auth_challenge: _Challenge = msgspec.field(default_factory=_Challenge)


class Credential(NamedTuple):
    """The one credential of a context at its proxy."""

    username: str
    password: str


class DocumentGuard:
    """Holds every document request of a page's sessions against the grant.

    With a `credential` the page is its context's first one and answers the proxy's question; only the proxy's.
    """

    def __init__(self, page: Page, admits: Callable[[str], bool], credential: Credential | None = None) -> None:
        self._page = page
        self._admits = admits
        self._credential = credential
        self._asked: set[str] = set()

    async def hold(self, session: Session) -> None:
        """Hold the documents of one protocol session."""
        listen(session, "Fetch.requestPaused", _Paused, lambda event: self._paused(session, event), self._page.faults)
        listen(session, "Page.frameNavigated", _Navigated, self._came, self._page.faults)
        if self._credential is not None:
            listen(session, "Fetch.authRequired", _AuthRequired, lambda e: self._auth(session, e), self._page.faults)
        await self._enable(session)

    async def _enable(self, session: Session) -> None:
        patterns = [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]
        await send(
            session,
            "Fetch.enable",
            {"patterns": patterns, "handleAuthRequests": self._credential is not None},
            deadline_s=ATTACH_S,
        )

    def hold_later(self, session: Session) -> None:
        """Hold a session that turned up on its own (a frame that moved into another process)."""
        if session is not self._page.session:
            self._page.background(self._hold_or_end(session))

    async def _hold_or_end(self, session: Session) -> None:
        try:
            await self.hold(session)
        except (PageEndedError, ContextGoneError):
            pass  # the frame went as fast as it came
        except BrowserError as error:
            self._page.faults.note("Fetch.enable", error)
            self._end_page()  # the frame runs, and nothing holds its documents

    def _end_page(self) -> None:
        self._page.context.chromium.close_target(self._page.target.id)
        self._page.end("closed")

    def _auth(self, session: Session, event: _AuthRequired) -> None:
        self._page.background(self._answer_auth(session, event))

    async def _answer_auth(self, session: Session, event: _AuthRequired) -> None:
        known, again = self._credential, event.request_id in self._asked
        response: dict[str, str] = {"response": "Default"}
        if event.auth_challenge.source == "Proxy":
            self._asked.add(event.request_id)
            response = {"response": "CancelAuth"}
            if known is not None and not again:
                response = {"response": "ProvideCredentials", **known._asdict()}
        await self._answer(
            session, "Fetch.continueWithAuth", {"requestId": event.request_id, "authChallengeResponse": response}
        )
        if known is not None and "username" in response:
            self._credential = None  # the engine knows it now; asking about every request would slow all of them
            await self._enable(session)

    def _paused(self, session: Session, event: _Paused) -> None:
        url = event.request.url
        if event.resource_type != "Document" or self._admits(url):
            self._page.background(self._answer(session, "Fetch.continueRequest", {"requestId": event.request_id}))
            return
        self._page.activity.refuse(url)
        self._page.background(
            self._answer(session, "Fetch.failRequest", {"requestId": event.request_id, "errorReason": "Aborted"})
        )

    def _came(self, event: _Navigated) -> None:
        url = event.frame.url
        if url.startswith(("http://", "https://")) and not self._admits(url):
            self._page.activity.refuse(url)
            self._end_page()

    async def _answer(self, session: Session, method: str, params: dict[str, object]) -> None:
        try:
            await send(session, method, params)
        except (BrowserError, ContextGoneError) as error:  # the request or the page is gone, and with it the question
            self._page.faults.note(method, error)
