"""One isolated context: its pages, their popups, and its end with the last page."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from playwright.async_api import BrowserContext
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page as PlaywrightPage

from browser.egress import EgressProxy
from browser.errors import AdmissionRefusedError, BrowserError, PageEndedError
from browser.guard import Credential, DocumentGuard
from browser.human import HumanHand
from browser.logs import Logs
from browser.network import Network
from browser.page import Page
from browser.pending import Pending
from browser.screencast import Screencast

if TYPE_CHECKING:
    from browser.engine import Engine

# Pages without WebRTC and without the means to start it: the proxy is the only way out.
_NO_PEERS = """
for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel', 'WebTransport']) {
  if (!(name in globalThis)) continue;
  Object.defineProperty(globalThis, name, { value: undefined, configurable: false, writable: false });
}
"""


NamePopup = Callable[[Page | None], Awaitable[str]]
"""Names a popup's generation, given its opener; raises AdmissionRefusedError when there is no place for it."""


class Profile:
    """A context shared by one opened page and the popups that come of it."""

    def __init__(
        self,
        engine: "Engine",
        context: BrowserContext,
        *,
        egress: EgressProxy | None,
        guarded: Callable[[str], bool] | None,
        clock: Callable[[], float],
    ) -> None:
        self.context = context
        self.pages: dict[str, Page] = {}
        self.on_popup: list[Callable[[Page, Page | None], None]] = []
        self.name_popup: NamePopup = self._own_name
        self.egress = egress
        self.guarded = guarded
        self._engine = engine
        self._clock = clock
        self._closing = False

    def admits(self, url: str) -> bool:
        """Whether a document of this address may be shown here."""
        return self.guarded is None or self.guarded(url)

    async def first(self, generation: str) -> Page:
        """The page the context was opened for; the caller holds its place. The context goes if there is no page."""
        try:
            return await self._first(generation)
        except BaseException:
            self._closing = True
            self._engine.tasks.create_task(self._close())
            raise

    async def _first(self, generation: str) -> Page:
        blank, _ = await asyncio.gather(self.context.new_page(), self.context.add_init_script(_NO_PEERS))
        egress = self.egress
        credential = Credential(egress.username, egress.password) if egress is not None else None
        page = await self._bind(blank, generation, credential, seal=egress is not None and bool(egress.grant.resources))
        self.context.on("page", self._popup)
        return page

    def _window_refused(self, opener: str | None) -> None:
        for page in self.pages.values():
            if opener in {None, page.frames.main_id}:
                page.popup_arrived(None)

    async def _bind(
        self, playwright: PlaywrightPage, generation: str, credential: Credential | None = None, *, seal: bool = False
    ) -> Page:
        session = await self.context.new_cdp_session(playwright)
        engine = self._engine
        page = Page(
            generation=generation,
            context=self.context,
            page=playwright,
            session=session,
            tasks=engine.tasks,
            clock=self._clock,
        )
        page.limitations = engine.limitations
        page.profile = self
        page.pending = Pending(page)
        page.logs = Logs(page)
        page.network = Network(page)
        page.human = HumanHand(page)
        page.screencast = Screencast(page)
        page.on_ended.append(lambda _reason: self._ended(page))
        if self.guarded is not None:
            guard = DocumentGuard(page, self.guarded, credential)
            page.frames.on_session.append(guard.hold_later)
            await page.attach(guard.hold(session))
        else:
            await page.attach()
        if seal:
            await engine.seal(session, self._window_refused)
        page.require_live()
        self.pages[generation] = page
        engine.pages[generation] = page
        for told in engine.on_page:
            told(page)
        return page

    def _popup(self, playwright: PlaywrightPage) -> None:
        self._engine.tasks.create_task(self._admit_popup(playwright))

    async def _own_name(self, _opener: Page | None) -> str:
        return self._engine.name()

    async def _admit_popup(self, playwright: PlaywrightPage) -> None:
        opener: Page | None = None
        name: str | None = None
        try:
            owner = await playwright.opener()
            opener = next((page for page in self.pages.values() if page.playwright is owner), None)
            self._engine.admit()
            try:
                page = await self._bind(playwright, await self.name_popup(opener))
            except (PlaywrightError, BrowserError):
                self._engine.release()
                raise
            name = page.generation
            for told in self.on_popup:
                told(page, opener)
        except (AdmissionRefusedError, PageEndedError, PlaywrightError, BrowserError):
            await self._discard(playwright)
        finally:
            if opener is not None:
                opener.popup_arrived(name)

    async def _discard(self, playwright: PlaywrightPage) -> None:
        try:
            async with asyncio.timeout(3):
                await playwright.close()
        except (TimeoutError, PlaywrightError):
            pass  # gone already, or going with its context

    def _ended(self, page: Page) -> None:
        if self.pages.pop(page.generation, None) is None:
            return
        for directory in page.staged:
            self._engine.tasks.create_task(asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True))
        self._engine.pages.pop(page.generation, None)
        self._engine.release()
        if not self.pages and not self._closing:
            self._closing = True
            self._engine.tasks.create_task(self._close())

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(5):
                await self.context.close()
        except (TimeoutError, PlaywrightError):
            pass  # the engine is gone, and the context with it
