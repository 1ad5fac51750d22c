"""One engine per module, one site and one fresh context per test."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parent))

from browser_site import Site, serving

from browser import navigate
from browser.engine import Engine, running
from browser.page import Page
from browser.process import find_engine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without an engine on this machine these tests can't run, and say so."""
    if find_engine(headed=False) is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[Engine]:
    async with running() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with serving() as local:
        yield local


@pytest_asyncio.fixture(loop_scope="module")
async def page(engine: Engine) -> AsyncIterator[Page]:
    opened = await engine.open()
    try:
        yield opened
    finally:
        for left in list(opened.profile.pages.values()):
            await navigate.close(left)
        assert opened.faults.count == 0, opened.faults.last
