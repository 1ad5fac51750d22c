"""Looking again until something is there: the one loop behind every name that is resolved, bounded in time."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from lomi.client.errors import ToolError
from lomi.client.names import ItemT, Name, UnresolvedNameError, View

T = TypeVar("T")

TIMEOUT_S = 5.0
"""How long a name may take to appear, unless the caller says otherwise."""
_FIRST_S = 0.05
_MOST_S = 0.5
PASSING = frozenset(
    {
        *("stale_ref", "unknown_ref", "unknown_snapshot", "stale_snapshot", "detached", "document_gone", "navigated"),
        *("moving", "disabled", "covered", "hidden", "no_box", "read_only", "tree_unavailable", "tree_not_idle"),
        *("capture_truncated", "no_observation"),
    }
)
"""Reasons that may pass by themselves while a screen changes; nothing was done where they are given."""


async def again(once: Callable[[], Awaitable[T]], timeout_s: float) -> T:
    """Try until it succeeds or the time is over; the last error is raised as it is.

    Raises:
        UnresolvedNameError: the name still leads nowhere, or to several places.
        ToolError: a refusal that doesn't pass by itself, or did not in time.
    """
    clock = asyncio.get_running_loop().time
    end, pause = clock() + timeout_s, _FIRST_S
    while True:
        try:
            return await once()
        except (UnresolvedNameError, ToolError) as error:
            if isinstance(error, ToolError) and (error.reason not in PASSING or error.effect != "none"):
                raise
            if clock() + pause > end:
                raise
        await asyncio.sleep(pause)
        pause = min(_MOST_S, pause * 1.6)


class Looking(ABC, Generic[ItemT]):
    """What shows things that have names."""

    @abstractmethod
    async def _view(self) -> View[ItemT]:
        """What is there now."""

    async def find(self, target: Name, timeout_s: float = TIMEOUT_S) -> ItemT:
        """The one thing that a name means, as soon as it is there.

        Raises:
            NameAbsentError: it did not appear in time; the error lists what is there.
            NameAmbiguousError: several things have that name; the error lists them.
        """

        async def once() -> ItemT:
            return (await self._view()).one(target)[1]

        return await again(once, timeout_s)

    async def shows(self, target: Name) -> bool:
        """Whether something has that name now."""
        return bool((await self._view()).matches(target))
