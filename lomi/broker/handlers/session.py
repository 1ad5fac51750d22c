"""Status, diagnostics, connect and events."""

import asyncio
import platform
from contextlib import suppress
from typing import Any

from lomi.broker.host_gate import HostGate
from lomi.broker.paging import fit
from lomi.broker.sessions import RetryEpoch, Session
from lomi.broker.storing import queued, storing
from lomi.broker.world import World
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import Definition
from lomi.contract.model import Connection
from lomi.contract.scopes import SCOPES
from lomi.contract.session import (
    Capability,
    Connected,
    ConnectInput,
    ControlEvent,
    Diagnostics,
    Events,
    EventsInput,
    Status,
    StatusInput,
    Usage,
)
from lomi.core.port import Call, Read, Reply
from lomi.core.refusal import Refusal

_NEXT_STEP: dict[Connection, str] = {
    "app_unavailable": "Start the broker with `lomi up`.",
    "connecting": "Wait a moment and ask again.",
    "pairing_required": "Ask the person at the broker to approve the pairing request shown there.",
    "connected": "Call lomi_workspace_list, then lomi_connect with a workspaceId.",
    "disconnected": "This session has ended; restart the client process to pair again.",
    "host_unqualified": "This host is not supported; see the documentation for those that are.",
}


_UNLISTED = (
    "Nobody is there to ask, and no entry of the broker's policy fits this client: check LOMI_CLIENT_LABEL and "
    "LOMI_CLIENT_TOKEN against the file."
)


def _needed(definition: Definition) -> frozenset[str]:
    """The scopes that some call of a tool needs."""
    words = (word for text in definition.more_scopes_text for word in text.replace(",", " ").split())
    return frozenset(definition.scopes).union(words)


