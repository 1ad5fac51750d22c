"""Ties the browser library to the port: pages of this broker, their tools, their generations."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from browser import wait as waits
from browser.capture import capture
from browser.egress import RefusalIdentity
from browser.engine import EngineSettings
from browser.errors import BrowserError
from browser.navigate import navigate
from browser.page import Page
from browser.port import acts, reads, views
from browser.port.faults import acting, reading
from browser.port.lazy import LazyEngine
from browser.port.lives import Lives
from lomi.contract.browser import (
    BrowserLogsInput,
    BrowserNavigateInput,
    BrowserNavigation,
    BrowserOpened,
    BrowserOpenInput,
    BrowserScreenshotInput,
    BrowserSnapshotInput,
    BrowserWait,
    BrowserWaitInput,
    PageAction,
)
from lomi.contract.codes import ErrorCode
from lomi.contract.model import Observation
from lomi.core.own_ports import OwnPorts
from lomi.core.port import Act, Adapter, AdapterFactory, Call, Ledger, Outcome, Permit, Picture, Read, Reply
from lomi.core.refusal import Refusal


class BrowserAdapter:
    """Handlers over pages."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger

    def _page(self, call: Call[Any]) -> Page:
        return self._lives.page(call.generation)

    async def open(self, call: Call[BrowserOpenInput], permit: Permit) -> Outcome:
        """A page in a panel of its own, leased to its opener; one that does not load is open all the same."""
        given = call.input
        assert call.workspace is not None
        async with permit.effect():
            panel = await self._ledger.open_panel(call.workspace.id, "browser", given.url[:256], None)
            assert panel.resource is not None
            try:
                with acting():
                    generation, page = await self._lives.open(panel.resource, call.grant)
            except BaseException:
                await self._ledger.close_panel(panel.id)
                raise
            self._ledger.grant_lease(generation, call.session_id)
            seen, loaded = await _first_document(page, given.url)
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
        return Outcome(result=opened, observe=_already(seen))

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
        return Outcome(result=result, observe=_already(views.observation(went.observation)))

    async def act(self, call: Call[PageAction], permit: Permit) -> Outcome:
        """Click, fill, key or scroll: once, as trusted input."""
        page = self._page(call)
        with acting():
            acted = await acts.act(page, call.input, permit.effect())
        return Outcome(
            result=acts.interaction(page, call.input, acted), observe=_already(views.observation(acted.observation))
        )

    async def snapshot(self, call: Call[BrowserSnapshotInput]) -> Reply:
        """What the page offers."""
        with reading():
            return await reads.snapshot_reply(self._page(call), call.input)

    async def wait(self, call: Call[BrowserWaitInput]) -> Reply:
        """Wait for a condition; absence is only said with a snapshot that proves it."""
        given, page = call.input, self._page(call)
        with reading():
            waited = await waits.wait(page, reads.condition_of(given.condition), timeout_s=given.timeout_ms / 1000)
        if waited.outcome == "no_observation" or waited.snapshot is None:
            raise Refusal(ErrorCode.DEADLINE_EXCEEDED, "no_observation")
        matched = waited.outcome == "matched"
        seen = views.snapshot_data(waited.snapshot, given, outline=given.form == "outline", most=500, most_bytes=49_152)
        return Reply(
            data=BrowserWait(matched=matched, elapsed_ms=round(waited.elapsed_ms), snapshot=seen),
            text=f"{waited.outcome} after {waited.elapsed_ms:.0f} ms\n{views.snapshot_text(waited.snapshot)}",
        )

    async def screenshot(self, call: Call[BrowserScreenshotInput]) -> Reply:
        """A picture of viewport, element or document: stored as an artifact, bounded beside the reply."""
        given, page = call.input, self._page(call)
        with reading():
            taken = await capture(
                page,
                full_page=given.area == "full_page",
                ref=given.element_ref,
                snapshot_id=given.snapshot_id,
                most_width=given.max_width,
                most_bytes=min(given.max_bytes, 300_000),
            )
        stored = await self._ledger.artifacts.put_image(call, *reads.kept_picture(call, page, taken))
        return Reply(
            data=reads.found(stored),
            text=views.capture_text(taken) + f"\nartifactId {stored.id}",
            pictures=(Picture("image/png", taken.png),),
        )

    async def logs(self, call: Call[BrowserLogsInput]) -> Reply:
        """A page of one log."""
        given, page = call.input, self._page(call)
        with reading():
            read = page.logs.read(given.log_kind, cursor=given.cursor, limit=given.limit)
        lines = [f"{entry.sequence} {entry.level or entry.kind}: {entry.message}" for entry in read.entries]
        return Reply(data=views.logs_data(read, given, page.origin), text="\n".join(lines) or "no messages")

    def tools(self) -> tuple[Read | Act, ...]:
        """The handlers, for the broker's table."""
        there, ref = self._lives.check_open, self._lives.check_ref
        pointed = ("lomi_browser_click", "lomi_browser_fill", "lomi_browser_key", "lomi_browser_scroll")
        return (
            Act(tool="lomi_browser_open", act=self.open),
            Act(tool="lomi_browser_navigate", act=self.navigate, check=there),
            *(Act(tool=name, act=self.act, check=ref) for name in pointed),
            Read(tool="lomi_browser_snapshot", read=self.snapshot, check=there),
            Read(tool="lomi_browser_wait", read=self.wait, check=there),
            Read(tool="lomi_browser_screenshot", read=self.screenshot, check=ref),
            Read(tool="lomi_browser_logs", read=self.logs, check=there),
        )


def _already(seen: Observation) -> Any:
    async def observe() -> Observation:
        return seen

    return observe


async def _first_document(page: Page, url: str) -> tuple[Observation, bool]:
    """Load the first document; a failure is seen, not an error: the page is open and can be navigated."""
    if url == "about:blank":
        return Observation(settled=True), True
    try:
        went = await navigate(page, url)
    except BrowserError as error:
        return Observation(settled=True, lines=(f"the page did not load: {error.reason}",)), False
    return views.observation(went.observation), went.committed


def browser_adapter(environment: Mapping[str, str], own_ports: OwnPorts) -> AdapterFactory:
    """The adapter, for the composition root."""

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return _open(environment, own_ports, ledger)

    return factory


@asynccontextmanager
async def _open(environment: Mapping[str, str], own_ports: OwnPorts, ledger: Ledger) -> AsyncIterator[Adapter]:
    identity = RefusalIdentity.create(datetime.now(UTC))
    settings = EngineSettings(arguments=(identity.engine_argument,))
    async with asyncio.TaskGroup() as tasks:
        engine = LazyEngine(settings, environment, tasks)
        lives = Lives(ledger, engine, tasks, own_ports, identity)
        adapter = BrowserAdapter(lives, ledger)
        try:
            yield Adapter(family="browser", tools=adapter.tools(), runtimes=lives, limitations=engine.limitations)
        finally:
            await lives.close_all()
            engine.close()
