"""Chromium driven by Playwright alone, for pages that Lomi wrote and that a person would open in a browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from browser.process import find_engine


@asynccontextmanager
async def plain_chromium() -> AsyncIterator[Browser]:
    """Run it until the block is left."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_engine(headed=False))
        try:
            yield browser
        finally:
            await browser.close()