class SessionHandlers:
    """Answers about the connection itself."""

    def __init__(self, world: World, host: HostGate) -> None:
        self._world = world
        self._host = host
        # Hosts ask for the status often, and definitions never change.
        self._needed = {name: _needed(definition) for name, definition in world.definitions.items()}

    def handlers(self) -> tuple[Read, ...]:
        """The handlers, for the broker's table."""
        return (
            Read(tool="lomi_status", read=self.status),
            Read(tool="lomi_diagnostics", read=self.diagnostics),
            Read(tool="lomi_connect", read=self.connect),
            Read(tool="lomi_events_read", read=self.events),
        )

    def _session(self, call: Call[Any]) -> Session:
        session = self._world.sessions.get(call.session_id)
        if session is None:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
        return session

    def _capabilities(self, session: Session) -> tuple[Capability, ...]:
        world = self._world
        available = frozenset[str]().union(*(self._needed[name] for name in world.working_tools()))
        granted = session.grant.scopes if session.grant and world.sessions.has_authority(session) else frozenset()
        return tuple(
            Capability(
                name=scope,
                available=scope in available,
                authorized=scope in granted,
                qualified=self._host.qualified,
            )
            for scope in SCOPES
        )

    def _limitations(self) -> tuple[str, ...]:
        world = self._world
        absent = [name for name in world.definitions if name not in world.handlers]
        said = [*self._host.limitations, *(line for adapter in world.adapters for line in adapter.limitations)]
        if absent:
            said.append("No adapter in this build for: " + ", ".join(absent))
        said.extend(
            f"{row.name} is at {row.used} of {row.limit}; the owner can run `lomi store reconcile`"
            for row in world.store.usage()
            if row.limit and row.used * 5 >= row.limit * 4
        )
        return tuple(said)

    async def status(self, call: Call[StatusInput]) -> Reply:
        """Where this connection stands; waits until the phase changes when asked to."""
        world, session = self._world, self._session(call)
        phase = world.sessions.phase(session)
        if call.input.wait_ms and phase in ("pairing_required", "connecting"):
            with suppress(TimeoutError):
                async with asyncio.timeout(call.input.wait_ms / 1000), world.changed:
                    await world.changed.wait_for(lambda: world.sessions.phase(session) != phase)
            phase = world.sessions.phase(session)
        paired = phase == "connected"
        status = Status(
            connection=phase,
            pairing_request_id=session.pairing_request_id if phase == "pairing_required" else None,
            instance_id=world.instance_id,
            ui_ready=True,
            platform=f"{platform.system().lower()}-{platform.machine()}",
            capabilities=self._capabilities(session),
            limitations=((_UNLISTED,) if session.unlisted and not paired else ()) + self._limitations(),
            usage=tuple(Usage(name=r.name, used=r.used, limit=r.limit) for r in world.store.usage()) if paired else (),
        )
        return Reply(data=status, text=_status_text(status, _step(session, phase)))

    async def diagnostics(self, call: Call[Any]) -> Reply:
        """The next step."""
        session = self._session(call)
        phase = self._world.sessions.phase(session)
        step = _step(session, phase)
        if phase == "pairing_required" and not session.unlisted:
            step += f" (request {session.pairing_request_id})"
        return Reply(data=Diagnostics(connection=phase, ui_ready=True, next_step=step), text=f"{phase}: {step}")

    async def connect(self, call: Call[ConnectInput]) -> Reply:
        """Issue this session's retry epoch, or name the one it has."""
        world, session = self._world, self._session(call)
        assert call.workspace is not None
        assert session.grant is not None
        if session.epoch is None or world.clock.time() >= session.epoch.expires:
            epoch = RetryEpoch(id=world.random_bytes(20).hex(), expires=world.clock.time() + world.limits.epoch_s)
            saved = queued(lambda: world.store.put_epoch(epoch.id, session.id, int(epoch.expires)))
            await storing(saved)
            session.epoch = epoch
        scopes = tuple(scope for scope in SCOPES if scope in session.grant.scopes)
        session.told_revision = world.layout.revision
        connected = Connected(
            instance_id=world.instance_id,
            workspace_id=call.workspace.id,
            project_id=call.workspace.project_id,
            retry_epoch=session.epoch.id,
            scopes=scopes,
        )
        text = (
            f"connected to {connected.workspace_id} of {connected.project_id}\nretryEpoch: {connected.retry_epoch}\n"
            f"domainRevision: {world.layout.revision}\nscopes: {' '.join(scopes)}"
        )
        return Reply(data=connected, text=text)

    async def events(self, call: Call[EventsInput]) -> Reply:
        """This session's state changes in one workspace, in order."""
        world, session, given = self._world, self._session(call), call.input
        view = ("events", given.workspace_id)
        offset = session.cursors.offset(given.cursor, view)
        seen = world.changes
        rows = await self._rows(session, given, offset)
        if not rows and given.wait_ms:
            with suppress(TimeoutError):
                async with asyncio.timeout(given.wait_ms / 1000):
                    while not rows:
                        await world.change_after(seen)
                        seen = world.changes
                        rows = await self._rows(session, given, offset)
        page = fit(rows[: given.limit], given.limit) if rows else ()
        return Reply(
            data=Events(
                items=page,
                next_cursor=session.cursors.make(view, offset + len(page)),
                has_more=len(rows) > len(page),
            )
        )

    async def _rows(self, session: Session, given: EventsInput, offset: int) -> list[ControlEvent]:
        found = await self._world.store.events(
            session_id=session.id, workspace_id=given.workspace_id, after=offset, limit=given.limit + 1
        )
        return [
            ControlEvent(
                sequence=str(offset + place + 1),
                kind="operation_state",
                operation_id=row.operation_id,
                workspace_id=given.workspace_id,
                tool=row.tool,
                state=row.state,
                effect_state=row.effect,
                timestamp_seconds=row.at_s,
            )
            for place, row in enumerate(found)
        ]


def _step(session: Session, phase: Connection) -> str:
    """What a client in this phase can do next; nobody will ever approve one that no entry of the policy fits."""
    return _UNLISTED if phase == "pairing_required" and session.unlisted else _NEXT_STEP[phase]


def _status_text(status: Status, step: str) -> str:
    lines = [f"connection: {status.connection}", f"next: {step}"]
    if status.pairing_request_id is not None:
        lines.append(f"pairing request: {status.pairing_request_id}")
    allowed = [c.name for c in status.capabilities if c.authorized and c.available]
    if allowed:
        lines.append("you may use: " + " ".join(allowed))
    lines.extend(f"note: {line}" for line in status.limitations if line != step)
    return "\n".join(lines)
