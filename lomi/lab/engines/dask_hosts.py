"""The hosts of a cluster as a run sees them: who is there, what each has free, and who has the run's files."""

import asyncio
from dataclasses import dataclass, field

from lomi.lab.engine import NeedsUnmetError
from lomi.lab.host_orders import PHONES, SLOTS, HostFacts
from lomi.lab.plan import Plan
from lomi.lab.shard import FileByHash, Needs


@dataclass(eq=False)
class Seat:
    """One host. `sent` are the files that it has; `gone` is set when the cluster lost it."""

    address: str
    facts: HostFacts
    total: int
    used: int = 0
    sent: tuple[FileByHash, ...] = ()
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Seats:
    """Who is there; everything waits for and tells of changes on one condition."""

    def __init__(self, plan: Plan) -> None:
        self.changed = asyncio.Condition()
        self._plan = plan
        self._seats: dict[str, Seat] = {}
        self._most: dict[str, int] = {}

    @property
    def all(self) -> tuple[Seat, ...]:
        """Those that are there."""
        return tuple(self._seats.values())

    @property
    def capacity(self) -> int:
        """How many shards of the smallest kind fit at once."""
        return sum(seat.total for seat in self._seats.values())

    def units(self, needs: Needs) -> int:
        """How much of a host a shard takes."""
        return needs.phones if self._plan.phones and needs.phones else 1

    def resources(self, needs: Needs) -> dict[str, float]:
        """The same as Dask's resources."""
        if self._plan.pool is not None and needs.phones:
            return {f"{PHONES}:{self._plan.pool.image}": float(needs.phones)}
        return {SLOTS: 1.0}

    async def add(self, address: str, facts: HostFacts) -> Seat | None:
        """A host came; None when it has nothing for this plan."""
        total = facts.slots if self._plan.pool is None else facts.phones.get(self._plan.pool.image, 0)
        if total == 0:
            return None
        seat = Seat(address, facts, total)
        self._most[facts.name] = total
        async with self.changed:
            self._seats[address] = seat
            self.changed.notify_all()
        return seat

    async def drop(self, address: str) -> None:
        """A host is gone."""
        seat = self._seats.pop(address, None)
        if seat is not None:
            seat.gone.set()
            async with self.changed:
                self.changed.notify_all()

    async def told(self) -> None:
        """Something about a seat changed."""
        async with self.changed:
            self.changed.notify_all()

    def check(self, needs: Needs) -> None:
        """Whether some host that was seen, here or gone, could ever give this.

        Raises:
            NeedsUnmetError: none could.
        """
        largest = max(self._most.values(), default=None)
        if largest is not None and self.units(needs) > largest:
            raise NeedsUnmetError(
                f"{needs.phones} phones are needed at once, and the largest host of this cluster has {largest}"
            )

    def able(self, needs: Needs) -> bool:
        """Whether some host that is here could give this once it is free."""
        return any(seat.total >= self.units(needs) for seat in self._seats.values())

    def lower(self, seat: Seat, total: int) -> None:
        """A host has less than it said: some of its phones are given up."""
        seat.total = self._most[seat.facts.name] = min(seat.total, total)

    def free(self, needs: Needs) -> Seat | None:
        """The host with most to spare, if one has enough."""
        wanted = self.units(needs)
        fitting = [seat for seat in self._seats.values() if seat.total - seat.used >= wanted]
        return max(fitting, key=lambda seat: (seat.total - seat.used, seat.facts.name), default=None)
