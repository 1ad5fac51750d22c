"""A trace of a page's context, on request, in the form that Playwright's trace viewer opens.

Pictures, addresses, console lines and requests between start and stop. A trace holds what the page held: it is for the
person, as an artifact.
"""

import asyncio
import hashlib
import time
import zipfile
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from browser.capture import capture
from browser.errors import BlockedError, BrowserError, NoSuchThingError, PageEndedError
from browser.network import NetworkEntry
from browser.page import Page

if TYPE_CHECKING:
    from browser.profile import Profile

TRACE_S = 600.0
_VERSION = 8
MOST_PICTURES = 2_000
MOST_LINES = 10_000


class _Recording:
    """What one page showed since the start."""

    def __init__(self, page: Page, began: float) -> None:
        self.page = page
        self.lines: list[dict[str, object]] = []
        self.pictures: dict[str, bytes] = {}
        self.over = asyncio.Event()
        self.done = asyncio.Event()
        self._began = began
        self._from = page.network.read(limit=1_000).next_cursor
        page.on_navigation.append(self._navigated)
        page.on_ended.append(self._ended)

    def _now(self) -> float:
        return (self.page.clock() - self._began) * 1000

    def _add(self, kind: str, **fields: object) -> None:
        if len(self.lines) < MOST_LINES:
            self.lines.append({"type": kind, "pageId": self.page.generation, **fields})

    def _navigated(self) -> None:
        if not self.over.is_set():
            params = {"pageId": self.page.generation, "url": self.page.url}
            self._add("event", time=self._now(), **{"class": "Page"}, method="navigated", params=params)

    def _ended(self, _reason: str) -> None:
        self.over.set()

    def close(self) -> None:
        """Record nothing more, and let the page forget it."""
        self.over.set()
        self.page.on_navigation.remove(self._navigated)
        self.page.on_ended.remove(self._ended)

    async def watch(self) -> None:
        """Keep each picture, until the end; where none came in time, one that is taken then."""
        try:
            async with asyncio.TaskGroup() as tasks:
                taking = tasks.create_task(self._take())
                await self.over.wait()
                taking.cancel()
            if not self.pictures:
                taken = await capture(self.page)
                self._picture(taken.png, "png", taken.width, taken.height)
        except BrowserError:
            pass  # the page ended
        finally:
            self.done.set()

    async def _take(self) -> None:
        with suppress(BrowserError):
            async with aclosing(self.page.screencast.frames()) as frames:
                async for frame in frames:
                    self._picture(frame.jpeg, "jpeg", frame.width, frame.height)
                    if len(self.pictures) >= MOST_PICTURES:
                        return

    def _picture(self, content: bytes, form: str, width: float, height: float) -> None:
        name = f"{self.page.generation}-{hashlib.sha1(content, usedforsecurity=False).hexdigest()}.{form}"
        self.pictures[name] = content
        self._add("screencast-frame", sha1=name, timestamp=self._now(), width=width, height=height)

    def finished(self) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Its lines and its requests, once `watch` has ended."""
        page = self.page
        nowhere = {"url": "", "lineNumber": 0, "columnNumber": 0}  # the viewer opens no trace without one
        for entry in page.logs.read("console", limit=64).entries:
            said = {"messageType": entry.level or "log", "text": entry.message, "args": [], "location": nowhere}
            self._add("console", time=self._now(), **said)
        requests = page.network.read(cursor=self._from, limit=1_000).entries
        return self.lines, [{"type": "resource-snapshot", "snapshot": _har(page, entry)} for entry in requests]


def _har(page: Page, entry: NetworkEntry) -> dict[str, object]:
    nothing = {"headers": [], "cookies": [], "headersSize": -1, "bodySize": -1, "httpVersion": "HTTP/1.1"}
    return {
        "pageref": page.generation,
        "startedDateTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.started_at_ms / 1000)),
        "time": entry.duration_ms or -1,
        "request": {**nothing, "method": entry.method, "url": entry.url, "queryString": []},
        "response": {
            **nothing,
            "status": entry.status,
            "statusText": entry.failed or "",
            "redirectURL": "",
            "content": {"size": entry.byte_length or 0, "mimeType": entry.mime_type},
        },
        "cache": {},
        "timings": {"send": -1, "wait": -1, "receive": -1},
    }


class Trace:
    """The one trace that may run over a context; dropped when nobody has stopped it in time.

    It covers the pages that are open when it starts.
    """

    def __init__(self, profile: "Profile", *, seconds: float = TRACE_S, now: Callable[[], float] = time.time) -> None:
        self.running = False
        self._profile = profile
        self._seconds = seconds
        self._now = now
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0
        self._recordings: list[_Recording] = []

    async def start(self) -> None:
        """Begin. Raises BlockedError (``trace_running``) when one is running already, PageEndedError."""
        if self.running:
            raise BlockedError("trace_running")
        pages = list(self._profile.pages.values())
        if not pages:
            raise PageEndedError("closed")
        self.running = True
        self._began = self._now()
        self._recordings = [_Recording(page, page.clock()) for page in pages]
        for recording in self._recordings:
            recording.page.background(recording.watch())
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self.drop)

    async def stop(self, into: Path) -> int:
        """End it and write the zip file; its size in bytes. Raises NoSuchThingError when none runs."""
        if not self.running:
            raise NoSuchThingError("no_such_trace")
        recordings = self._ended()
        for recording in recordings:
            await recording.done.wait()
        return await asyncio.to_thread(self._write, into, recordings)

    def drop(self) -> None:
        """End it and keep nothing; does not wait."""
        if self.running:
            self._ended()

    def _ended(self) -> list[_Recording]:
        self.running = False
        if self._timer is not None:
            self._timer.cancel()
        recordings, self._recordings = self._recordings, []
        for recording in recordings:
            recording.close()
        return recordings

    def _write(self, into: Path, recordings: list[_Recording]) -> int:
        head: dict[str, object] = {
            "version": _VERSION,
            "type": "context-options",
            "origin": "library",
            "browserName": "chromium",
            "options": {},
            "platform": "linux",
            "wallTime": self._began * 1000,
            "monotonicTime": 0,
            "sdkLanguage": "python",
            "contextId": self._profile.context.name,
        }
        lines, requests = [head], []
        for recording in recordings:
            said, asked = recording.finished()
            lines += said
            requests += asked
        with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("trace.trace", b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
            file.writestr("trace.network", b"".join(msgspec.json.encode(line) + b"\n" for line in requests))
            for recording in recordings:
                for name, picture in recording.pictures.items():
                    file.writestr(f"resources/{name}", picture, zipfile.ZIP_STORED)
        return into.stat().st_size
