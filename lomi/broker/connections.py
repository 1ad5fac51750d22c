"""Connections: from a proven certificate to a session, its pairing, its calls, and its end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from lomi.broker.border import captured
from lomi.broker.calls import SessionBackend
from lomi.broker.loop import Loop
from lomi.broker.paging import Cursors
from lomi.broker.pairing import Pairing
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.contract.profiles import UnknownSelectionError, select
from lomi.core.backend import Backend
from lomi.core.ids import SessionId
from lomi.core.log_fields import bound, fields
from lomi.core.tool_list import tool_list
from lomi.link.connection import Connection
from lomi.link.errors import LinkError
from lomi.link.messages import Hello

Serve = Callable[[Connection, Backend], Awaitable[None]]
_log = logging.getLogger("lomi.broker")


class Faces(Protocol):
    """How frames become calls; the composition root brings both, so that the broker knows neither protocol."""

    async def mcp(self, connection: Connection, backend: Backend) -> None:
        """Serve an MCP helper."""
        ...

    async def calls(self, connection: Connection, backend: Backend) -> None:
        """Serve a client."""
        ...


class Connections:
    """Every connection's life."""

    def __init__(self, world: World, loop: Loop, pairing: Pairing, faces: Faces) -> None:
        self._world = world
        self._loop = loop
        self._pairing = pairing
        self._faces = faces

    def with_owner(self, owner: Callable[[int], Backend]) -> Callable[[Connection], Awaitable[None]]:
        """What the link calls for each client: a session each, but for the owner's commands.

        Those go to what `owner` makes for the peer's process id.
        """

        async def on_connection(connection: Connection) -> None:
            hello = await connection.greet("pairing_required")
            if hello.options.get("role") == "owner":
                await captured(self._speak(connection, owner(connection.peer_pid), hello))
            else:
                # What fails here (a full disk, a prompt that is gone) ends this connection, never the broker.
                await captured(self._serve(connection, hello))

        return on_connection

    async def _speak(self, connection: Connection, backend: Backend, hello: Hello) -> None:
        """Serve the client; one that breaks the framing has ended its own connection, and nothing else."""
        serve = self._faces.mcp if hello.purpose == "mcp" else self._faces.calls
        try:
            await serve(connection, backend)
        except LinkError as broken:
            _log.info("a client broke the framing", extra=fields(reason=str(broken.reason)))

    async def _serve(self, connection: Connection, hello: Hello) -> None:
        """From the welcome to the end; the session and its leases end with the connection."""
        world = self._world
        await world.counters.stock("session", "lease")
        session = Session(
            id=SessionId(world.counters.id("session")),
            label=connection.label,
            client_sha256=connection.client_sha256,
            peer_pid=connection.peer_pid,
            pairing_request_id=connection.pairing_request_id,
            since=world.clock.time(),
            cursors=Cursors(world.limits.event_cursors, world.random_bytes),
        )
        try:
            selection = select(profile=hello.options.get("profile"), tools=hello.options.get("tools"))
        except UnknownSelectionError as unknown:
            _log.warning("a client asked for %s", unknown)
            return
        backend = SessionBackend(world, self._loop, session, selection, tool_list(selection))
        # Cut at the very instant of a revocation: nothing that was prepared goes out after it.
        session.cut = connection.abort
        world.sessions.add(session)
        with bound(session=session.id):
            _log.info("session began", extra=fields(peer=session.peer_pid))
            try:
                await self._pairing.try_at_once(session, connection, hello)
                async with asyncio.TaskGroup() as group:
                    waiting = group.create_task(self._pairing.wait_for_person(session))
                    await captured(self._speak(connection, backend, hello))
                    self._loop.end_session(session)
                    waiting.cancel()
            finally:
                self._loop.end_session(session)
                world.sessions.remove(session)
                _log.info("session ended")
                await world.tell_change()
