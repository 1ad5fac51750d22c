"""The proxy of one browser context: one loopback socket, one credential, one grant."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from browser.egress.client import ClientLink
from browser.egress.dial import system_resolve
from browser.egress.gate import EgressLimits, Gate
from browser.egress.grant import EgressGrant
from browser.egress.names import Resolve
from browser.egress.record import NetworkEntry, Refusal, Ring
from browser.egress.tls_refusal import RefusalIdentity

_LISTEN_HOST = "127.0.0.1"


def fresh_token() -> str:
    """Return a credential part nobody can guess."""
    return secrets.token_urlsafe(24)


class EgressProxy:
    """What one context's traffic goes through. Made by `serve`.

    Attributes:
        url: What the engine is told: `http://127.0.0.1:<port>`.
        username: User of the context's one credential.
        password: Password of it.
    """

    def __init__(self, gate: Gate, port: int, username: str, password: str) -> None:
        self._gate = gate
        self._port = port
        self.url = f"http://{_LISTEN_HOST}:{port}"
        self.username = username
        self.password = password
        self._close_listener: Callable[[], None] | None = None

    @classmethod
    @asynccontextmanager
    async def serve(
        cls,
        grant: EgressGrant,
        *,
        resolve: Resolve = system_resolve,
        clock: Callable[[], float] = time.monotonic,
        token: Callable[[], str] = fresh_token,
        limits: EgressLimits | None = None,
        keep_queries: bool = False,
        identity: RefusalIdentity | None = None,
    ) -> AsyncIterator[EgressProxy]:
        """Listen for one context until the block is left; leaving it ends every connection.

        Args:
            grant: What the context may reach; `replace` puts another in force.
            resolve: Finds the addresses of a host name; what it finds is remembered for `EgressLimits.name_s`.
            clock: Seconds; for deadlines and for the network log.
            token: Makes the two parts of the credential.
            limits: Bounds; the defaults if None.
            identity: What the engine was started with, so that refused https navigations leave its document; without
                it a refused tunnel is answered 403, for which an engine shows an error page.
            keep_queries: Keep the queries of URLs in the network log. They often carry secrets.
        """
        username, password = token(), token()
        try:
            async with asyncio.TaskGroup() as dialling:
                gate = Gate(
                    grant,
                    authorization=(username, password),
                    resolve=resolve,
                    clock=clock,
                    limits=limits or EgressLimits(),
                    keep_queries=keep_queries,
                    identity=identity,
                    dialling=dialling,
                )
                loop = asyncio.get_running_loop()
                listener = await loop.create_server(lambda: ClientLink(gate), _LISTEN_HOST, 0)
                proxy = cls(gate, listener.sockets[0].getsockname()[1], username, password)
                proxy._close_listener = functools.partial(_stop_listening, loop, listener)
                proxy.replace(grant)
                try:
                    yield proxy
                finally:
                    proxy.end()
                    await gate.empty.wait()
                    await listener.wait_closed()
        except BaseExceptionGroup as group:
            # Our own tasks raise nothing, so what the group holds is the one error of the caller's block.
            raise group.exceptions[0] from None

    @property
    def grant(self) -> EgressGrant:
        """The grant in force, the proxy's own port among its refused ones."""
        return self._gate.admitter.grant

    @property
    def network_log(self) -> Ring[NetworkEntry]:
        """What was let through, by the time it ended."""
        return self._gate.network_log

    @property
    def refusals(self) -> Ring[Refusal]:
        """What was turned away. A refusal is recorded before the engine hears of it."""
        return self._gate.refusals

    def replace(self, grant: EgressGrant) -> None:
        """Put another grant in force, in one step, and cut every connection that it does not admit."""
        refused = grant.refused_ports | {self._port}
        self._gate.replace(dataclasses.replace(grant, refused_ports=refused))

    def refuse_ports(self, ports: Iterable[int]) -> None:
        """Replace the refused ports of the grant in force."""
        self.replace(dataclasses.replace(self.grant, refused_ports=frozenset(ports)))

    def end(self) -> None:
        """Cut every connection at once and refuse new ones. What is recorded stays readable. May be called again."""
        if self._close_listener is not None:
            self._close_listener()
            self._close_listener = None
        self._gate.end()


def _stop_listening(loop: asyncio.AbstractEventLoop, listener: asyncio.Server) -> None:
    """Accept nobody from now on, and close the listener.

    A connection that was accepted in this turn of the loop becomes one of ours in the next; with its listener closed by
    then, asyncio would forget it open.
    """
    for listening in listener.sockets:
        loop.remove_reader(listening)
    loop.call_soon(loop.call_soon, listener.close)
