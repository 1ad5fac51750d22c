"""What the rooms of the broker share: one value, made by the composition root and handed to each."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lomi.broker.counters import Counters
from lomi.broker.deciders import Decider
from lomi.broker.layout_room import LayoutRoom
from lomi.broker.operations import Operation
from lomi.broker.queues import Queues
from lomi.broker.sessions import Sessions
from lomi.contract.definition import Definition, ResourceKind
from lomi.contract.limits import Limits
from lomi.core.failpoints import Failpoints
from lomi.core.generations import Generations
from lomi.core.ids import GenerationId, OperationId, SessionId
from lomi.core.leases import Leases
from lomi.core.port import Act, Adapter, Clock, Read, ResourceKey, Runtimes
from lomi.store import Store


@dataclass(slots=True, kw_only=True)
class World:
    """The broker's state and its sources of time, chance and storage."""

    instance_id: str
    store: Store
    limits: Limits
    clock: Clock
    random_bytes: Callable[[int], bytes]
    failpoints: Failpoints
    definitions: dict[str, Definition]
    counters: Counters
    layout: LayoutRoom
    decider: Decider
    leases: Leases
    fingerprint_key: bytes
    sessions: Sessions = field(default_factory=Sessions)
    generations: Generations = field(default_factory=Generations)
    queues: Queues = field(default_factory=Queues)
    handlers: dict[str, Read | Act] = field(default_factory=dict)
    runtimes: dict[ResourceKind, Runtimes] = field(default_factory=dict)
    adapters: list[Adapter] = field(default_factory=list)
    owners: dict[GenerationId, SessionId] = field(default_factory=dict)
    active: dict[OperationId, Operation] = field(default_factory=dict)
    closing: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    changes: int = 0

    def current_generation(self, resource: ResourceKey) -> GenerationId | None:
        """The present life of a resource."""
        return self.generations.current(resource)

    def handle(self, handlers: Iterable[Read | Act]) -> None:
        """Take in handlers; each tool has one.

        Raises:
            ValueError: for a tool that is not defined, or handled twice.
        """
        for handler in handlers:
            if handler.tool not in self.definitions or handler.tool in self.handlers:
                raise ValueError(f"{handler.tool} is not defined, or has a handler already")
            self.handlers[handler.tool] = handler

    def working_tools(self) -> tuple[str, ...]:
        """Names of the tools that have a handler, in catalogue order."""
        return tuple(name for name in self.definitions if name in self.handlers)

    async def tell_change(self) -> None:
        """Wake everyone who waits for a state change."""
        self.changes += 1
        async with self.changed:
            self.changed.notify_all()

    async def change_after(self, seen: int) -> None:
        """Return once there is a change that `changes` did not count yet when it was `seen`."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.changes != seen)
