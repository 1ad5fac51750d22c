"""Ties the browser library to the port: pages of this broker, their tools, their generations."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

import msgspec

from browser.choice import browser_choice
from browser.egress import RefusalIdentity
from browser.engine import EngineSettings
from browser.port.actions import BrowserActs
from browser.port.lazy import LazyEngine
from browser.port.lives import Lives
from browser.port.reads import BrowserReads
from browser.port.records import BrowserRecords
from browser.port.seen import Seeing
from browser.port.transfers import BrowserTransfers
from browser.port.videos import BrowserVideos
from lomi.core.own_ports import OwnPorts
from lomi.core.port import Act, Adapter, AdapterFactory, Ledger, Read
from lomi.core.recording import Recordings

_POINTED = ("lomi_browser_click", "lomi_browser_fill", "lomi_browser_key", "lomi_browser_scroll")


def _tools(lives: Lives, ledger: Ledger, recordings: Recordings) -> tuple[Read | Act, ...]:
    """The handlers, for the broker's table."""
    seeing = Seeing(lives)
    acts = BrowserActs(lives, ledger, seeing)
    records = BrowserRecords(lives, ledger)
    reads = BrowserReads(lives, ledger, BrowserVideos(lives, recordings))
    moves = BrowserTransfers(lives, ledger, seeing)
    there, pointed = lives.check_open, lives.check_ref
    return (
        Act(tool="lomi_browser_open", act=acts.open),
        Act(tool="lomi_browser_navigate", act=acts.navigate, check=there),
        Act(tool="lomi_browser_download", act=moves.download, check=there),
        Act(tool="lomi_browser_upload", act=moves.upload, check=pointed, plan=moves.plan),
        *(Act(tool=name, act=acts.act, check=pointed) for name in _POINTED),
        Read(tool="lomi_browser_snapshot", read=reads.snapshot, check=there),
        Read(tool="lomi_browser_wait", read=reads.wait, check=there),
        Read(tool="lomi_browser_screenshot", read=reads.screenshot, check=lives.check_shown),
        Read(tool="lomi_browser_logs", read=records.logs, check=there),
    )


def browser_adapter(environment: Mapping[str, str], own_ports: OwnPorts, most_pages: int) -> AdapterFactory:
    """The adapter, for the composition root.

    Raises:
        BrowserChoiceError: the environment chooses a browser that can't be run.
    """
    headed, executable = browser_choice(environment)
    settings = EngineSettings(headed=headed, executable=executable, most_pages=most_pages)

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return _open(environment, own_ports, settings, ledger)

    return factory


@asynccontextmanager
async def _open(
    environment: Mapping[str, str], own_ports: OwnPorts, settings: EngineSettings, ledger: Ledger
) -> AsyncIterator[Adapter]:
    identity = RefusalIdentity.create(datetime.now(UTC))
    settings = msgspec.structs.replace(settings, arguments=(identity.engine_argument,))
    async with asyncio.TaskGroup() as tasks:
        engine = LazyEngine(settings, environment, tasks)
        lives = Lives(ledger, engine, tasks, own_ports, identity)
        recordings = Recordings(ledger, tasks)
        try:
            tools = _tools(lives, ledger, recordings)
            yield Adapter(family="browser", tools=tools, runtimes=lives, limitations=engine.limitations)
        finally:
            recordings.close()
            await lives.close_all()
            engine.close()
