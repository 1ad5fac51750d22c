"""What the owner's own commands ask of a running broker.

They come over the same private socket as any client, with the role `owner` in their hello. They are no tools: no grant
reaches them and no agent lists them. All of them look or reduce authority, but for two. Giving back what a person took
is refused from inside a terminal of ours; YOLO is taken only from a process at a terminal that is none of ours.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lomi.broker import rendering
from lomi.broker.ancestry import has_terminal, is_inside
from lomi.broker.broker import Broker
from lomi.broker.owner.answers import Done, Holdings, OwnerStatus, ReceiptPage, YoloAnswer
from lomi.broker.owner.history import receipt_page
from lomi.broker.owner.holdings import holdings_of, session_row
from lomi.broker.preferences import PreferencesError, save_yolo
from lomi.broker.yolo import YoloSwitch
from lomi.core.backend import InvalidParams, Request, ToolList, ToolReply
from lomi.core.log_fields import fields
from lomi.core.port import ResourceKey
from lomi.store import ReconcileReport

_log = logging.getLogger("lomi.broker.owner")
_PROC = Path("/proc")
_INSIDE = "it was asked for from inside a terminal of this broker"
Answer = Done | Holdings | OwnerStatus | ReceiptPage | ReconcileReport | YoloAnswer


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class _Reconcile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ended_sessions: bool = False


class _Receipts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str | None = None
    since_s: int | None = None
    before: int | None = None
    limit: int = 100


class _Yolo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: bool


class _Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSetting:
    """What the commands need beside the broker: its home, its switches, and the names of its phones by device id."""

    home: Path
    stop: asyncio.Event
    yolo: YoloSwitch
    limitations: Callable[[], tuple[str, ...]]
    qualified: bool
    devices: Mapping[str, str]


class OwnerBackend:
    """Answers the owner's commands of one connection (a `Backend` that lists no tools)."""

    def __init__(self, broker: Broker, setting: OwnerSetting, peer_pid: int) -> None:
        self._broker = broker
        self._setting = setting
        self._peer_pid = peer_pid
        self._commands: dict[str, Callable[[bytes], Awaitable[Answer]]] = {
            "owner.status": self._status,
            "owner.ps": self._ps,
            "owner.receipts": self._receipts,
            "owner.revoke": self._revoke,
            "owner.revoke_all": self._revoke_all,
            "owner.take": self._take,
            "owner.give_back": self._give_back,
            "owner.reconcile": self._reconcile,
            "owner.yolo": self._yolo,
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
        world, setting = self._broker.world, self._setting
        damage = (setting.yolo.damage,) if setting.yolo.damage else ()
        return OwnerStatus(
            instance_id=world.instance_id,
            pid=os.getpid(),
            yolo=setting.yolo.on,
            tools_working=world.working_tools(),
            tools_absent=tuple(name for name in world.definitions if name not in world.handlers),
            limitations=(*damage, *setting.limitations()),
            usage=tuple((row.name, row.used, row.limit) for row in world.store.usage()),
            sessions=tuple(session_row(world, session) for session in world.sessions),
            devices=tuple(
                f"{device_id} {world.generations.current(ResourceKey('android', device_id))}"
                for device_id in setting.devices
            ),
        )

    async def _ps(self, arguments: bytes) -> Holdings:
        msgspec.json.decode(arguments, type=_Nothing)
        return holdings_of(self._broker.world, self._setting.devices, yolo=self._setting.yolo.on)

    async def _receipts(self, arguments: bytes) -> ReceiptPage:
        given = msgspec.json.decode(arguments, type=_Receipts)
        return await receipt_page(
            self._broker.world.store,
            session=given.session,
            since_s=given.since_s,
            before=given.before,
            limit=given.limit,
        )

    async def _revoke(self, arguments: bytes) -> Done:
        given = msgspec.json.decode(arguments, type=_Named)
        return Done(int(self._broker.revoke(given.name)))

    async def _revoke_all(self, arguments: bytes) -> Done:
        msgspec.json.decode(arguments, type=_Nothing)
        return Done(self._end_everyone())

    def _end_everyone(self) -> int:
        count = len(self._broker.world.sessions)
        self._broker.revoke_all()
        _log.info("every session was revoked", extra=fields(count=count))
        return count

    def _resource(self, arguments: bytes) -> ResourceKey | None:
        """What a panel shows; a phone also by its own name or id, since no panel need show it."""
        name = msgspec.json.decode(arguments, type=_Named).name
        panel = self._broker.world.layout.panel(name)
        if panel is not None:
            return panel.resource
        for device_id, device_name in self._setting.devices.items():
            if name in (device_id, device_name):
                return ResourceKey("android", device_id)
        return None

    async def _take(self, arguments: bytes) -> Done:
        resource = self._resource(arguments)
        if resource is not None:
            self._broker.take(resource)
            _log.info("the owner took a resource", extra=fields(resource=resource.name))
        return Done(int(resource is not None))

    async def _give_back(self, arguments: bytes) -> Done:
        resource = self._resource(arguments)
        if await asyncio.to_thread(is_inside, self._peer_pid, _PROC):
            return Done(0, refused=_INSIDE)
        if resource is not None:
            self._broker.give_back(resource)
            _log.info("the owner gave a resource back", extra=fields(resource=resource.name))
        return Done(int(resource is not None))

    async def _reconcile(self, arguments: bytes) -> ReconcileReport:
        given = msgspec.json.decode(arguments, type=_Reconcile)
        world = self._broker.world
        return await world.store.reconcile(
            ended_sessions=given.ended_sessions,
            now_s=int(world.clock.time()),
            live_sessions=frozenset(session.id for session in world.sessions),
        )

    async def _yolo(self, arguments: bytes) -> YoloAnswer:
        """Save first, then switch, then end every session; what can't be saved is not switched."""
        wanted, switch = msgspec.json.decode(arguments, type=_Yolo).on, self._setting.yolo
        refused = await asyncio.to_thread(self._yolo_refusal, on=wanted)
        if refused is None and wanted != switch.on:
            try:
                await asyncio.to_thread(save_yolo, self._setting.home, on=wanted)
            except PreferencesError as failure:
                refused = f"{failure}; it is kept, and nothing is saved over it"
        if refused is not None:
            return YoloAnswer(on=switch.on, refused=refused)
        if wanted == switch.on:
            return YoloAnswer(on=switch.on)
        switch.on, switch.damage = wanted, None
        _log.warning("YOLO was switched", extra=fields(state="on" if wanted else "off", peer=self._peer_pid))
        return YoloAnswer(on=wanted, revoked=self._end_everyone())

    def _yolo_refusal(self, *, on: bool) -> str | None:
        if is_inside(self._peer_pid, _PROC):
            return _INSIDE
        if not has_terminal(self._peer_pid, _PROC):
            return "only a person at a terminal may switch it"
        if on and not self._setting.qualified:
            return "this host is not one of those that Lomi is qualified for"
        return None

    async def _down(self, arguments: bytes) -> Done:
        msgspec.json.decode(arguments, type=_Nothing)
        _log.info("the owner stops the broker")
        self._setting.stop.set()
        return Done(1)
