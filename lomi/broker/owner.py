"""What the owner's own commands ask of a running broker: look, reduce authority, stop, reconcile. Nothing adds any.

They come over the same private socket as any client, with the role `owner` in their hello. They are no tools: no grant
reaches them and no agent lists them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from lomi.broker import rendering
from lomi.broker.broker import Broker
from lomi.broker.world import World
from lomi.core.backend import InvalidParams, Request, ToolList, ToolReply
from lomi.core.port import ResourceKey


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One connection and what it holds."""

    id: str
    label: str
    pid: int
    phase: str
    since_s: float
    scopes: tuple[str, ...]
    leases: tuple[str, ...]
    operations: int


class OwnerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The broker at a glance. `usage` rows are name, used, limit."""

    instance_id: str
    pid: int
    tools_working: tuple[str, ...]
    tools_absent: tuple[str, ...]
    limitations: tuple[str, ...]
    usage: tuple[tuple[str, int, int], ...]
    sessions: tuple[SessionRow, ...]
    devices: tuple[str, ...]


class Done(msgspec.Struct, frozen=True):
    """How many things a command touched."""

    count: int


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class _Reconcile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ended_sessions: bool = False


class _Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class OwnerBackend:
    """Answers the owner's commands (a `Backend` that lists no tools)."""

    def __init__(
        self, broker: Broker, *, pid: int, stop: asyncio.Event, limitations: Callable[[], tuple[str, ...]]
    ) -> None:
        self._broker = broker
        self._pid = pid
        self._stop = stop
        self._limitations = limitations
        self._commands: dict[str, Callable[[bytes], Awaitable[Any]]] = {
            "owner.status": self._status,
            "owner.revoke": self._revoke,
            "owner.revoke_all": self._revoke_all,
            "owner.take": self._take,
            "owner.give_back": self._give_back,
            "owner.reconcile": self._reconcile,
            "owner.down": self._down,
        }

    def listed(self) -> ToolList:
        """Nothing: owner commands are no tools."""
        return ToolList(tools=(), digest="owner")

    async def call(self, tool: str, arguments: bytes, *, request: Request) -> ToolReply:
        """Run one owner command.

        Raises:
            InvalidParams: unknown command, unknown field, wrong type.
        """
        command = self._commands.get(tool)
        if command is None:
            raise InvalidParams(f"unknown owner command {tool!r}")
        del request
        try:
            answer = await command(arguments)
        except msgspec.DecodeError as error:
            raise InvalidParams(str(error)) from error
        envelope = rendering.OkEnvelope(data=answer)
        return ToolReply(structured=msgspec.json.encode(envelope), text="")

    async def _status(self, arguments: bytes) -> OwnerStatus:
        msgspec.json.decode(arguments, type=_Nothing)
        world = self._broker.world
        working = world.working_tools()
        rows = []
        for session in world.sessions:
            held = tuple(f"{x.id} on {x.generation}" for x in world.leases if x.session_id == session.id)
            alive = world.sessions.has_authority(session)
            rows.append(
                SessionRow(
                    id=session.id,
                    label=session.label,
                    pid=session.peer_pid,
                    phase=world.sessions.phase(session),
                    since_s=session.since,
                    scopes=tuple(sorted(session.grant.scopes)) if alive and session.grant else (),
                    leases=held,
                    operations=sum(op.session_id == session.id for op in world.active.values()),
                )
            )
        return OwnerStatus(
            instance_id=world.instance_id,
            pid=self._pid,
            tools_working=working,
            tools_absent=tuple(name for name in world.definitions if name not in world.handlers),
            limitations=self._limitations(),
            usage=tuple((row.name, row.used, row.limit) for row in world.store.usage()),
            sessions=tuple(rows),
            devices=tuple(
                _device_row(world, record.resource_name or "")
                for record in world.layout.layout.panels.values()
                if record.resource_kind == "android"
            ),
        )

    async def _revoke(self, arguments: bytes) -> Done:
        given = msgspec.json.decode(arguments, type=_Named)
        return Done(int(self._broker.revoke(given.name)))

    async def _revoke_all(self, arguments: bytes) -> Done:
        msgspec.json.decode(arguments, type=_Nothing)
        count = len(self._broker.world.sessions)
        self._broker.revoke_all()
        return Done(count)

    def _resource(self, arguments: bytes) -> ResourceKey | None:
        panel = self._broker.world.layout.panel(msgspec.json.decode(arguments, type=_Named).name)
        return panel.resource if panel else None

    async def _take(self, arguments: bytes) -> Done:
        resource = self._resource(arguments)
        if resource is not None:
            self._broker.take(resource)
        return Done(int(resource is not None))

    async def _give_back(self, arguments: bytes) -> Done:
        resource = self._resource(arguments)
        if resource is not None:
            self._broker.give_back(resource)
        return Done(int(resource is not None))

    async def _reconcile(self, arguments: bytes) -> Any:
        given = msgspec.json.decode(arguments, type=_Reconcile)
        world = self._broker.world
        return await world.store.reconcile(
            ended_sessions=given.ended_sessions,
            now_s=int(world.clock.time()),
            live_sessions=frozenset(session.id for session in world.sessions),
        )

    async def _down(self, arguments: bytes) -> Done:
        msgspec.json.decode(arguments, type=_Nothing)
        self._stop.set()
        return Done(1)


def _device_row(world: World, device_id: str) -> str:
    return f"{device_id} {world.generations.current(ResourceKey('android', device_id))}"
