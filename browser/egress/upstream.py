"""The connection to a server that plain http requests of one engine connection go through, one at a time."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from browser.egress.dial import FailureReason
from browser.egress.framing import UNTIL_CLOSE, BodyScanner, FramingError, scanner_for
from browser.egress.gate import Gate, Route
from browser.egress.request_head import RequestHead
from browser.egress.response_head import MalformedResponseError, head_end, parse_response_head

# That header comes with navigations only, so an answer cached as an image is not found again for a document: the engine
# has to ask for that, and is refused.
_NEVER_A_DOCUMENT = b"Vary: Upgrade-Insecure-Requests\r\n\r\n"


class Exchange:
    """One request and the answer to it, as far as it has come."""

    __slots__ = ("begun", "head", "resource", "size", "started", "status", "type")

    def __init__(self, head: RequestHead, started: float) -> None:
        self.head = head
        self.started = started
        self.status = 0
        self.type = ""
        self.size = 0
        self.resource = False  # the place may answer, but never become a document
        self.begun = False  # a byte of the answer went to the client

    def url(self, *, keep_query: bool) -> str:
        """Return the URL as it is recorded, at most 2,048 characters; the place alone for a tunnel."""
        if self.head.tunnel:
            return self.head.authority
        path, mark, query = self.head.path.partition("?")
        shown = path + mark + (query if keep_query else "…" if mark else "")
        return f"http://{self.head.authority}{shown}"[:2048]


class Client(Protocol):
    """The engine's side of an exchange."""

    def pass_on(self, data: bytes) -> None:
        """Send bytes of the answer."""

    def answered(self, *, upstream_open: bool, delimited: bool) -> None:
        """The answer is complete; `delimited` unless its end had to be shown by closing."""

    def unanswered(self, reason: FailureReason) -> None:
        """The server failed before a byte of its answer was passed on."""

    def hang_up(self) -> None:
        """Close without an answer: what an engine expects of a kept connection that its server just closed."""

    def cut(self) -> None:
        """The answer broke off: it must not look complete."""

    def hold(self, *, held: bool) -> None:
        """Stop or go on reading the request: the server's side is full, or has room again."""


class UpstreamLink(asyncio.Protocol):
    """A connection to one place; carries the exchanges of one client connection."""

    def __init__(self, gate: Gate, client: Client, route: Route) -> None:
        self.route = route
        self._gate = gate
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._body: BodyScanner | None = None
        self._until_close = False
        self._keep = True
        self._used = False
        self._reused = False
        self._head = b""
        self._lost = False

    @property
    def open(self) -> bool:
        """Whether another request may be sent."""
        return self._exchange is None and not self._lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(self._gate.limits.buffer)

    def begin(self, exchange: Exchange) -> None:
        """Send the head of the next request."""
        self._exchange = exchange
        self._reused, self._used = self._used, True
        self.send(exchange.head.wire())

    def send(self, data: bytes) -> None:
        """Send bytes of the request."""
        if self._transport is not None and not self._lost:
            self._transport.write(data)

    def hold(self, *, held: bool) -> None:
        """Stop or go on reading the answer."""
        if self._transport is not None and not self._lost:
            if held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._client.hold(held=True)

    def resume_writing(self) -> None:
        """See asyncio."""
        self._client.hold(held=False)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        exchange = self._exchange
        if exchange is None:
            self.cut()  # bytes nobody asked for would be taken for the next answer
            return
        if self._body is None:
            self._take_head(exchange, data)
        else:
            self._take_body(exchange, self._body, b"", data)

    def _take_head(self, exchange: Exchange, data: bytes) -> None:
        self._head += data
        while True:
            end = head_end(self._head)
            if end < 0:
                if len(self._head) > self._gate.limits.head:
                    self._invalid(exchange)
                return
            try:
                head = parse_response_head(self._head[:end], method=exchange.head.method)
            except MalformedResponseError:
                self._invalid(exchange)
                return
            rest, self._head = self._head[end:], b""
            if not head.interim:
                break
            exchange.begun = True
            self._client.pass_on(head.wire)
            self._head = rest
        exchange.status, exchange.type = head.status, head.type
        self._keep, self._until_close = head.keep, head.framing == UNTIL_CLOSE
        self._body = scanner_for(head.framing)
        wire = head.wire[:-2] + _NEVER_A_DOCUMENT if exchange.resource else head.wire
        self._take_body(exchange, self._body, wire, rest)

    def _take_body(self, exchange: Exchange, body: BodyScanner, prefix: bytes, data: bytes) -> None:
        try:
            taken = body.feed(data)
        except FramingError:
            self._client.cut()
            return
        exchange.size += taken
        exchange.begun = True
        if taken < len(data):
            self._keep = False  # more than was announced
            data = data[:taken]
        self._client.pass_on(prefix + data if prefix else data)
        if body.done:
            self._finish()

    def _finish(self) -> None:
        self._exchange = self._body = None
        if not self._keep and not self._lost:
            self._close()
        self._client.answered(upstream_open=not self._lost, delimited=not self._until_close)

    def _invalid(self, exchange: Exchange) -> None:
        self._exchange = None
        self.cut()
        if exchange.begun:
            self._client.cut()
        else:
            self._client.unanswered("invalid_response")

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._lost = True
        exchange = self._exchange
        if exchange is None:
            return
        if self._until_close and self._body is not None and exc is None:
            self._finish()
        elif exchange.begun or self._head:
            self._exchange = None
            self._client.cut()
        elif self._reused:
            self._exchange = None
            self._client.hang_up()
        else:
            self._exchange = None
            self._client.unanswered("empty_response")

    def cut(self) -> None:
        """End the connection at once; the client hears nothing more of it."""
        self._exchange = None
        self._lost = True
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        self._lost = True
        if self._transport is not None:
            self._transport.close()
