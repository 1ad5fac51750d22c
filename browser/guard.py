"""Documents are held at the page itself, each redirect of theirs too, and the proxy is given its credentials.

The egress proxy is the wall. This guard makes a refused navigation leave the old document in place, and reports it.
"""

from collections.abc import Callable

import msgspec
from playwright.async_api import CDPSession

from browser.errors import BrowserError
from browser.page import Page
from browser.wire import ContextGoneError, listen, send


class _Asked(msgspec.Struct):
    url: str = ""


class _Paused(msgspec.Struct, rename="camel"):
    request_id: str
    request: _Asked = msgspec.field(default_factory=_Asked)
    resource_type: str = ""


class _Challenge(msgspec.Struct):
    source: str = ""


class _AuthRequired(msgspec.Struct, rename="camel"):
    request_id: str
    auth_challenge: _Challenge = msgspec.field(default_factory=_Challenge)


class DocumentGuard:
    """Holds every document request of a page's sessions against the grant."""

    def __init__(self, page: Page, admits: Callable[[str], bool] | None, credentials: tuple[str, str] | None) -> None:
        self._page = page
        self._admits = admits
        self._credentials = credentials
        self._challenged: set[str] = set()

    @property
    def needed(self) -> bool:
        """Whether there is anything to hold or to answer."""
        return self._admits is not None or self._credentials is not None

    async def hold(self, session: CDPSession) -> None:
        """Hold the documents of one protocol session."""
        listen(session, "Fetch.requestPaused", _Paused, lambda event: self._paused(session, event), self._page.faults)
        listen(
            session, "Fetch.authRequired", _AuthRequired, lambda event: self._auth(session, event), self._page.faults
        )
        patterns = [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]
        await send(session, "Fetch.enable", {"patterns": patterns, "handleAuthRequests": self._credentials is not None})

    def hold_later(self, session: CDPSession) -> None:
        """Hold a session that turned up on its own (a frame that moved into another process)."""
        if session is not self._page.session:
            self._page.background(self.hold(session))

    def _paused(self, session: CDPSession, event: _Paused) -> None:
        url = event.request.url
        if self._admits is None or event.resource_type != "Document" or self._admits(url):
            self._page.background(self._answer(session, "Fetch.continueRequest", {"requestId": event.request_id}))
            return
        self._page.activity.refused.append(url[:2048])
        self._page.activity.stir()
        self._page.background(
            self._answer(session, "Fetch.failRequest", {"requestId": event.request_id, "errorReason": "Aborted"})
        )

    def _auth(self, session: CDPSession, event: _AuthRequired) -> None:
        response: dict[str, str] = {"response": "Default"}
        if event.auth_challenge.source == "Proxy" and self._credentials is not None:
            username, password = self._credentials
            again = event.request_id in self._challenged
            response = (
                {"response": "CancelAuth"}
                if again
                else {"response": "ProvideCredentials", "username": username, "password": password}
            )
            self._challenged.add(event.request_id)
        self._page.background(
            self._answer(
                session, "Fetch.continueWithAuth", {"requestId": event.request_id, "authChallengeResponse": response}
            )
        )

    async def _answer(self, session: CDPSession, method: str, params: dict[str, object]) -> None:
        try:
            await send(session, method, params)
        except (BrowserError, ContextGoneError) as error:  # the request or the page is gone, and with it the question
            self._page.faults.note(method, error)
