"""Contexts in which no window may open: the proxy admits hosts there that documents may not come from.

A popup asks for its first document before anything of ours could hold that document. So in a sealed context every new
window is stopped before its first request, by the engine itself, and closed.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from playwright.async_api import Browser, CDPSession

from browser.wire import Faults, ask, listen, send

SendLater = Callable[[CDPSession, str, dict[str, object]], None]


class _Target(msgspec.Struct, rename="camel"):
    target_id: str = ""
    type: str = ""
    opener_id: str | None = None
    browser_context_id: str | None = None


class _Attached(msgspec.Struct, rename="camel"):
    session_id: str
    target_info: _Target
    waiting_for_debugger: bool = False


class _Info(msgspec.Struct, rename="camel"):
    target_info: _Target


_STOP_NEW: dict[str, object] = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": True,
    "filter": [{"type": "page"}, {"exclude": True}],
}
_LET_GO: dict[str, object] = {"autoAttach": False, "waitForDebuggerOnStart": False, "flatten": True}


class _Sealed(NamedTuple):
    """A sealed context: the one target that belongs there, and who is told of the others."""

    target: str
    refused: Callable[[str | None], None]


class Seal:
    """Stops new windows of sealed contexts. One per engine, begun with the first sealed context.

    The engine lets a stopped window of another context go only by letting all go: the stop is lifted and set again at
    once. A window of a sealed context that opens in that instant is closed too, though its first request may be out.
    """

    def __init__(self, session: CDPSession, send_later: SendLater) -> None:
        self._session = session
        self._send_later = send_later
        self._sealed: dict[str, _Sealed] = {}
        self.faults = Faults()

    @classmethod
    async def over(cls, browser: Browser, send_later: SendLater) -> "Seal":
        """Begin to stop the engine's new windows; those of contexts that are not sealed go on at once."""
        session = await browser.new_browser_cdp_session()
        seal = cls(session, send_later)
        listen(session, "Target.attachedToTarget", _Attached, seal._attached, seal.faults)
        await send(session, "Target.setAutoAttach", _STOP_NEW)
        return seal

    async def close(self, page_session: CDPSession, refused: Callable[[str | None], None]) -> None:
        """Seal the context of a page. `refused` is told of each window that was stopped, by its opener's target."""
        info = (await ask(page_session, "Target.getTargetInfo", {}, _Info)).target_info
        if info.browser_context_id is not None:
            self._sealed[info.browser_context_id] = _Sealed(info.target_id, refused)

    def _attached(self, event: _Attached) -> None:
        target = event.target_info
        sealed = self._sealed.get(target.browser_context_id or "")
        if sealed is not None and target.target_id != sealed.target:
            self._send_later(self._session, "Target.closeTarget", {"targetId": target.target_id})
            sealed.refused(target.opener_id)
        elif event.waiting_for_debugger:
            self._send_later(self._session, "Target.setAutoAttach", _LET_GO)
            self._send_later(self._session, "Target.setAutoAttach", _STOP_NEW)
