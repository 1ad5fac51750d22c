"""Pages: bounded by count and by 48 KiB, continued by opaque cursors that are bound to one session and one view."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from lomi.contract.codes import ErrorCode
from lomi.contract.limits import PAGE_BYTES
from lomi.core.refusal import Refusal

T = TypeVar("T", bound=msgspec.Struct)


class Cursors:
    """The cursors of one session. At most `most`; when full, all are dropped and answer CURSOR_EXPIRED."""

    def __init__(self, most: int, random_bytes: Callable[[int], bytes]) -> None:
        self._most = most
        self._random_bytes = random_bytes
        self._places: dict[str, tuple[tuple[str, ...], int]] = {}

    def make(self, view: tuple[str, ...], offset: int) -> str:
        """A cursor for the rest of a view from `offset` on."""
        known = next((cursor for cursor, place in self._places.items() if place == (view, offset)), None)
        if known is not None:
            return known
        if len(self._places) >= self._most:
            self._places.clear()
        cursor = self._random_bytes(16).hex()
        self._places[cursor] = (view, offset)
        return cursor

    def offset(self, cursor: str | None, view: tuple[str, ...]) -> int:
        """Where a page begins: 0 without a cursor.

        Raises:
            Refusal: CURSOR_EXPIRED when the cursor is unknown here or its view has changed.
        """
        if cursor is None:
            return 0
        known = self._places.get(cursor)
        if known is None or known[0] != view:
            raise Refusal(ErrorCode.CURSOR_EXPIRED, field="/cursor")
        return known[1]


def fit(rows: Sequence[T], limit: int) -> tuple[T, ...]:
    """As many rows from the start as fit both bounds; at least one."""
    taken: list[T] = []
    size = 0
    for row in rows[:limit]:
        size += len(msgspec.json.encode(row)) + 1
        if taken and size > PAGE_BYTES:
            break
        taken.append(row)
    return tuple(taken)
