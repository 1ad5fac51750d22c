"""The engine's side: reads requests, asks the gate, and has them answered one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from browser.egress.addresses import Address
from browser.egress.answers import PROVING_HOST, own_answer
from browser.egress.dial import AddressRefusedError, DialError, FailureReason, dial
from browser.egress.framing import BodyScanner, FramingError, scanner_for
from browser.egress.gate import Gate, Route
from browser.egress.grant import Admission, RefusedError
from browser.egress.request_head import RequestHead, parse_request_head
from browser.egress.request_headers import MalformedHeadError
from browser.egress.tls_refusal import TlsRefusal
from browser.egress.tunnel import Tunnel, TunnelEnd
from browser.egress.upstream import Exchange, UpstreamLink

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

End = TypeVar("End", UpstreamLink, TunnelEnd)


class ClientLink(asyncio.Protocol):
    """One connection from the engine, with at most one connection to a server behind it.

    Both live and die together as an engine would see them without a proxy: nothing is pooled across engine connections,
    and nothing is sent twice.
    """

    def __init__(self, gate: Gate) -> None:
        self.deadline = gate.clock() + gate.limits.unproven_s
        self.proven = False
        self._gate = gate
        self._transport: asyncio.Transport | None = None
        self._pending = b""
        self._head_due: float | None = None  # set by the first byte of a head, whatever trickles in after it
        self._exchange: Exchange | None = None  # until its answer is complete
        self._body: BodyScanner | None = None  # until the request's body is complete
        self._discarded = 0
        self._upstream: UpstreamLink | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._held = False  # the server's side is full
        self._full = False  # the engine's side is full
        self._closing = False  # nothing more will be answered
        self._close_after = False

    @property
    def route(self) -> Route | None:
        """Where the connection behind it leads."""
        return self._upstream.route if self._upstream is not None else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(self._gate.limits.buffer)
        if not self._gate.add(self):
            self._closing = True
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._closing:
            return
        self.deadline = self._gate.clock() + self._gate.limits.idle_s
        self._pending = self._pending + data if self._pending else data
        self._advance()

    def _advance(self) -> None:
        while self._pending and not self._closing:
            if self._body is not None:
                if self._dialling is not None or not self._pass_body(self._body):
                    break
            elif self._exchange is not None or not self._read_head():
                break
        self._set_reading()

    def _set_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._held or (not self._closing and len(self._pending) > self._gate.limits.buffer):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _read_head(self) -> bool:
        limits = self._gate.limits
        end = self._pending.find(b"\r\n\r\n", 0, limits.head)
        if end < 0:
            if len(self._pending) >= limits.head:
                self._answer(431, "malformed", last=True)
            else:
                if self._head_due is None:
                    self._head_due = self._gate.clock() + limits.head_s
                self.deadline = self._head_due
                self._gate.hasten(self.deadline)
            return False
        self._head_due = None
        data, self._pending = self._pending[: end + 4], self._pending[end + 4 :]
        try:
            head = parse_request_head(data, read=self._gate.headers.read)
        except MalformedHeadError as error:
            self._answer(error.status, "malformed", last=True)
            return False
        self._close_after = head.headers.close
        self._begin(head)
        return True

    def _begin(self, head: RequestHead) -> None:
        self._exchange = Exchange(head, self._gate.clock())
        body = scanner_for(head.framing)
        self._body = None if body.done else body
        self._discarded = 0
        if not self._gate.proves(head.headers.authorization):
            self._answer(407, "credential_missing", last=self._body is not None)
            return
        self.proven = True
        if head.host == PROVING_HOST:
            self._answer(204, "proven", last=head.tunnel)
            return
        route = Route(scheme=None if head.tunnel else "http", host=head.host, port=head.port, document=head.document)
        try:
            admission = self._gate.admit(route)
        except RefusedError as refused:
            self._refuse(route, refused)
            return
        self._exchange.resource = admission.resource
        upstream = self._upstream
        if upstream is not None and upstream.open and not head.tunnel and self._leads_to(upstream.route, route):
            upstream.begin(self._exchange)
            return
        self._leave_upstream()
        dialling = self._open_tunnel(route, admission) if head.tunnel else self._open_upstream(route, admission)
        self._dialling = self._gate.dialling.create_task(dialling)

    def _leads_to(self, open_route: Route, route: Route) -> bool:
        return (open_route.host, open_route.port) == (route.host, route.port)

    async def _open_upstream(self, route: Route, admission: Admission) -> None:
        found = await self._dial(route, admission, lambda: UpstreamLink(self._gate, self, route))
        if found is None:
            return
        upstream, reached = found
        if self._exchange is None:
            upstream.cut()
            return
        upstream.route = reached
        self._upstream = upstream
        upstream.hold(held=self._full)
        upstream.begin(self._exchange)
        self._advance()

    async def _open_tunnel(self, route: Route, admission: Admission) -> None:
        gate = self._gate
        tunnel = Tunnel(gate, route.host, route.port, gate.clock())
        found = await self._dial(route, admission, lambda: tunnel.server)
        transport = self._transport
        if found is None:
            return
        if transport is None:
            tunnel.cut()
            return
        tunnel.join(transport, found[1], self._leave(transport))

    def _leave(self, transport: asyncio.Transport) -> bytes:
        """Say that the tunnel stands and leave the connection to another protocol; return what came early."""
        transport.write(_ESTABLISHED)
        leftover, self._pending = self._pending, b""
        self._transport = self._exchange = self._dialling = None
        self._closing = True
        self._gate.drop(self)
        return leftover

    async def _dial(self, route: Route, admission: Admission, protocol: Callable[[], End]) -> tuple[End, Route] | None:
        """Connect, or answer why not and return None."""
        gate = self._gate
        try:
            end, address = await dial(
                route.host,
                route.port,
                admission,
                source=gate,
                resolve=gate.names.lookup,
                connect_s=gate.limits.connect_s,
                protocol=protocol,
            )
        except AddressRefusedError as refusal:
            self._dialling = None
            self._refuse(route, refusal.refused, refusal.address)
            return None
        except DialError as error:
            self._dialling = None
            self.unanswered(error.reason)
            return None
        self._dialling = None
        reached = replace(route, address=address)
        if gate.ended or not gate.admits(reached):
            end.cut()
            self.unanswered("grant_changed")
            return None
        return end, reached

    def _refuse(self, route: Route, refused: RefusedError, address: Address | None = None) -> None:
        identity, transport = self._gate.identity, self._transport
        if route.scheme is None and identity is not None and transport is not None:
            refusal = TlsRefusal(self._gate, identity, route, refused, address)
            refusal.take_over(transport, self._leave(transport))
            return
        self._gate.refuse(route, refused, address)
        if route.scheme is None:
            self._answer(403, refused.reason, last=True)
        else:
            # An engine keeps its old document only when a navigation is answered with nothing at all.
            self._answer(204 if route.document else 403, refused.reason, last=False)

    def _answer(self, status: int, reason: str, *, last: bool) -> None:
        """Give an answer of our own to the request at hand; the rest of its body is read away."""
        exchange, self._exchange = self._exchange, None
        last = last or self._close_after
        with_body = exchange is None or exchange.head.method != "HEAD"
        self.pass_on(own_answer(status, reason, close=last, with_body=with_body))
        if last:
            self._let_go()

    def _pass_body(self, body: BodyScanner) -> bool:
        try:
            taken = body.feed(self._pending)
        except FramingError:
            self.cut()
            return False
        data, self._pending = self._pending[:taken], self._pending[taken:]
        if body.done:
            self._body = None
        if self._exchange is not None and self._upstream is not None:
            self._upstream.send(data)
            return True
        self._discarded += taken
        if self._discarded > self._gate.limits.discarded:
            self.cut()
            return False
        return True

    def pass_on(self, data: bytes) -> None:
        """See `upstream.Client`."""
        if self._transport is not None and not self._closing:
            self.deadline = self._gate.clock() + self._gate.limits.idle_s
            self._transport.write(data)

    def answered(self, *, upstream_open: bool, delimited: bool) -> None:
        """See `upstream.Client`."""
        self._note()
        if not upstream_open:
            self._upstream = None
        if self._body is not None:
            self._leave_upstream()  # it answered before it had read all; the rest is of no use to it
        if self._close_after or not delimited:
            self._let_go()
        else:
            self._advance()

    def unanswered(self, reason: FailureReason) -> None:
        """See `upstream.Client`."""
        exchange = self._exchange
        if exchange is None:
            return
        self._note()
        self._upstream = None
        self._exchange, tunnel = exchange, exchange.head.tunnel
        self._answer(504 if reason == "connect_timeout" else 502, reason, last=tunnel)
        self._advance()

    def hang_up(self) -> None:
        """See `upstream.Client`."""
        self._upstream = None
        self._note()
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def hold(self, *, held: bool) -> None:
        """See `upstream.Client`."""
        self._held = held
        self._set_reading()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._full = True
        if self._upstream is not None:
            self._upstream.hold(held=True)

    def resume_writing(self) -> None:
        """See asyncio."""
        self._full = False
        if self._upstream is not None:
            self._upstream.hold(held=False)

    def eof_received(self) -> bool:
        """See asyncio: an engine that sends no more has gone, so what it waits for is dropped."""
        self._closing = True
        self._abandon()
        self.deadline = self._gate.clock() + self._gate.limits.linger_s
        self._gate.hasten(self.deadline)
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """See asyncio."""
        self._transport = None
        self._closing = True
        self._pending = b""
        self._gate.drop(self)
        self._abandon()

    def _abandon(self) -> None:
        """Let go of the server's side and of what was asked of it."""
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        self._leave_upstream()
        self._note()

    def cut(self) -> None:
        """End the connection at once, dropping what is not yet sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()
        self._abandon()

    def expire(self) -> None:
        """End it because nothing moved for too long."""
        self.cut()

    def _let_go(self) -> None:
        """Send what is left, then wait a while for the other side to close, so that our last answer is not lost."""
        self._closing = True
        self._pending = b""
        if self._transport is None or self._transport.is_closing():
            return
        limits = self._gate.limits
        slow = self._transport.get_write_buffer_size() > 0
        self._transport.write_eof()
        self._held = False
        self._set_reading()
        self.deadline = self._gate.clock() + (limits.idle_s if slow else limits.linger_s)
        self._gate.hasten(self.deadline)

    def _leave_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream.cut()
            self._upstream = None
        self._held = False

    def _note(self) -> None:
        """Record the exchange at hand, if there is one, and be done with it."""
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        self._gate.note(
            method=exchange.head.method,
            url=exchange.url(keep_query=self._gate.keep_queries),
            status=exchange.status,
            media_type=exchange.type,
            started=exchange.started,
            size=exchange.size,
        )
