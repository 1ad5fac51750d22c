"""The engine pool.

One warm engine process, an isolated context per `open`, restarted after a crash, never outliving us.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from playwright.async_api import Browser, CDPSession, Playwright, ProxySettings, async_playwright
from playwright.async_api import Error as PlaywrightError

from browser.egress import EgressProxy, HostSpellingError, Origin
from browser.egress.chromium import ENGINE_ARGUMENTS, proxy_settings
from browser.errors import (
    AdmissionRefusedError,
    BrowserError,
    EngineUnavailableError,
    PageEndedError,
    UnresponsiveError,
)
from browser.frames import origin_of
from browser.page import Page
from browser.process import EngineProcess, Watch, find_engine, identify, memory_available
from browser.profile import Profile
from browser.seal import Seal
from browser.values import Viewport
from browser.wire import send

MOST_PAGES = 16
MEMORY_PER_PAGE = 192 << 20

_ARGUMENTS = (
    *ENGINE_ARGUMENTS,
    "--disable-smooth-scrolling",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--no-pings",
    "--proxy-bypass-list=<-loopback>",
)


class EngineSettings(msgspec.Struct, frozen=True):
    """How to run engines.

    Attributes:
        frame_rate_limit: off answers faster and lets animated pages burn processor time.
        arguments: further engine arguments, such as `RefusalIdentity.engine_argument`.
    """

    engine: Literal["chromium", "firefox", "webkit"] = "chromium"
    headed: bool = False
    executable: Path | None = None
    most_pages: int = MOST_PAGES
    memory_per_page: int = MEMORY_PER_PAGE
    frame_rate_limit: bool = True
    viewport: Viewport = Viewport(1280, 720)
    start_s: float = 20.0
    arguments: tuple[str, ...] = ()


class Engine:
    """A running pool. Get one with `running`."""

    def __init__(
        self,
        settings: EngineSettings,
        playwright: Playwright,
        tasks: asyncio.TaskGroup,
        clock: Callable[[], float],
        environment: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.tasks = tasks
        self.pages: dict[str, Page] = {}
        self.process: EngineProcess | None = None
        self.version = ""
        self.starts = 0
        self.on_page: list[Callable[[Page], None]] = []
        self.on_crash: list[Callable[[], None]] = []
        self._playwright = playwright
        self._clock = clock
        self._environment = environment
        self._browser: Browser | None = None
        self._watch: Watch | None = None
        self._seal: Seal | None = None
        self._starting = asyncio.Lock()
        self._sealing = asyncio.Lock()
        self._admitted = 0
        self._names = 0
        self._stopping = False

    @property
    def limitations(self) -> tuple[str, ...]:
        """What the user of this engine must know."""
        return ("engine_sandbox_off_as_root",) if os.geteuid() == 0 else ()

    async def warm(self) -> None:
        """Start the engine if it is not running.

        Raises:
            EngineUnavailableError: it can't be started.
        """
        async with self._starting:
            if self._stopping:
                raise EngineUnavailableError("engine_stopped")
            if self._browser is not None and self._browser.is_connected():
                return
            await self._end_watch()
            await self._launch()

    async def _launch(self) -> None:
        settings = self.settings
        if settings.engine != "chromium":
            raise EngineUnavailableError("engine_unsupported", engine=settings.engine)
        found = find_engine(headed=settings.headed, chosen=settings.executable)
        if found is None and settings.executable is not None:
            raise EngineUnavailableError("engine_missing", executable=str(settings.executable))
        arguments = [
            *_ARGUMENTS,
            *settings.arguments,
            *(() if settings.frame_rate_limit else ("--disable-frame-rate-limit", "--disable-gpu-vsync")),
        ]
        try:
            browser = await self._playwright.chromium.launch(
                executable_path=found,
                headless=not settings.headed,
                chromium_sandbox=os.geteuid() != 0,
                args=arguments,
                timeout=settings.start_s * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
            session = await browser.new_browser_cdp_session()
            answer = msgspec.convert(await session.send("SystemInfo.getProcessInfo"), _Processes, strict=False)
            await session.detach()
        except PlaywrightError as error:
            reason = "engine_missing" if "Executable doesn't exist" in str(error) else "engine_start_failed"
            raise EngineUnavailableError(reason, said=str(error).splitlines()[0][:300]) from error
        pid = next((process.id for process in answer.process_info if process.type == "browser"), 0)
        self.process = identify(pid)
        if self.process is not None:
            self._watch = await Watch.over(self.process, self._environment)
        browser.on("disconnected", lambda _browser: self._lost(browser))
        self._browser = browser
        self.version = browser.version
        self.starts += 1

    async def seal(self, session: CDPSession, refused: Callable[[str | None], None]) -> None:
        """Let no window open in the context of a page; `refused` is told the opener's target of each that tried.

        Raises:
            EngineUnavailableError, PageEndedError: the engine went away.
        """
        async with self._sealing:
            if self._seal is None:
                self._seal = await Seal.over(self._running(), self._send_later)
        await self._seal.close(session, refused)

    def _send_later(self, session: CDPSession, method: str, params: dict[str, object]) -> None:
        self.tasks.create_task(self._send_quietly(session, method, params))

    async def _send_quietly(self, session: CDPSession, method: str, params: dict[str, object]) -> None:
        with suppress(BrowserError):  # the target may have gone by itself
            await send(session, method, params)

    def _lost(self, browser: Browser) -> None:
        if browser is not self._browser:
            return
        self._browser = None
        self._seal = None
        for page in list(self.pages.values()):
            page.end("engine_stopped" if self._stopping else "engine_crashed")
        if not self._stopping:
            for told in self.on_crash:
                told()

    def admit(self) -> None:
        """Take one place for a page. `release` gives it back.

        Raises:
            AdmissionRefusedError: as many pages as allowed are open, or memory is low.
        """
        if self._admitted >= self.settings.most_pages:
            raise AdmissionRefusedError("browsers_full", most=self.settings.most_pages)
        available = memory_available()
        if available < self.settings.memory_per_page:
            raise AdmissionRefusedError("memory_low", available=available, needed=self.settings.memory_per_page)
        self._admitted += 1

    def release(self) -> None:
        """Give a place back."""
        self._admitted -= 1

    def name(self) -> str:
        """A generation name for callers who bring none."""
        self._names += 1
        return f"b{self._names}"

    async def open(
        self,
        *,
        generation: str | None = None,
        egress: EgressProxy | None = None,
        viewport: Viewport | None = None,
        admits: Callable[[str], bool] | None = None,
    ) -> Page:
        """A blank page in a context of its own.

        Args:
            generation: the name of this life; the pool's own counter when left out.
            egress: the proxy everything of the context goes through; without one nothing holds the context.
            viewport: size in CSS pixels.
            admits: whether a document of this address may be shown; left out, the proxy's granted origins.

        Raises:
            AdmissionRefusedError, EngineUnavailableError: nothing was opened.
        """
        self.admit()
        try:
            await self.warm()
            profile = await self._profile(self._running(), egress, viewport or self.settings.viewport, admits)
            return await profile.first(generation or self.name())
        except (PlaywrightError, PageEndedError, UnresponsiveError) as error:
            self.release()
            said = str(error).splitlines()[0][:300]
            raise EngineUnavailableError("engine_start_failed", said=said) from error
        except BaseException:
            self.release()
            raise

    def _running(self) -> Browser:
        if self._browser is None:
            raise EngineUnavailableError("engine_start_failed")
        return self._browser

    async def _profile(
        self, browser: Browser, egress: EgressProxy | None, viewport: Viewport, admits: Callable[[str], bool] | None
    ) -> Profile:
        way = proxy_settings(egress) if egress is not None else None
        proxy = ProxySettings(server=way["server"], bypass=way["bypass"]) if way is not None else None
        context = await browser.new_context(
            viewport={"width": viewport.width, "height": viewport.height},
            device_scale_factor=viewport.scale,
            proxy=proxy,
            accept_downloads=True,
        )
        guarded = admits if admits is not None or egress is None else _within(egress)
        return Profile(self, context, egress=egress, guarded=guarded, clock=self._clock)

    async def stop(self) -> None:
        """End every page and the engine."""
        self._stopping = True
        browser, self._browser = self._browser, None
        for page in list(self.pages.values()):
            page.end("engine_stopped")
        if browser is not None:
            try:
                async with asyncio.timeout(4):
                    await browser.close()
            except (TimeoutError, PlaywrightError):
                pass  # the watch kills what did not go
        await self._end_watch()

    async def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.finish()


def _within(egress: EgressProxy) -> Callable[[str], bool]:
    """Whether documents of an address are granted, by the grant in force at that instant."""

    def admits(url: str) -> bool:
        try:
            origin = Origin.parse(origin_of(url))
        except HostSpellingError:
            return False
        return egress.grant.everywhere or origin in egress.grant.origins

    return admits


class _Process(msgspec.Struct):
    id: int = 0
    type: str = ""


class _Processes(msgspec.Struct, rename="camel"):
    process_info: list[_Process] = []


@asynccontextmanager
async def running(
    settings: EngineSettings | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    environment: Mapping[str, str] = os.environ,
) -> AsyncIterator[Engine]:
    """A pool for the length of a block.

    The engine starts with `warm` or the first `open`; after the block nothing of it is left.
    """
    async with async_playwright() as playwright:
        tasks = asyncio.TaskGroup()
        await tasks.__aenter__()
        engine = Engine(settings or EngineSettings(), playwright, tasks, clock, environment)
        try:
            yield engine
        finally:
            await engine.stop()
            await tasks.__aexit__(None, None, None)  # told of no error, so that the block's own error leaves unwrapped
