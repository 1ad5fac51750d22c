"""The broker as one value that the composition root opens: world, loop, handlers, adapters; revocation and its end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

from lomi.broker.connections import Connections, Faces
from lomi.broker.counters import Counters
from lomi.broker.deciders import Decider
from lomi.broker.handlers.artifact import ArtifactHandlers
from lomi.broker.handlers.artifact_export import ArtifactExports
from lomi.broker.handlers.closing import Closing
from lomi.broker.handlers.operation import OperationHandlers
from lomi.broker.handlers.panel import PanelHandlers
from lomi.broker.handlers.session import SessionHandlers
from lomi.broker.handlers.workspace import WorkspaceHandlers
from lomi.broker.host_gate import HostGate
from lomi.broker.idle import IdleLeases
from lomi.broker.layout_room import LayoutRoom
from lomi.broker.ledger import BrokerLedger
from lomi.broker.loop import Loop
from lomi.broker.pairing import Pairing, PairingAsker
from lomi.broker.policy import Policy
from lomi.broker.world import World
from lomi.broker.yolo import YoloSwitch
from lomi.contract.codes import OperationState
from lomi.contract.definition import by_name
from lomi.contract.limits import Limits
from lomi.contract.tools import ALL
from lomi.core.failpoints import Failpoints
from lomi.core.ids import LeaseId
from lomi.core.leases import Leases
from lomi.core.port import AdapterFactory, Clock, Lease, ResourceKey
from lomi.core.refusal import Refusal
from lomi.disk.root import Protected
from lomi.store import Store

CLOSE_S = 5.0
"""How long running work may take to settle when the broker closes; after that recovery will call it unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSetting:
    """What a broker is opened with."""

    instance_id: str
    limits: Limits
    clock: Clock
    random_bytes: Callable[[int], bytes]
    failpoints: Failpoints
    decider: Decider
    policy: Policy | None
    asker: PairingAsker | None
    device_ids: Callable[[str], str]
    host: HostGate
    protected: Protected
    faces: Faces
    yolo: YoloSwitch = field(default_factory=YoloSwitch)


class Broker:
    """An open broker."""

    def __init__(self, world: World, loop: Loop, ledger: BrokerLedger, connections: Connections) -> None:
        self.world = world
        self.loop = loop
        self.ledger = ledger
        self.connections = connections

    def revoke(self, session_id: str) -> bool:
        """End one session's authority at once; False when there is no such session."""
        session = self.world.sessions.get(session_id)
        if session is None:
            return False
        self.loop.end_session(session)
        if session.cut is not None:
            session.cut()
        return True

    def revoke_all(self) -> None:
        """End every session's authority at once: one addition first, then the tidying."""
        self.world.sessions.revoke_all()
        for session in self.world.sessions:
            self.revoke(session.id)

    def take(self, resource: ResourceKey) -> None:
        """A person takes a resource over."""
        self.ledger.take_over(resource)

    def give_back(self, resource: ResourceKey) -> None:
        """The person gives it back. A page can't be claimed, so its lease returns to the session that opened it."""
        was_taken = self.world.leases.taken(resource)
        self.world.leases.give_back(resource)
        generation = self.world.generations.current(resource)
        owner = self.world.owners.get(generation) if generation is not None else None
        if was_taken and resource.kind == "browser" and generation is not None and owner is not None:
            with suppress(Refusal):
                self.ledger.grant_lease(generation, owner)

    async def settle_down(self) -> None:
        """Refuse new work, withdraw what was not dispatched, and let what runs settle for a while."""
        self.world.closing = True
        for operation in tuple(self.world.active.values()):
            if operation.state in (OperationState.QUEUED, OperationState.AWAITING_USER):
                operation.ask_to_cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                for operation in tuple(self.world.active.values()):
                    await operation.answered.wait()
        self.revoke_all()


def _world(setting: BrokerSetting, store: Store) -> World:
    counters = Counters(store)
    world: World

    def lease_ended(lease: Lease) -> None:
        resource = world.generations.resource(lease.generation)
        if resource is not None and resource.kind in world.runtimes:
            world.runtimes[resource.kind].lease_ended(lease.generation, lease.id)

    leases = Leases(new_id=lambda: LeaseId(counters.id("lease")), ended=lease_ended)
    world = World(
        instance_id=setting.instance_id,
        store=store,
        limits=setting.limits,
        clock=setting.clock,
        random_bytes=setting.random_bytes,
        failpoints=setting.failpoints,
        definitions=by_name(ALL),
        counters=counters,
        layout=LayoutRoom(store.layout(), save=store.put_layout, counters=counters),
        decider=setting.decider,
        leases=leases,
        fingerprint_key=setting.random_bytes(32),
    )
    return world


@asynccontextmanager
async def open_broker(
    setting: BrokerSetting, store: Store, adapters: Sequence[AdapterFactory]
) -> AsyncIterator[Broker]:
    """Open a broker over an open store; adapters sweep what an earlier broker left before anyone may call."""
    world = _world(setting, store)
    await world.counters.stock("session", "project", "workspace", "panel", "tab", "lease")
    ledger = BrokerLedger(world, store.artifacts)
    async with AsyncExitStack() as opened:
        for factory in adapters:
            adapter = await opened.enter_async_context(factory(ledger))
            world.adapters.append(adapter)
            world.handle(adapter.tools)
            if adapter.runtimes is not None:
                world.runtimes[adapter.runtimes.kind] = adapter.runtimes
        async with asyncio.TaskGroup() as tasks:
            loop = Loop(world, tasks)
            closing = Closing(world)
            world.handle(SessionHandlers(world, setting.host).handlers())
            world.handle(WorkspaceHandlers(world, closing, setting.protected).handlers())
            world.handle(PanelHandlers(world, ledger, closing).handlers())
            world.handle(OperationHandlers(world, loop).handlers())
            world.handle(ArtifactHandlers(store.artifacts, setting.protected).handlers())
            world.handle(ArtifactExports(store.artifacts, setting.protected).handlers())
            pairing = Pairing(world, setting.policy, setting.asker, setting.device_ids, setting.yolo)
            connections = Connections(world, loop, pairing, setting.faces)
            idle = tasks.create_task(IdleLeases(world).run())
            broker = Broker(world, loop, ledger, connections)
            try:
                yield broker
            finally:
                await broker.settle_down()
                loop.abandon()
                idle.cancel()
