"""FIFO turns: one queue per target, free across targets."""

import asyncio
from collections import deque
from collections.abc import Hashable


class Turn:
    """A place in one queue. The holder of the first place may act; `leave` lets the next one in."""

    def __init__(self, queues: "Queues", key: Hashable, *, first: bool) -> None:
        self._queues = queues
        self._key = key
        self._left = False
        self._mine = asyncio.Event()
        if first:
            self._mine.set()

    @property
    def is_mine(self) -> bool:
        """Whether this turn has come."""
        return self._mine.is_set()

    async def wait(self) -> None:
        """Return when this turn has come."""
        await self._mine.wait()

    def come(self) -> None:
        """Begin this turn."""
        self._mine.set()

    def leave(self) -> None:
        """End this turn, or give up the place; may be called twice."""
        if not self._left:
            self._left = True
            self._queues.remove(self._key, self)


class Queues:
    """All queues that hold at least one turn."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[Turn]] = {}

    def join(self, key: Hashable) -> Turn:
        """Take the last place in a target's queue, in the order of these calls."""
        queue = self._waiting.setdefault(key, deque())
        turn = Turn(self, key, first=not queue)
        queue.append(turn)
        return turn

    def remove(self, key: Hashable, turn: Turn) -> None:
        """Take a turn out and begin the next one if it was first."""
        queue = self._waiting[key]
        was_first = queue[0] is turn
        queue.remove(turn)
        if not queue:
            del self._waiting[key]
        elif was_first:
            queue[0].come()

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())
