"""A broker in this process over a real store, with handlers of a test's own and one paired session."""

import contextlib
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from lomi.broker.broker import Broker, BrokerSetting, open_broker
from lomi.broker.calls import SessionBackend
from lomi.broker.connections import Faces
from lomi.broker.deciders import PolicyDecider
from lomi.broker.host_gate import HostGate
from lomi.broker.paging import Cursors
from lomi.broker.sessions import Session
from lomi.contract.limits import DESKTOP
from lomi.contract.profiles import select
from lomi.contract.scopes import SCOPES
from lomi.core.backend import Request
from lomi.core.failpoints import Failpoints
from lomi.core.grant import EVERY, Grant
from lomi.core.ids import SessionId
from lomi.core.layout import PanelRecord, ProjectRecord, WorkspaceRecord, create_workspace, open_project
from lomi.core.port import Act, Adapter, Ledger, Read, Runtimes
from lomi.core.tool_list import tool_list
from lomi.host import SystemClock
from lomi.store import Store

LONGEST_MS = 15_000
DECIDED = frozenset({"lomi_project_open", "lomi_chat_stop"})


class Never:
    """Stands where a request says whether its client cancelled it."""

    def is_set(self) -> bool:
        return False

    async def wait(self) -> bool:
        raise AssertionError("nobody cancels")


@dataclass(frozen=True, slots=True)
class Room:
    """An open broker, its one session, and a workspace of its own."""

    broker: Broker
    session: Session
    backend: SessionBackend
    workspace: str
    epoch: str

    async def call(self, tool: str, **given: object) -> dict[str, Any]:
        """Call a tool; the envelope of its reply."""
        reply = await self.backend.call(tool, json.dumps(given).encode(), request=Request(id="1", cancelled=Never()))
        return cast("dict[str, Any]", msgspec.json.decode(reply.structured))

    async def mutate(self, tool: str, key: str, **given: object) -> dict[str, Any]:
        """Call a mutation of the workspace; the envelope of its reply, which a busy disk may keep waiting."""
        keyed = {"workspaceId": self.workspace, "retryEpoch": self.epoch, "requestKey": key, "waitMs": LONGEST_MS}
        return await self.call(tool, **(keyed | given))


def _grant(**changes: Any) -> Grant:
    every = frozenset({EVERY})
    plain = Grant(scopes=frozenset(SCOPES), workspaces=every, devices=every, packages=every, decide=DECIDED)
    return msgspec.structs.replace(plain, **changes)


def a_session(broker: Broker, name: str, **changes: Any) -> tuple[Session, SessionBackend]:
    """A further paired session; `changes` are those of its grant."""
    session = Session(
        id=SessionId(name),
        label=name,
        client_sha256="0" * 64,
        peer_pid=1,
        pairing_request_id="r",
        since=0.0,
        cursors=Cursors(64, os.urandom),
    )
    broker.world.sessions.add(session)
    broker.world.sessions.approve(session, _grant(**changes))
    selection = select(profile=None, tools=None)
    return session, SessionBackend(broker.world, broker.loop, session, selection, tool_list(selection))


@contextlib.asynccontextmanager
async def open_room(
    home: Path, tools: Sequence[Read | Act] = (), runtimes: Runtimes | None = None, **changes: Any
) -> AsyncIterator[Room]:
    """A broker with `tools` and `runtimes` beside its own; `changes` are those of the session's grant."""
    clock, failpoints = SystemClock(), Failpoints({})
    home.mkdir(mode=0o700, exist_ok=True)

    @contextlib.asynccontextmanager
    async def adapter(ledger: Ledger) -> AsyncIterator[Adapter]:
        del ledger
        yield Adapter(family="test", tools=tuple(tools), runtimes=runtimes)

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return adapter(ledger)

    setting = BrokerSetting(
        instance_id="i1",
        limits=DESKTOP,
        clock=clock,
        random_bytes=os.urandom,
        failpoints=failpoints,
        decider=PolicyDecider(),
        policy=None,
        asker=None,
        device_ids=lambda name: name,
        host=HostGate(qualified=True),
        protected=frozenset(),
        faces=cast("Faces", None),
    )
    opening = Store.open(home, instance_id="i1", limits=DESKTOP, clock=clock, failpoints=failpoints)
    async with opening as store, open_broker(setting, store, [factory]) as broker:
        room = broker.world.layout
        project = open_project(room.layout, ProjectRecord("j900", "project", str(home), 0, 0))
        await room.change(
            create_workspace(project, WorkspaceRecord("w900", "j900", "main"), "t900", PanelRecord("p900", "file", "x"))
        )
        session, backend = a_session(broker, "c900", **changes)
        connecting = Room(broker, session, backend, "w900", "")
        said = await connecting.call("lomi_connect", workspaceId="w900")
        yield Room(broker, session, backend, "w900", said["data"]["retryEpoch"])
