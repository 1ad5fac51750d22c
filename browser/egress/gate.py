"""What all connections of one context share: the grant in force, the records, the limits, the one deadline timer."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from browser.egress.addresses import Address
from browser.egress.dial import belongs_to_this_machine
from browser.egress.grant import Admission, Admitter, EgressGrant, RefusedError
from browser.egress.names import NameMemory, Resolve
from browser.egress.origin import Scheme
from browser.egress.record import NetworkEntry, Refusal, Ring
from browser.egress.request_headers import HeaderReader

if TYPE_CHECKING:
    from browser.egress.tls_refusal import RefusalIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """Bounds of one context's proxy. Bytes and seconds.

    Attributes:
        connections: Connections from the engine at one time (Chromium itself opens 32 and 255 for WebSockets).
        head: A request's or an answer's head.
        buffer: What is held for one direction of one connection before its source is paused.
        discarded: The body of a refused request that is read away before its connection is cut instead.
        head_s: A head, from its first byte to its last.
        unproven_s: A connection that has not yet shown the credential.
        connect_s: Each resolution and each attempt to connect.
        name_s: Where a name leads, before it is asked again.
        idle_s: A connection or a tunnel on which nothing moves.
        linger_s: A connection that is only waiting for its other side to let go.
        records: Entries kept in the network log, and refusals.
    """

    connections: int = 512
    head: int = 65_536
    buffer: int = 262_144
    discarded: int = 1_048_576
    head_s: float = 10.0
    unproven_s: float = 60.0
    connect_s: float = 15.0
    name_s: float = 60.0
    idle_s: float = 900.0
    linger_s: float = 30.0
    records: int = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an open connection leads and as what it was admitted. `scheme` is None for a tunnel."""

    scheme: Scheme | None
    host: str
    port: int
    document: bool
    address: Address | None = None


class Link(Protocol):
    """A live connection of this context that the gate can cut."""

    deadline: float
    proven: bool

    @property
    def route(self) -> Route | None:
        """Where it leads, None while nowhere."""

    def cut(self) -> None:
        """End it at once, dropping what is not yet sent."""

    def expire(self) -> None:
        """End it because its deadline passed."""


class Gate:
    """The shared state of one context's proxy."""

    def __init__(
        self,
        grant: EgressGrant,
        *,
        authorization: tuple[str, str],
        resolve: Resolve,
        clock: Callable[[], float],
        limits: EgressLimits,
        keep_queries: bool,
        identity: RefusalIdentity | None,
        dialling: asyncio.TaskGroup,
    ) -> None:
        self.admitter = Admitter(grant)
        self.names = NameMemory(resolve, clock, limits.name_s)
        self.clock = clock
        self.limits = limits
        self.keep_queries = keep_queries
        self.identity = identity
        self.dialling = dialling
        self.headers = HeaderReader()
        self.ended = False
        self.network_log: Ring[NetworkEntry] = Ring(limits.records)
        self.refusals: Ring[Refusal] = Ring(limits.records)
        self.empty = asyncio.Event()
        self.empty.set()
        self._expected = b"Basic " + base64.b64encode(":".join(authorization).encode())
        self._links: dict[Link, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    def proves(self, authorization: bytes) -> bool:
        """Say whether a Proxy-Authorization value is this context's credential."""
        return hmac.compare_digest(authorization, self._expected)

    def add(self, link: Link) -> bool:
        """Take in a link; False when there is no room for it or the context ended.

        A connection that has not shown the credential makes room for a new one: strangers cannot crowd the engine out.
        """
        if self.ended:
            return False
        if len(self._links) >= self.limits.connections:
            unproven = next((other for other in self._links if not other.proven), None)
            if unproven is None:
                return False
            unproven.cut()
            self.drop(unproven)
        self._links[link] = None
        self.empty.clear()
        self.hasten(link.deadline)
        return True

    def drop(self, link: Link) -> None:
        """Forget a link that is gone or became another."""
        self._links.pop(link, None)
        if not self._links:
            self.empty.set()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def hasten(self, deadline: float) -> None:
        """See to it that a sweep runs no later than `deadline`. Later deadlines need no call: a sweep looks again."""
        if self._timer is not None:
            if self._timer_due <= deadline:
                return
            self._timer.cancel()
        self._timer_due = deadline
        self._timer = asyncio.get_running_loop().call_later(max(0.0, deadline - self.clock()), self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = self.clock()
        for link in [link for link in self._links if link.deadline <= now]:
            link.expire()
        if self._links:
            self.hasten(min(link.deadline for link in self._links))

    def replace(self, grant: EgressGrant) -> None:
        """Put another grant in force and cut every connection it does not admit."""
        self.admitter = Admitter(grant)
        for link in list(self._links):
            if link.route is not None and not self.admits(link.route):
                link.cut()

    def admits(self, route: Route) -> bool:
        """Say whether the grant in force admits an open connection."""
        admitter = self.admitter
        try:
            admission = admitter.admit_host(route.scheme, route.host, route.port, document=route.document)
            if route.address is not None:
                ours = route.port in admitter.grant.refused_ports and belongs_to_this_machine(route.address)
                admitter.admit_address(admission, route.address, route.port, ours=ours)
        except RefusedError:
            return False
        return True

    def admit(self, route: Route) -> Admission:
        """Judge a request before its host is resolved.

        Raises:
            RefusedError: The grant in force does not admit it.
        """
        return self.admitter.admit_host(route.scheme, route.host, route.port, document=route.document)

    def refuse(self, route: Route, refused: RefusedError, address: Address | None = None) -> None:
        """Record a refusal."""
        self.refusals.add(
            Refusal(
                sequence=self.refusals.last + 1,
                host=route.host,
                port=route.port,
                reason=refused.reason,
                document=route.document,
                address="" if address is None else str(address),
            )
        )

    def note(self, *, method: str, url: str, status: int, media_type: str, started: float, size: int) -> None:
        """Record an exchange or a tunnel that just ended."""
        self.network_log.add(
            NetworkEntry(
                sequence=self.network_log.last + 1,
                method=method,
                url=url,
                status=status,
                type=media_type,
                started=started,
                duration=self.clock() - started,
                bytes=size,
            )
        )

    def end(self) -> None:
        """Cut every connection at once and take no new one."""
        self.ended = True
        for link in list(self._links):
            link.cut()
