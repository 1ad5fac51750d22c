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

from browser.egress import EgressProxy, HostSpellingError, Origin
from browser.egress.chromium import ENGINE_ARGUMENTS, proxy_settings
from browser.errors import (
    AdmissionRefusedError,
    EngineUnavailableError,
    PageEndedError,
    ProtocolError,
    UnresponsiveError,
)
from browser.frames import origin_of
from browser.inspector.chromium import Chromium, DownloadFile
from browser.inspector.program import Program
from browser.page import Page, started
from browser.process import EngineProcess, Watch, find_engine, identify, limitations, memory_available
from browser.profile import Profile
from browser.values import Viewport

MOST_PAGES = 16
MEMORY_PER_PAGE = 192 << 20
SWEEP_S = 5.0

_ARGUMENTS = (*ENGINE_ARGUMENTS, "--proxy-bypass-list=<-loopback>")


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
    """A running pool. Get one with `running`.

    `on_short` is told before a page is refused its place: what only waits may give up its own.
    """

    def __init__(
        self,
        settings: EngineSettings,
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
        self.on_short: Callable[[], None] = lambda: None
        self._clock = clock
        self._environment = environment
        self._chromium: Chromium | None = None
        self._program: Program | None = None
        self._watch: Watch | None = None
        self._starting = asyncio.Lock()
        self._admitted = 0
        self._names = 0
        self._stopping = False

    @property
    def limitations(self) -> tuple[str, ...]:
        """What the user of this engine must know."""
        return limitations()

    @property
    def at_leisure(self) -> bool:
        """Whether it runs, and more than half of its places and the memory of two pages are free."""
        runs = self._chromium is not None and self._chromium.connected
        free = 2 * self._admitted < self.settings.most_pages
        return runs and free and memory_available() >= 2 * self.settings.memory_per_page

    async def warm(self) -> None:
        """Start the engine if it is not running.

        Raises:
            EngineUnavailableError: it can't be started.
        """
        async with self._starting:
            if self._stopping:
                raise EngineUnavailableError("engine_stopped")
            if self._chromium is not None and self._chromium.connected:
                return
            await self._end_last()
            await self._launch()

    async def _launch(self) -> None:
        settings = self.settings
        if settings.engine != "chromium":
            raise EngineUnavailableError("engine_unsupported", engine=settings.engine)
        found = find_engine(headed=settings.headed, chosen=settings.executable, environment=self._environment)
        if found is None:
            raise EngineUnavailableError("engine_missing", executable=str(settings.executable or "chromium"))
        arguments = [
            *_ARGUMENTS,
            *settings.arguments,
            *(() if settings.frame_rate_limit else ("--disable-frame-rate-limit", "--disable-gpu-vsync")),
        ]
        sandbox = os.geteuid() != 0
        try:
            self._program = program = await Program.start(
                found, arguments, headed=settings.headed, sandbox=sandbox, environment=self._environment
            )
        except OSError as error:
            raise EngineUnavailableError("engine_start_failed", said=str(error)[:300]) from error
        self.tasks.create_task(program.read_errors())
        self.process = identify(program.pid, str(program.directory))
        if self.process is not None:
            self._watch = await Watch.over(self.process, self._environment)
        try:
            async with asyncio.timeout(settings.start_s):
                chromium = await Chromium.over(program)
        except (TimeoutError, PageEndedError, ProtocolError) as error:
            await self._end_last()
            said = program.tail.decode("utf-8", "replace").strip().rpartition("\n")[2][-300:]
            raise EngineUnavailableError("engine_start_failed", said=said) from error
        chromium.on_lost = lambda: self._lost(chromium)
        chromium.on_stray = self._drop
        self.tasks.create_task(self._sweep(chromium))
        self._chromium = chromium
        self.version = chromium.version
        self.starts += 1

    def _lost(self, chromium: Chromium) -> None:
        if chromium is not self._chromium:
            return
        self._chromium = None
        for page in list(self.pages.values()):
            page.end("engine_stopped" if self._stopping else "engine_crashed")
        if not self._stopping:
            for told in self.on_crash:
                told()

    async def _sweep(self, chromium: Chromium) -> None:
        """Look after its downloads for as long as it runs."""
        over = asyncio.Event()
        chromium.root.on_ended.append(over.set)
        while chromium.connected:
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_S):
                    await over.wait()
            await chromium.sweep()

    def _drop(self, file: DownloadFile) -> None:
        """Nobody could be told of this download, nor end it."""
        started(self.tasks, file.drop())

    def admit(self) -> None:
        """Take one place for a page. `release` gives it back.

        Raises:
            AdmissionRefusedError: as many pages as allowed are open, or memory is low.
        """
        available = memory_available()
        if self._admitted >= self.settings.most_pages or available < self.settings.memory_per_page:
            self.on_short()
        if self._admitted >= self.settings.most_pages:
            raise AdmissionRefusedError("browsers_full", most=self.settings.most_pages)
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
            profile = await self._profile(egress, viewport or self.settings.viewport, admits)
            return await profile.first(generation or self.name())
        except (PageEndedError, ProtocolError, UnresponsiveError, TimeoutError) as error:
            self.release()
            said = str(error).splitlines()[0][:300]
            raise EngineUnavailableError("engine_start_failed", said=said) from error
        except BaseException:
            self.release()
            raise

    async def _profile(
        self, egress: EgressProxy | None, viewport: Viewport, admits: Callable[[str], bool] | None
    ) -> Profile:
        if self._chromium is None:
            raise EngineUnavailableError("engine_start_failed")
        way = proxy_settings(egress) if egress is not None else None
        context = await self._chromium.new_context(way["server"] if way else None, way["bypass"] if way else "")
        guarded = admits if admits is not None or egress is None else _within(egress)
        return Profile(self, context, egress=egress, guarded=guarded, viewport=viewport, clock=self._clock)

    async def stop(self) -> None:
        """End every page and the engine."""
        self._stopping = True
        chromium, self._chromium = self._chromium, None
        for page in list(self.pages.values()):
            page.end("engine_stopped")
        if chromium is not None:
            await chromium.close()
        await self._end_last()

    async def _end_last(self) -> None:
        """See off what is left of the engine before: its process group, and its directory."""
        watch, self._watch = self._watch, None
        program, self._program = self._program, None
        if watch is not None:
            await watch.finish()
        if program is not None:
            await program.end()


def _within(egress: EgressProxy) -> Callable[[str], bool]:
    """Whether documents of an address are granted, by the grant in force at that instant."""

    def admits(url: str) -> bool:
        try:
            origin = Origin.parse(origin_of(url))
        except HostSpellingError:
            return False
        return egress.grant.everywhere or origin in egress.grant.origins

    return admits


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
    tasks = asyncio.TaskGroup()
    await tasks.__aenter__()
    engine = Engine(settings or EngineSettings(), tasks, clock, environment)
    try:
        yield engine
    finally:
        await engine.stop()
        await tasks.__aexit__(None, None, None)  # told of no error, so that the block's own error leaves unwrapped
