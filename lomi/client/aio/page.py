"""A page: act on what it shows by name, go elsewhere, follow popups."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from lomi.client.acts import Act
from lomi.client.aio.looking import TIMEOUT_S, again
from lomi.client.aio.page_screen import PageScreen
from lomi.client.errors import ToolError
from lomi.client.names import Target
from lomi.contract import browser
from lomi.contract.browser import BrowserInteraction, BrowserNavigation, Modifier
from lomi.contract.panel import PanelChanged, PanelCloseInput

Button = Literal["left", "right", "middle"]
_NAVIGATION_S = 60.0
_NAVIGATED = re.compile(r"navigated: (\S+) \(")


class Page(PageScreen):
    """One page with its lease, made by `Lab.page` or `popup`."""

    async def goto(self, url: str, *, wait_until: Literal["commit", "load"] = "load") -> Act[BrowserNavigation]:
        """Go to a granted URL.

        Raises:
            ScopeDeniedError: its origin, or one it redirects to, is not granted; the old document stays.
            OutcomeUnknownError: no document arrived.
        """
        act = await self._session.act(
            "lomi_browser_navigate",
            lambda: browser.BrowserNavigateInput(
                **self._session.keyed(), **self._leased(), url=url, wait_until=wait_until
            ),
            BrowserNavigation,
            generation=self.generation,
            timeout_s=_NAVIGATION_S,
            keep=self._keep,
        )
        assert act.result is not None
        self._arrived(act.result.navigation_id, act.result.url)
        return act

    async def click(
        self,
        target: Target,
        *,
        count: int = 1,
        button: Button = "left",
        modifiers: Sequence[Modifier] = (),
        timeout_s: float = TIMEOUT_S,
    ) -> Act[BrowserInteraction]:
        """Click what has that name, as soon as it is there, visible, enabled and uncovered.

        Raises:
            NameAbsentError: nothing has that name.
            NameAmbiguousError: several things have it.
            ToolError: refused, or not confirmed.
        """
        return await self._clicked(target, timeout_s, count=count, button=button, modifiers=tuple(modifiers))

    async def hover(self, target: Target, *, timeout_s: float = TIMEOUT_S) -> Act[BrowserInteraction]:
        """Move the pointer there."""
        return await self._clicked(target, timeout_s, hover=True)

    async def check(
        self, target: Target, *, checked: bool = True, timeout_s: float = TIMEOUT_S
    ) -> Act[BrowserInteraction]:
        """Click a box only if it is not so yet."""
        return await self._clicked(target, timeout_s, checked=checked)

    async def _clicked(
        self,
        target: Target,
        timeout_s: float,
        *,
        count: int = 1,
        button: Button = "left",
        modifiers: tuple[Modifier, ...] = (),
        checked: bool | None = None,
        hover: bool = False,
    ) -> Act[BrowserInteraction]:
        async def once() -> Act[BrowserInteraction]:
            seen = await self._element(target)
            return await self._act(
                "lomi_browser_click",
                lambda: browser.BrowserClickInput(
                    **self._session.keyed(),
                    **self._leased(),
                    **seen,
                    count=count,
                    button=button,
                    modifiers=modifiers,
                    checked=checked,
                    hover=hover,
                ),
            )

        return await self._shown(target, once, timeout_s)

    async def drag(self, target: Target, to: Target, *, timeout_s: float = TIMEOUT_S) -> Act[BrowserInteraction]:
        """Drag one element onto another."""

        async def once() -> Act[BrowserInteraction]:
            seen, end = await self._two(target, to)
            return await self._act(
                "lomi_browser_click",
                lambda: browser.BrowserClickInput(
                    **self._session.keyed(), **self._leased(), **seen, drag_to=browser.Drop(element_ref=end)
                ),
            )

        return await self._shown(target, once, timeout_s)

    async def fill(self, target: Target, text: str, *, timeout_s: float = TIMEOUT_S) -> Act[BrowserInteraction]:
        """Replace a field's value."""
        return await self._filled(target, text, (), timeout_s)

    async def select(self, target: Target, *options: str, timeout_s: float = TIMEOUT_S) -> Act[BrowserInteraction]:
        """Choose the options with these labels or values; more than one only in a multiple select.

        Raises:
            ValueError: no option was given.
        """
        if not options:
            raise ValueError("give at least one option")
        return await self._filled(target, options[0], options[1:], timeout_s)

    async def _filled(
        self, target: Target, text: str, more: tuple[str, ...], timeout_s: float
    ) -> Act[BrowserInteraction]:
        async def once() -> Act[BrowserInteraction]:
            seen = await self._element(target, typing=True)
            return await self._act(
                "lomi_browser_fill",
                lambda: browser.BrowserFillInput(
                    **self._session.keyed(), **self._leased(), **seen, text=text, also_select=more
                ),
            )

        return await self._shown(target, once, timeout_s)

    async def press(
        self,
        target: Target,
        key: str,
        *,
        count: int = 1,
        modifiers: Sequence[Modifier] = (),
        timeout_s: float = TIMEOUT_S,
    ) -> Act[BrowserInteraction]:
        """Press a key or chord on an element that has the focus, with its default action."""

        async def once() -> Act[BrowserInteraction]:
            seen = await self._element(target)
            return await self._act(
                "lomi_browser_key",
                lambda: browser.BrowserKeyInput(
                    **self._session.keyed(), **self._leased(), **seen, key=key, count=count, modifiers=tuple(modifiers)
                ),
            )

        return await self._shown(target, once, timeout_s)

    async def scroll(self, delta_x: float = 0.0, delta_y: float = 0.0) -> Act[BrowserInteraction]:
        """Scroll the viewport by CSS pixels."""
        return await self._scrolled(None, delta_x, delta_y)

    async def reveal(self, target: Target, *, timeout_s: float = TIMEOUT_S) -> Act[BrowserInteraction]:
        """Scroll until an element is in view."""

        async def once() -> Act[BrowserInteraction]:
            return await self._scrolled(target, 0.0, 0.0)

        return await again(once, timeout_s)

    async def _scrolled(self, target: Target | None, delta_x: float, delta_y: float) -> Act[BrowserInteraction]:
        seen = await self._document() if target is None else await self._element(target)
        return await self._act(
            "lomi_browser_scroll",
            lambda: browser.BrowserScrollInput(
                **self._session.keyed(), **self._leased(), **seen, delta_x=delta_x, delta_y=delta_y
            ),
        )

    async def close(self) -> Act[PanelChanged]:
        """Close the panel; the page ends with it."""
        act = await self._session.act(
            "lomi_panel_close",
            lambda: PanelCloseInput(
                **self._session.revised(), panel_id=self.panel_id, browser_generation=self.generation
            ),
            PanelChanged,
            generation=self.generation,
            keep=self._keep,
        )
        self.closed = True
        return act

    async def _act(self, tool: str, make: Callable[[], browser.PageAction]) -> Act[BrowserInteraction]:
        act = await self._session.act(
            tool, make, BrowserInteraction, generation=self.generation, timeout_s=_NAVIGATION_S, keep=self._keep
        )
        went = next((found[1] for line in act.changed if (found := _NAVIGATED.match(line))), None)
        if act.observation is not None and act.observation.navigation_id is not None:
            self._arrived(act.observation.navigation_id, went)
        return act

    async def _shown(
        self, target: Target, once: Callable[[], Awaitable[Act[BrowserInteraction]]], timeout_s: float
    ) -> Act[BrowserInteraction]:
        """Act on an element, once it is there; one outside of the viewport is brought into view first."""

        async def seen() -> Act[BrowserInteraction]:
            try:
                return await once()
            except ToolError as error:
                if error.reason != "offscreen" or error.effect != "none":
                    raise
            await self._scrolled(target, 0.0, 0.0)
            return await once()

        return await again(seen, timeout_s)
