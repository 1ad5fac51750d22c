"""Where the window of a page stands in its document: asked for only when it may have moved since."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from browser.wire import Nothing, listen
from browser.world import World

if TYPE_CHECKING:
    from browser.page import Page

_AS_LONG_AS_IT_STANDS_S = 365 * 86_400.0


class Window(msgspec.Struct, frozen=True):
    """The viewport in CSS pixels of the document; `moves` counts its scrolls and changes of size."""

    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    scale: float = 1
    moves: int = 0


class WindowWatch:
    """The window of one page's main document.

    Our listeners are the first of the document, so that no script of the page can keep a move from them; a document
    that is opened anew has lost them, and is asked every time.
    """

    def __init__(self, page: "Page") -> None:
        self._page = page
        self._known: tuple[World, Window] | None = None
        self._deaf: World | None = None
        listen(page.session, "Page.documentOpened", Nothing, lambda _event: self._opened(), page.faults)

    def known(self, world: World) -> Window | None:
        """Where it stands for sure: nothing has moved it since it was asked."""
        return self._known[1] if self._known is not None and self._known[0] is world else None

    async def ask(self, world: World) -> Window:
        """Where it stands now, asked behind what was asked already in this turn of the loop. Raises as `World.call`."""
        await asyncio.sleep(0)
        window = await world.call("windowNow", shape=Window)
        if world is not self._deaf:
            self._known = (world, window)
            self._page.background(self._follow(world, window))
        return window

    async def _follow(self, world: World, window: Window) -> None:
        try:
            await world.call("windowMoved", window.moves, shape=bool, deadline_s=_AS_LONG_AS_IT_STANDS_S)
        finally:
            if self._known == (world, window):
                self._known = None

    def _opened(self) -> None:
        self._known = None
        self._deaf = self._page.frames.world(self._page.frames.main_id)
