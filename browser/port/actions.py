"""Acts on pages: open, navigate, and the four actions."""

from functools import partial
from typing import Any

from browser.errors import BrowserError
from browser.navigate import navigate
from browser.page import Page
from browser.port import acts, asking
from browser.port.faults import acting
from browser.port.lives import Lives
from browser.port.seen import Seeing, already
from lomi.contract.browser import (
    BrowserNavigateInput,
    BrowserNavigation,
    BrowserOpened,
    BrowserOpenInput,
    PageAction,
)
from lomi.contract.model import Observation
from lomi.core.ids import GenerationId
from lomi.core.port import Call, Ledger, Opening, Outcome, Permit, ResourceKey


class BrowserActs:
    """Handlers that act through a permit."""

    def __init__(self, lives: Lives, ledger: Ledger, seeing: Seeing) -> None:
        self._lives = lives
        self._ledger = ledger
        self._seeing = seeing

    def _page(self, call: Call[Any]) -> Page:
        return self._lives.page(call.generation)

    async def open(self, call: Call[BrowserOpenInput], permit: Permit) -> Outcome:
        """A page in a panel of its own, leased to its opener; one that does not load is open all the same."""
        given, pages = call.input, dict[GenerationId, Page]()

        async def start(resource: ResourceKey) -> GenerationId:
            with acting():
                generation, pages[generation] = await self._lives.open(resource, call.grant)
            return generation

        runtime = Opening(start=start, end=partial(self._lives.close, permit=permit))
        async with permit.effect():
            panel, generation = await self._ledger.open_leased(call, "browser", given.url[:256], runtime)
            page = pages[generation]
            seen, loaded = await self._first_document(page, given.url)
        self._lives.prepare_spare()
        opened = BrowserOpened(
            workspace_id=given.workspace_id,
            panel_id=panel.id,
            browser_generation=generation,
            profile_id=f"{generation}-context",
            navigation_id=page.navigation_id,
            lease_id=None,
            ready=loaded,
            engine="chromium",
            network_isolation="egress_proxy",
        )
        return Outcome(result=opened, observe=already(seen))

    async def navigate(self, call: Call[BrowserNavigateInput], permit: Permit) -> Outcome:
        """Go to an address of the grant."""
        given, page = call.input, self._page(call)
        with acting():
            went = await navigate(page, given.url, wait_until=given.wait_until, effect=permit.effect())
        result = BrowserNavigation(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            browser_generation=page.generation,
            navigation_id=went.navigation_id,
            url=went.url,
            committed=went.committed,
            loaded=went.loaded,
        )
        return Outcome(result=result, observe=already(self._seeing.seen(page, went.observation)))

    async def act(self, call: Call[PageAction], permit: Permit) -> Outcome:
        """Click, fill, key or scroll: once, as trusted input."""
        page, given = self._page(call), call.input
        asked = asking.asked_of(getattr(given, "element_ref", None))
        with acting():
            if asked is not None:
                acted = await asking.answer(page, given, asked, permit.effect())
            else:
                acted = await acts.act(page, given, permit.effect())
        seen = self._seeing.seen(page, acted.observation, released_on=acted.released_on)
        return Outcome(result=acts.interaction(page, given, acted), observe=already(seen))

    async def _first_document(self, page: Page, url: str) -> tuple[Observation, bool]:
        """Load the first document; a failure is seen, not an error: the page is open and can be navigated."""
        if url == "about:blank":
            return Observation(settled=True), True
        try:
            went = await navigate(page, url)
        except BrowserError as error:
            return Observation(settled=True, lines=(f"the page did not load: {error.reason}",)), False
        return self._seeing.seen(page, went.observation), went.committed
