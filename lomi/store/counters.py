"""Counters that only grow, also across restarts. A block is made durable at once: an id normally costs no commit."""

import asyncio
import sqlite3
from functools import partial
from typing import Protocol

from lomi.store.writer import Told, Work

BLOCK = 64


class Put(Protocol):
    """Queues a write; see `Writer.put`."""

    def __call__(self, work: Work[None], *, told: Told | None = None) -> "asyncio.Future[None]":
        """Queue `work`; `told` hears of its end before the future does."""
        ...


class Counters:
    """Hands out numbers below a durable ceiling. A crash skips what is left of a block; nothing is ever given twice."""

    def __init__(self, stored: dict[str, int], put: Put) -> None:
        self._given = dict(stored)
        self._ceiling = dict(stored)
        self._put = put
        self._growing: dict[str, asyncio.Future[None]] = {}

    async def bump(self, name: str, by: int = 1) -> int:
        """Grow a counter by `by` and return its new value; the numbers passed over belong to the caller.

        Raises:
            StoreUnavailable: a new block could not be made durable.
        """
        while self._given.get(name, 0) + by > self._ceiling.get(name, 0):
            # Shielded: one caller's end must not take the block from the others that wait for it.
            await asyncio.shield(self._grow(name, by))
        self._given[name] = value = self._given.get(name, 0) + by
        if self._ceiling[name] - value < BLOCK // 2:
            self._grow(name, 1)
        return value

    def settle(self) -> None:
        """Give back what is left of each block; for an orderly end, after which nothing is handed out."""
        given = tuple(self._given.items())
        if given == tuple(self._ceiling.items()):
            return
        self._put(lambda connection: _store(connection, given))

    def _grow(self, name: str, by: int) -> "asyncio.Future[None]":
        growing = self._growing.get(name)
        if growing is not None:
            return growing
        ceiling = max(self._ceiling.get(name, 0), self._given.get(name, 0) + by) + BLOCK
        # Told by the write itself: after a callback of the future, whoever came between would wait for what is over.
        growing = self._put(
            lambda connection: _store(connection, ((name, ceiling),)), told=partial(self._grown, name, ceiling)
        )
        if not growing.done():
            self._growing[name] = growing
        return growing

    def _grown(self, name: str, ceiling: int, failure: Exception | None) -> None:
        self._growing.pop(name, None)
        if failure is None:
            self._ceiling[name] = ceiling


def _store(connection: sqlite3.Connection, values: tuple[tuple[str, int], ...]) -> None:
    connection.executemany(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", values
    )
