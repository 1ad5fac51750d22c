"""A page before it is anybody's: blank, in a context of its own, behind a proxy that admits nothing."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from browser.egress import EgressGrant, EgressProxy
from browser.errors import BrowserError, EngineUnavailableError
from browser.page import Page

NOTHING = EgressGrant(origins=frozenset(), everywhere=False, resources=frozenset(), refused_ports=frozenset())
_LOOK_S = 1.0


class Blank:
    """One on its way, or there. It becomes somebody's once, by `take`, or goes by `drop`.

    Attributes:
        awaited: whether somebody waits for it; else it is a spare.
        until: the loop's time at which a spare goes.
    """

    def __init__(self, *, awaited: bool, until: float) -> None:
        self.awaited = awaited
        self.until = until
        self._there: asyncio.Future[tuple[Page, EgressProxy] | BrowserError]
        self._there = asyncio.get_running_loop().create_future()
        self._decided = asyncio.Event()
        self._page: Page | None = None
        self._taken = False

    @property
    def over(self) -> bool:
        """Whether it is nobody's to take any more."""
        return self._decided.is_set()

    def arrived(self, page: Page, proxy: EgressProxy) -> None:
        """It is there."""
        self._there.set_result((page, proxy))
        self._page = page
        page.on_ended.append(lambda _reason: self.drop())
        if page.activity.ended is not None:
            self.drop()

    def failed(self, error: BrowserError) -> None:
        """It does not come."""
        if not self._there.done():
            self._there.set_result(error)
        self.drop()

    async def take(self) -> tuple[Page, EgressProxy]:
        """Make it the caller's as soon as it is there; one that the caller does not wait for goes.

        Raises:
            BrowserError: it did not come, or has gone again.
        """
        try:
            there = await asyncio.shield(self._there)
        except asyncio.CancelledError:
            self.drop()
            raise
        if isinstance(there, BrowserError):
            raise there
        if self.over:
            raise EngineUnavailableError("engine_start_failed")
        self._taken = True
        self._decided.set()
        return there

    def drop(self) -> None:
        """Nobody wants it: a page that is there goes at once, and gives its place back. Nothing if it was taken."""
        if self.over:
            return
        self._decided.set()
        if self._page is not None:
            self._page.end("closed")

    async def is_taken(self, may_stay: Callable[[], bool]) -> bool:
        """Wait until it is decided what becomes of it. A spare is asked every second whether it may stay."""
        while not self.over:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._decided.wait()
            if not self.awaited and not may_stay():
                self.drop()
        return self._taken
