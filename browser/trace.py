"""A Playwright trace of a page's context, on request: pictures, snapshots and network between start and stop.

A trace holds what the page held, typed text and cookies included: it is for the person, as an artifact.
"""

import asyncio
from pathlib import Path

from playwright.async_api import Error as PlaywrightError

from browser.errors import NoSuchThingError, ProtocolError
from browser.profile import Profile
from browser.wire import translated


class Trace:
    """The one trace that may run over a context."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.running = False

    async def start(self) -> None:
        """Begin. Raises ProtocolError when one is running already, PageEndedError."""
        if self.running:
            raise ProtocolError("protocol_error", said="a trace is running")
        try:
            await self._profile.context.tracing.start(screenshots=True, snapshots=True)
        except PlaywrightError as error:
            raise translated(error) from error
        self.running = True

    async def stop(self, into: Path) -> int:
        """End it and write the zip file; its size in bytes. Raises NoSuchThingError when none runs, PageEndedError."""
        if not self.running:
            raise NoSuchThingError("no_such_trace")
        self.running = False
        try:
            await self._profile.context.tracing.stop(path=into)
        except PlaywrightError as error:
            raise translated(error) from error
        return (await asyncio.to_thread(into.stat)).st_size
