"""A bounded list of a page's requests: addresses without credentials, no bodies."""

import base64
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from browser.activity import RequestEnded, RequestSent, ResponseReceived
from browser.errors import ContextGoneError, CursorExpiredError, NoSuchThingError, TransferFailedError
from browser.page import Page
from browser.wire import ask

RING = 256
URL_UNITS = 1024
_SECRET = re.compile(r"token|secret|passw|key|auth|session|code|signature|credential|otp", re.IGNORECASE)


class NetworkEntry(msgspec.Struct, frozen=True):
    """One request. Times are in milliseconds; `status` 0 means no response (yet)."""

    sequence: int
    method: str
    url: str
    type: str
    status: int = 0
    mime_type: str = ""
    started_at_ms: int = 0
    duration_ms: float | None = None
    byte_length: int | None = None
    failed: str | None = None


class NetworkPage(msgspec.Struct, frozen=True):
    """A page of the list; `dropped` counts requests after the cursor that are no longer held."""

    entries: tuple[NetworkEntry, ...]
    next_cursor: str
    dropped: int
    has_more: bool


class _Body(msgspec.Struct, rename="camel"):
    body: str = ""
    base64_encoded: bool = False


def without_credentials(url: str) -> str:
    """An address without user information, fragment, and values of query fields that look secret.

    At most 1,024 characters.
    """
    if not url.startswith(("http://", "https://", "ws://", "wss://")):
        return url.split(",", 1)[0][:64]
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = parts.query
    if query and _SECRET.search(query):
        query = urlencode(
            [
                (name, "..." if _SECRET.search(name) else value)
                for name, value in parse_qsl(query, keep_blank_values=True)
            ]
        )
    return urlunsplit((parts.scheme, host, parts.path, query, ""))[:URL_UNITS]


class Network:
    """The requests of one page over its whole life, newest 256."""

    def __init__(self, page: Page, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self.began_at_ms = now_ms()
        self._page = page
        self._entries: OrderedDict[str, NetworkEntry] = OrderedDict()
        self._starts: dict[str, float] = {}
        self._last = 0
        page.activity.observers.append(self._observe)

    def _observe(self, event: object) -> None:
        if isinstance(event, RequestSent):
            self._sent(event)
        elif isinstance(event, ResponseReceived):
            self._update(event.request_id, status=event.response.status, mime_type=event.response.mime_type[:80])
        elif isinstance(event, RequestEnded):
            started = self._starts.pop(event.request_id, None)
            self._update(
                event.request_id,
                duration_ms=None if started is None else round((event.timestamp - started) * 1000, 1),
                byte_length=int(event.encoded_data_length),
                failed=event.blocked_reason or event.error_text,
            )

    def _sent(self, event: RequestSent) -> None:
        if event.request_id in self._entries:  # a redirect: the first leg keeps its line under a name of its own
            self._entries[f"{event.request_id}#{self._last}"] = self._entries.pop(event.request_id)
        self._last += 1
        url = without_credentials(event.request.url)
        self._entries[event.request_id] = NetworkEntry(
            self._last, event.request.method[:16], url, event.type, started_at_ms=int(event.wall_time * 1000)
        )
        self._starts[event.request_id] = event.timestamp
        while len(self._entries) > RING:
            gone, _ = self._entries.popitem(last=False)
            self._starts.pop(gone, None)

    def _update(self, request_id: str, **changes: object) -> None:
        entry = self._entries.get(request_id)
        if entry is not None:
            self._entries[request_id] = msgspec.structs.replace(entry, **changes)

    def read(self, *, cursor: str | None = None, limit: int = 64) -> NetworkPage:
        """Requests after a cursor, oldest first. Raises CursorExpiredError for a cursor that is not of this page."""
        head = f"{self._page.generation}:network:"
        after = 0
        if cursor is not None:
            number = cursor[len(head) :]
            if not cursor.startswith(head) or not number.isdecimal() or len(number) > 18 or int(number) > self._last:
                raise CursorExpiredError("cursor_expired")
            after = int(number)
        ordered = sorted(self._entries.values(), key=lambda entry: entry.sequence)
        fresh = [entry for entry in ordered if entry.sequence > after]
        shown = fresh[:limit]
        first = ordered[0].sequence if ordered else self._last + 1
        last = shown[-1].sequence if shown else max(after, self._last)
        return NetworkPage(tuple(shown), f"{head}{last}", max(0, first - after - 1), len(fresh) > len(shown))

    async def body(self, sequence: int, *, most: int = 4 << 20) -> bytes:
        """The response body of a listed request, while the engine still holds it.

        Raises:
            NoSuchThingError: not listed or not held.
            TransferFailedError: larger than `most`.
        """
        request_id = next((name for name, entry in self._entries.items() if entry.sequence == sequence), None)
        if request_id is None:
            raise NoSuchThingError("no_such_exchange", sequence=sequence)
        try:
            answer = await ask(
                self._page.session, "Network.getResponseBody", {"requestId": request_id.partition("#")[0]}, _Body
            )
        except ContextGoneError as error:
            raise NoSuchThingError("no_such_exchange", sequence=sequence) from error
        content = base64.b64decode(answer.body) if answer.base64_encoded else answer.body.encode("utf-8", "replace")
        if len(content) > most:
            raise TransferFailedError("too_large", byte_length=len(content), most=most)
        return content
