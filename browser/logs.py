"""Console calls, script errors and promise rejections of the main frame: bounded rings with cursors."""

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

from browser.errors import CursorExpiredError
from browser.page import Page
from browser.pending import bounded
from browser.wire import ExceptionThrown, RemoteObject, listen

LogKind = Literal["javascript_error", "console", "promise_rejection"]
Level = Literal["log", "info", "warn", "error", "debug"]

RING = 64
MESSAGE_UNITS = 256
MOST_ARGUMENTS = 16
_OMITTED = "[object omitted]"
_PREFIXES: dict[LogKind, str] = {"javascript_error": "", "console": "console:", "promise_rejection": "rejection:"}
_LEVELS: dict[str, Level] = {
    "info": "info",
    "warning": "warn",
    "error": "error",
    "assert": "error",
    "debug": "debug",
    "trace": "debug",
}


class LogEntry(msgspec.Struct, frozen=True):
    """One message; untrusted page text of at most 256 UTF-16 units."""

    sequence: int
    captured_at_ms: int
    kind: LogKind
    message: str
    level: Level | None = None


class LogPage(msgspec.Struct, frozen=True):
    """A page of a log. `dropped` counts messages after the cursor that the ring no longer holds."""

    kind: LogKind
    navigation_id: str
    capture_started_at_ms: int
    entries: tuple[LogEntry, ...]
    next_cursor: str
    dropped: int
    has_more: bool
    coverage: tuple[str, ...] = ("main_frame", "since_document_start")


class _ConsoleCalled(msgspec.Struct, rename="camel"):
    type: str = "log"
    args: list[RemoteObject] = []
    execution_context_id: int = 0


class _Details(ExceptionThrown, rename="camel"):
    execution_context_id: int = 0


class _Thrown(msgspec.Struct, rename="camel"):
    exception_details: _Details


class _Ring:
    def __init__(self) -> None:
        self.entries: deque[LogEntry] = deque(maxlen=RING)
        self.last = 0


class Logs:
    """The logs of one page. A new document starts new rings; cursors of the old one are refused."""

    def __init__(self, page: Page, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self._page = page
        self._now = now_ms
        self._rings: dict[LogKind, _Ring] = {}
        self._began = ""
        self._began_at = 0
        self._reset()
        page.on_navigation.append(self._reset)
        listen(page.session, "Runtime.consoleAPICalled", _ConsoleCalled, self._console, page.faults)
        listen(page.session, "Runtime.exceptionThrown", _Thrown, self._thrown, page.faults)

    def _reset(self) -> None:
        self._rings = {kind: _Ring() for kind in _PREFIXES}
        self._began = self._page.navigation_id
        self._began_at = self._now()

    def _add(self, kind: LogKind, message: str, level: Level | None) -> None:
        ring = self._rings[kind]
        ring.last += 1
        text = bounded(message, MESSAGE_UNITS)
        ring.entries.append(LogEntry(ring.last, self._now(), kind, text, level))
        if kind != "console" or level == "error":
            self._page.activity.errors.append(text)
            del self._page.activity.errors[:-16]

    def _console(self, event: _ConsoleCalled) -> None:
        if not self._page.frames.is_main_context(event.execution_context_id):
            return
        parts = [_shown(argument) for argument in event.args[:MOST_ARGUMENTS]]
        self._add("console", " ".join(parts), _LEVELS.get(event.type, "log"))

    def _thrown(self, event: _Thrown) -> None:
        details = event.exception_details
        if details.execution_context_id and not self._page.frames.is_main_context(details.execution_context_id):
            return
        described = (details.exception.description or _shown(details.exception)) if details.exception else details.text
        kind: LogKind = "promise_rejection" if "(in promise)" in details.text else "javascript_error"
        self._add(kind, described.split("\n", 1)[0], None)

    def read(self, kind: LogKind = "javascript_error", *, cursor: str | None = None, limit: int = 50) -> LogPage:
        """Messages after a cursor, oldest first, at most `limit` (1..64).

        Raises:
            CursorExpiredError: the cursor is of another document, kind or page.
        """
        ring = self._rings[kind]
        after = self._after(kind, cursor)
        if after > ring.last:
            raise CursorExpiredError("cursor_expired")
        fresh = [entry for entry in ring.entries if entry.sequence > after]
        shown = fresh[:limit]
        first = ring.entries[0].sequence if ring.entries else ring.last + 1
        return LogPage(
            kind=kind,
            navigation_id=self._page.navigation_id,
            capture_started_at_ms=self._began_at,
            entries=tuple(shown),
            next_cursor=f"{self._began}:{_PREFIXES[kind]}{shown[-1].sequence if shown else max(after, ring.last)}",
            dropped=max(0, first - after - 1),
            has_more=len(fresh) > len(shown),
        )

    def _after(self, kind: LogKind, cursor: str | None) -> int:
        if cursor is None:
            return 0
        head = f"{self._began}:{_PREFIXES[kind]}"
        number = cursor[len(head) :]
        if not cursor.startswith(head) or not number.isdecimal() or len(number) > 18:
            raise CursorExpiredError("cursor_expired")
        return int(number)


def _shown(value: RemoteObject) -> str:
    if value.type == "string" and isinstance(value.value, str):
        return value.value
    if value.type == "undefined":
        return "undefined"
    if value.type in {"number", "boolean", "bigint"}:
        return value.unserializable_value or value.description or str(value.value).lower()
    if value.subtype == "null":
        return "null"
    if value.subtype == "error" and value.description:
        return value.description.split("\n", 1)[0]
    return _OMITTED
