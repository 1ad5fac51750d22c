"""Short ids that are never reused: `w1`, `p3`, `l7`. Whole blocks are made durable, so that an id costs no commit."""

from typing import Literal, Protocol

from lomi.contract.codes import ErrorCode
from lomi.core.refusal import Refusal
from lomi.store import StoreUnavailable

CounterName = Literal[
    "session", "project", "workspace", "panel", "tab", "lease", "terminal", "browser", "android", "snapshot"
]
_PREFIX: dict[str, str] = {"session": "c", "project": "j", "workspace": "w", "panel": "p", "tab": "t", "lease": "l"}
BLOCK = 128


class Bumps(Protocol):
    """The store's durable counters."""

    async def bump(self, counter: str, by: int = 1) -> int:
        """Raise a counter by `by`; returns its new value once that is durable.

        Raises:
            StoreUnavailable: it could not be made durable.
        """
        ...


class Counters:
    """Numbers from blocks that are already durable."""

    def __init__(self, bumps: Bumps) -> None:
        self._bumps = bumps
        self._next: dict[str, int] = {}
        self._last: dict[str, int] = {}

    async def stock(self, *names: CounterName) -> None:
        """Make sure that at least half a block of each counter is at hand.

        Raises:
            Refusal: STORAGE_UNAVAILABLE when a block could not be made durable.
        """
        for name in names:
            if not self.stocked(name):
                try:
                    top = await self._bumps.bump(name, BLOCK)
                except StoreUnavailable as failed:
                    raise Refusal(ErrorCode.STORAGE_UNAVAILABLE, failed.reason) from failed
                if self._next.get(name, 0) > self._last.get(name, -1):
                    self._next[name] = top - BLOCK + 1
                self._last[name] = top

    def stocked(self, name: CounterName) -> bool:
        """Whether at least half a block is at hand."""
        return self._last.get(name, -1) - self._next.get(name, 0) >= BLOCK // 2

    def take(self, name: CounterName) -> int:
        """The next number.

        Raises:
            Refusal: STORAGE_UNAVAILABLE when the block is used up since the store could not give a new one.
        """
        number = self._next.get(name, 0)
        if number > self._last.get(name, -1):
            raise Refusal(ErrorCode.STORAGE_UNAVAILABLE, "store_failed")
        self._next[name] = number + 1
        return number

    def id(self, name: CounterName) -> str:
        """The next short id.

        Raises:
            Refusal: as `take`.
        """
        return f"{_PREFIX[name]}{self.take(name)}"
