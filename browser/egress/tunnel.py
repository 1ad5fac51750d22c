"""A tunnel: bytes go both ways unread, but for the first ones, which show whether it speaks the granted scheme."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

from browser.egress.gate import Gate, Route
from browser.egress.grant import RefusedError
from browser.egress.origin import HostPort, Scheme
from browser.egress.tls_refusal import TlsRefusal

_TLS_HANDSHAKE = b"\x16"
_WEBSOCKET_START = b"GET "


class TunnelEnd(asyncio.Protocol):
    """One side of a tunnel."""

    __slots__ = ("ended", "other", "size", "transport", "tunnel")

    def __init__(self, tunnel: Tunnel) -> None:
        self.tunnel = tunnel
        self.transport: asyncio.Transport | None = None
        self.other: TunnelEnd | None = None
        self.size = 0
        self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(self.tunnel.gate.limits.buffer)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self.size += len(data)
        self.tunnel.moved(self, data)

    def eof_received(self) -> bool:
        """See asyncio: keeps the other direction open."""
        self.ended = True
        self.tunnel.half_closed(self)
        return True

    def pause_writing(self) -> None:
        """See asyncio."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """See asyncio."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self.tunnel.lost(self, exc)

    def cut(self) -> None:
        """End the whole tunnel at once."""
        self.tunnel.cut()


class Tunnel:
    """Two ends that belong together. Built before the server's end connects; live from `join` on."""

    def __init__(self, gate: Gate, host: str, port: int, started: float) -> None:
        self.gate = gate
        self.route: Route | None = None
        self.deadline = started + gate.limits.idle_s
        self.proven = True
        self.server = TunnelEnd(self)
        self._client = TunnelEnd(self)
        self._place = HostPort(host, port)
        self._started = started
        self._early: list[bytes] = []
        self._joined = False
        self._over = False
        self._type = "tunnel"
        self._opening: bytes | None = b""  # the client's first bytes, until they show what it speaks

    def join(self, client: asyncio.Transport, route: Route, leftover: bytes) -> None:
        """Let bytes through from now on; the client was told that the tunnel stands, and may have sent `leftover`."""
        self.route = route
        if self._over or not self.gate.add(self):
            client.close()
            self.cut()
            return
        self._client.connection_made(client)
        client.set_protocol(self._client)
        self._client.other, self.server.other = self.server, self._client
        self._joined = True
        client.resume_reading()
        client.write(b"".join(self._early))
        if self.server.transport is not None:
            self.server.transport.resume_reading()
        if leftover:
            self._client.data_received(leftover)
        if self.server.ended:
            self.half_closed(self.server)

    def moved(self, source: TunnelEnd, data: bytes) -> None:
        """Pass on bytes that came from one end."""
        if not self._joined:
            self._early.append(data)
            if source.transport is not None:
                source.transport.pause_reading()
            return
        self.deadline = self.gate.clock() + self.gate.limits.idle_s
        if self._opening is not None and source is self._client:
            data = self._opening + data
            if not self._read_opening(data):
                return
        other = source.other
        if other is not None and other.transport is not None:
            other.transport.write(data)

    def _read_opening(self, data: bytes) -> bool:
        """Hold the first bytes against the granted schemes; False while they must not be passed on."""
        spoken: Scheme | None = None
        if data.startswith(_TLS_HANDSHAKE):
            spoken = "https"
        elif data.startswith(_WEBSOCKET_START):
            spoken, self._type = "http", "websocket"
        elif _WEBSOCKET_START.startswith(data):
            self._opening = data
            return False
        if self.route is None or spoken not in self.gate.admitter.schemes(self.route.host, self.route.port):
            self._refuse(data, tls=spoken == "https")
            return False
        self._opening = None
        self.route = replace(self.route, scheme=spoken)
        return True

    def _refuse(self, data: bytes, *, tls: bool) -> None:
        route, client, identity = self.route, self._client.transport, self.gate.identity
        refused = RefusedError("scheme_not_granted")
        if route is not None and client is not None and tls and identity is not None:
            self._client.transport = None
            TlsRefusal(self.gate, identity, route, refused, None).take_over(client, data)
        elif route is not None:
            self.gate.refuse(route, refused)
        self.cut()

    def half_closed(self, source: TunnelEnd) -> None:
        """Pass on that one end will send no more; close when neither will."""
        other = source.other
        if other is None or other.transport is None:
            return
        if other.ended:
            other.transport.close()
            if source.transport is not None:
                source.transport.close()
            return
        if other.transport.can_write_eof() and not other.transport.is_closing():
            other.transport.write_eof()
        self.deadline = self.gate.clock() + self.gate.limits.linger_s
        self.gate.hasten(self.deadline)

    def lost(self, source: TunnelEnd, error: Exception | None) -> None:
        """One end is gone: flush to the other and close it, or cut it when the first one broke."""
        source.transport = None
        other = source.other
        if other is not None and other.transport is not None:
            if error is not None:
                other.transport.abort()
            else:
                other.transport.close()
                self.deadline = self.gate.clock() + self.gate.limits.linger_s
                self.gate.hasten(self.deadline)
        self._finish()

    def cut(self) -> None:
        """End both directions at once."""
        for end in (self._client, self.server):
            if end.transport is not None:
                end.transport.abort()
        self._finish()

    def expire(self) -> None:
        """End a tunnel on which nothing moved."""
        self.cut()

    def _finish(self) -> None:
        if not self._over and self._joined:
            self.gate.note(
                method="CONNECT",
                url=str(self._place),
                status=200,
                media_type=self._type,
                started=self._started,
                size=self.server.size,
            )
        self._over = True
        if self._client.transport is None and self.server.transport is None:
            self.gate.drop(self)
