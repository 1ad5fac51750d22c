"""Navigation by address and history, and the end of a page by our own hand."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal

import msgspec

from browser.errors import (
    BrowserError,
    NavigationFailedError,
    OriginDeniedError,
    RedirectDeniedError,
    UnresponsiveError,
)
from browser.frames import origin_of
from browser.page import Page
from browser.settle import begin, observe
from browser.values import Navigated
from browser.wire import ask, send

Effect = AbstractAsyncContextManager[None]

COMMIT_S = 15.0


class _Answer(msgspec.Struct, rename="camel"):
    frame_id: str = ""
    loader_id: str | None = None
    error_text: str | None = None
    is_download: bool = False


class _Entry(msgspec.Struct):
    id: int
    url: str


class _History(msgspec.Struct, rename="camel"):
    current_index: int
    entries: list[_Entry]


def require_admitted(page: Page, url: str) -> None:
    """Raises NavigationFailedError unless it is http(s) or about:blank, OriginDeniedError outside the grant."""
    if url == "about:blank":
        return
    if origin_of(url) == "null" or "@" in url.split("/", 3)[2]:
        raise NavigationFailedError("not_http")
    if not page.profile.admits(url):
        raise OriginDeniedError("origin_denied", origin=origin_of(url))


async def navigate(
    page: Page,
    url: str,
    *,
    wait_until: Literal["commit", "load"] = "load",
    load_s: float = 10.0,
    settle_s: float = 1.5,
    effect: Effect | None = None,
) -> Navigated:
    """Go to an address; the answer comes at commit or load (bounded by `load_s`) and after settling.

    Raises:
        OriginDeniedError: outside the grant; nothing was done.
        NavigationFailedError: no document came; details carry the network error.
        BlockedError, PageEndedError: nothing was done.
    """
    async with page.turn:
        page.require_free()
        require_admitted(page, url)
        async with effect or nullcontext():
            return await _go(page, "Page.navigate", {"url": url}, wait_until, load_s, settle_s)


async def travel(
    page: Page, steps: int, *, load_s: float = 10.0, settle_s: float = 1.5, effect: Effect | None = None
) -> Navigated:
    """Go back (negative) or forward in the page's history.

    Raises as `navigate`; ``no_history`` when there is no such entry.
    """
    async with page.turn:
        page.require_free()
        history = await ask(page.session, "Page.getNavigationHistory", {}, _History)
        index = history.current_index + steps
        if not 0 <= index < len(history.entries):
            raise NavigationFailedError("no_history")
        require_admitted(page, history.entries[index].url)
        async with effect or nullcontext():
            return await _go(
                page, "Page.navigateToHistoryEntry", {"entryId": history.entries[index].id}, "load", load_s, settle_s
            )


async def _go(
    page: Page,
    method: str,
    params: dict[str, object],
    wait_until: Literal["commit", "load"],
    load_s: float,
    settle_s: float,
) -> Navigated:
    activity = page.activity
    start = begin(page)
    deadline = page.clock() + max(load_s, 0.1)
    attempt = await page.unless_blocked(ask(page.session, method, params, _Answer, deadline_s=COMMIT_S + 1), COMMIT_S)
    page.require_live()
    answer = attempt.result() if attempt.done else _Answer()
    if answer.error_text and not answer.is_download:
        if activity.refused:
            raise RedirectDeniedError("redirect_denied", origin=origin_of(activity.refused[0]))
        raise NavigationFailedError("navigation_failed", error=answer.error_text)
    if not attempt.done and activity.dialog is None:
        raise UnresponsiveError("page_unresponsive", call="navigate")

    def committed() -> bool:
        return activity.committed != start.committed or activity.within != start.within

    def cut_short() -> bool:
        # A document that leads out of the grant while it loads: refused, it stays, and the engine fires no load event.
        return bool(activity.refused) and not activity.navigating

    while not committed() and activity.dialog is None and activity.ended is None and not answer.is_download:
        if not await activity.wait(deadline - page.clock()):
            break
    if wait_until == "load" and activity.committed != start.committed:
        while not activity.loaded and not cut_short() and activity.dialog is None and activity.ended is None:
            if not await activity.wait(deadline - page.clock()):
                break
    came = activity.committed != start.committed
    loaded = (came and activity.loaded) or activity.within != start.within
    budget = (page.clock() - start.at) + (settle_s if loaded or wait_until == "commit" else 0.05)
    activity.navigating = activity.navigating and wait_until == "load" and not loaded
    observation = await observe(page, start, budget)
    return Navigated(page.navigation_id, page.url, committed(), loaded, None, observation)


async def close(page: Page, *, effect: Effect | None = None) -> None:
    """End the page without asking it. Its generation is over afterwards, whatever the engine says."""
    async with effect or nullcontext():
        try:
            if page.activity.ended is None:
                await send(page.context.chromium.root, "Target.closeTarget", {"targetId": page.target.id})
        except BrowserError:
            pass  # it was going already
        finally:
            page.end("closed")
