"""A person's own hand on the page.

It always wins at once: the hook fires before the first byte is sent and nothing is waited for.
"""

from collections.abc import Callable
from typing import Literal

from browser.actions import dispatch_mouse
from browser.keys import require_known
from browser.navigate import require_admitted
from browser.page import Page
from browser.wire import send

_BUTTONS = {"left": 1, "right": 2, "middle": 4, "none": 0}
_KINDS = {"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased", "wheel": "mouseWheel"}


class HumanHand:
    """Input of the person who watches a page.

    `on_takeover` is called at each input, before it is sent: end the agent's lease there.
    """

    def __init__(self, page: Page) -> None:
        self.on_takeover: list[Callable[[], None]] = []
        self._page = page
        self._buttons = 0

    def _take(self) -> None:
        self._page.require_live()
        for told in self.on_takeover:
            told()

    async def mouse(
        self,
        kind: Literal["move", "down", "up", "wheel"],
        x: float,
        y: float,
        *,
        button: Literal["left", "right", "middle", "none"] = "none",
        count: int = 1,
        delta: tuple[float, float] | None = None,
    ) -> None:
        """One mouse event in CSS pixels of the viewport.

        A bare move takes nothing over. Raises PageEndedError, UnresponsiveError.
        """
        if kind != "move" or self._buttons:
            self._take()
        if kind == "down":
            self._buttons |= _BUTTONS[button]
        elif kind == "up":
            self._buttons &= ~_BUTTONS[button]
        clicks = count if kind in {"down", "up"} else 0
        await dispatch_mouse(
            self._page, _KINDS[kind], x, y, button=button, buttons=self._buttons, count=clicks, delta=delta
        )

    async def key(self, kind: Literal["press", "down", "up"], name: str) -> None:
        """A key or chord by its name. Raises RefusedError for an unknown one, PageEndedError."""
        require_known(name)
        self._take()
        keyboard = self._page.keyboard
        await {"press": keyboard.press, "down": keyboard.down, "up": keyboard.up}[kind](name)

    async def text(self, text: str) -> None:
        """Text at the caret, as an input method would give it. Raises PageEndedError."""
        self._take()
        await send(self._page.session, "Input.insertText", {"text": text})

    async def go(self, url: str) -> None:
        """The address bar.

        A person stays within the context's grant too. Raises OriginDeniedError, NavigationFailedError,
        PageEndedError.
        """
        self._take()
        require_admitted(self._page, url)
        await send(self._page.session, "Page.navigate", {"url": url}, deadline_s=15)

    async def reload(self) -> None:
        """Load the document again. Raises PageEndedError."""
        self._take()
        await send(self._page.session, "Page.reload", deadline_s=15)
