"""One isolated context: its pages, their popups, and its end with the last page."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING

from browser.display import Display
from browser.egress import EgressProxy
from browser.errors import BrowserError
from browser.guard import Credential, DocumentGuard
from browser.human import HumanHand
from browser.inspector.chromium import Context, DownloadFile, Target
from browser.logs import Logs
from browser.network import Network
from browser.page import Page, started
from browser.pending import Pending
from browser.screencast import Screencast
from browser.trace import Trace
from browser.values import Viewport
from browser.wire import ATTACH_S, send

if TYPE_CHECKING:
    from browser.engine import Engine

# Pages without WebRTC and without the means to start it: the proxy is the only way out.
_NO_PEERS = """
for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel', 'WebTransport']) {
  if (!(name in globalThis)) continue;
  Object.defineProperty(globalThis, name, { value: undefined, configurable: false, writable: false });
}
"""

_MEDIA: dict[str, object] = {
    "features": [
        {"name": "prefers-color-scheme", "value": "light"},
        {"name": "prefers-reduced-motion", "value": "no-preference"},
        {"name": "forced-colors", "value": "none"},
        {"name": "prefers-contrast", "value": "no-preference"},
    ]
}

POPUP_S = 5.0

NamePopup = Callable[[Page | None], Awaitable[str]]
"""Names a popup's generation, given its opener; raises AdmissionRefusedError when there is no place for it."""


async def _told(page: Page, method: str, params: Mapping[str, object]) -> None:
    await send(page.session, method, params, deadline_s=ATTACH_S)


class Profile:
    """A context shared by one opened page and the popups that come of it."""

    def __init__(
        self,
        engine: "Engine",
        context: Context,
        *,
        egress: EgressProxy | None,
        guarded: Callable[[str], bool] | None,
        viewport: Viewport,
        clock: Callable[[], float],
    ) -> None:
        self.context = context
        self.pages: dict[str, Page] = {}
        self.on_popup: list[Callable[[Page, Page | None], None]] = []
        self.name_popup: NamePopup = self._own_name
        self.egress = egress
        self.guarded = guarded
        self.trace = Trace(self)
        self._engine = engine
        self._viewport = viewport
        self._clock = clock
        self._closing = False
        self._first_target: asyncio.Future[Target] = asyncio.get_running_loop().create_future()
        context.on_target = self._target
        context.on_download = self._download

    @property
    def _sealed(self) -> bool:
        """Whether the proxy admits hosts that documents may not come from: then no window may open."""
        return self.egress is not None and bool(self.egress.grant.resources)

    def admits(self, url: str) -> bool:
        """Whether a document of this address may be shown here."""
        return self.guarded is None or self.guarded(url)

    def rename(self, page: Page, generation: str) -> None:
        """Give a page the name of another life; only before anybody knows it by the one that it has."""
        for known in (self.pages, self._engine.pages):
            known[generation] = known.pop(page.generation)
        page.generation = generation

    async def first(self, generation: str) -> Page:
        """The page the context was opened for; the caller holds its place. The context goes if there is no page."""
        try:
            return await self._first(generation)
        except BaseException:
            self._closing = True
            page = self.pages.pop(generation, None)
            if page is not None:  # its place goes back with this very error
                self._engine.pages.pop(generation, None)
                page.end("closed")
            started(self._engine.tasks, self._close())
            raise

    async def _first(self, generation: str) -> Page:
        egress = self.egress
        credential = Credential(egress.username, egress.password) if egress is not None else None
        _, page = await asyncio.gather(self.context.new_page(), self._first_page(generation, credential))
        return page

    async def _first_page(self, generation: str, credential: Credential | None) -> Page:
        async with asyncio.timeout(ATTACH_S):
            target = await self._first_target
        return await self._bind(target, generation, credential, bare=True)

    def _target(self, target: Target) -> None:
        if not self._first_target.done():
            self._first_target.set_result(target)
        elif self._sealed:
            self._discard(target)
            for page in self.pages.values():
                if target.opener in {None, page.target.id}:
                    page.popup_arrived(None)
        else:
            started(self._engine.tasks, self._admit_popup(target))

    def _download(self, file: DownloadFile) -> bool:
        for page in self.pages.values():
            if file.begun.frame_id in page.frames.facts:
                page.pending.download_begun(file)
                return True
        return False

    async def _bind(
        self, target: Target, generation: str, credential: Credential | None = None, *, bare: bool = False
    ) -> Page:
        engine = self._engine
        page = Page(generation=generation, context=self.context, target=target, tasks=engine.tasks, clock=self._clock)
        page.limitations = engine.limitations
        page.frames.bare = bare
        page.profile = self
        page.pending = Pending(page)
        page.logs = Logs(page)
        page.network = Network(page)
        page.human = HumanHand(page)
        page.screencast = Screencast(page)
        page.display = Display(page, windows=engine.settings.headed)
        page.on_ended.append(lambda _reason: self._ended(page))
        if self.guarded is not None:
            guard = DocumentGuard(page, self.guarded, credential)
            page.frames.on_session.append(guard.hold_later)
            await page.attach(guard.hold(page.session), *self._dressed(page))
        else:
            await page.attach(*self._dressed(page))
        page.require_live()
        self.pages[generation] = page
        engine.pages[generation] = page
        for told in engine.on_page:
            told(page)
        return page

    def _dressed(self, page: Page) -> Iterator[Coroutine[object, object, None]]:
        """How a page looks and behaves from its first moment."""
        page.frames.scripts.append(_NO_PEERS)
        view = self._viewport
        screen = {"screenWidth": view.width, "screenHeight": view.height, "mobile": False}
        size = {"width": view.width, "height": view.height, "deviceScaleFactor": view.scale, **screen}
        yield _told(page, "Emulation.setDeviceMetricsOverride", size)
        yield _told(page, "Emulation.setFocusEmulationEnabled", {"enabled": True})
        yield _told(page, "Emulation.setEmulatedMedia", _MEDIA)

    async def _own_name(self, _opener: Page | None) -> str:
        return self._engine.name()

    async def _admit_popup(self, target: Target) -> None:
        opener = next((page for page in self.pages.values() if page.target.id == target.opener), None)
        name: str | None = None
        try:
            self._engine.admit()
            try:
                page = await self._bind(target, await self.name_popup(opener))
            except BrowserError:
                self._engine.release()
                raise
            await page.first_document(POPUP_S)
            name = page.generation
            for told in self.on_popup:
                told(page, opener)
        except BrowserError:
            self._discard(target)
        finally:
            if opener is not None:
                opener.popup_arrived(name)

    def _discard(self, target: Target) -> None:
        # It must run to be closed: its opener's script would wait with it. Nothing that it asks for goes out.
        target.session.post("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        target.session.post("Runtime.runIfWaitingForDebugger")
        self.context.chromium.close_target(target.id)

    def _ended(self, page: Page) -> None:
        if self.pages.pop(page.generation, None) is None:
            return
        for directory in page.staged:
            if not started(self._engine.tasks, asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)):
                shutil.rmtree(directory, ignore_errors=True)
        self._engine.pages.pop(page.generation, None)
        self._engine.release()
        if not self.pages and not self._closing:
            self._closing = True
            started(self._engine.tasks, self._close())

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(5):
                await self.context.close()
        except (TimeoutError, BrowserError):
            pass  # the engine is gone, and the context with it
