"""The policy's idle limit on leases. Sleeps exactly until the next lease could end; no timer when none has a limit."""

import asyncio
from contextlib import suppress

from lomi.broker.world import World
from lomi.core.port import Lease


class IdleLeases:
    """Ends leases that were not used for their session's `lease_idle_s`. Work in flight counts as activity."""

    def __init__(self, world: World) -> None:
        self._world = world

    def _busy(self, lease: Lease) -> bool:
        return any(operation.generation == lease.generation for operation in self._world.active.values())

    def _left(self, lease: Lease) -> float | None:
        """Seconds until a lease ends by idleness; None for one without a limit."""
        session = self._world.sessions.get(lease.session_id)
        limit = session.grant.lease_idle_s if session and session.grant else 0
        last = self._world.leases.last_active(lease.generation)
        if not limit or last is None:
            return None
        now = self._world.clock.monotonic()
        if self._busy(lease):
            self._world.leases.touch(lease.generation, now)
            last = now
        return last + limit - now

    def sweep(self) -> float | None:
        """End what is due; returns the seconds until the next could be, None when no lease has a limit."""
        waits: list[float] = []
        for lease in self._world.leases:
            left = self._left(lease)
            if left is not None and left <= 0:
                self._world.leases.end(lease.generation)
            elif left is not None:
                waits.append(left)
        return min(waits) if waits else None

    async def run(self) -> None:
        """Watch for as long as the broker lives."""
        while True:
            seen = self._world.changes
            wait = self.sweep()
            with suppress(TimeoutError):
                # A change may be a lease whose limit is shorter than the one that is waited for.
                async with asyncio.timeout(wait):
                    await self._world.change_after(seen)
