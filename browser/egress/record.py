"""What the proxy saw: bounded, numbered, frozen records."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from browser.egress.grant import RefusalReason


class NetworkEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange or one tunnel that was let through.

    Attributes:
        sequence: Grows by one an entry, from 1; never reused in a context.
        method: As sent; `CONNECT` for a tunnel.
        url: Without credentials and fragment; the query as `?…` unless the proxy was told to keep queries.
        status: The server's status; 0 when it never answered.
        type: The media type of the answer, `tunnel` or `websocket` for a tunnel, empty when unknown.
        started: Seconds on the proxy's clock.
        duration: Seconds from the request's head to the last byte.
        bytes: Body bytes from the server as they came over the wire; for a tunnel every byte from the server.
    """

    sequence: int
    method: str
    url: str
    status: int
    type: str
    started: float
    duration: float
    bytes: int


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was turned away.

    Attributes:
        sequence: Grows by one a refusal, from 1; never reused in a context.
        host: Canonical host asked for.
        port: Port asked for.
        reason: Which rule refused.
        document: The request was seen to be a navigation (never known for a tunnel).
        address: The address that was refused after resolution, or empty.
    """

    sequence: int
    host: str
    port: int
    reason: RefusalReason
    document: bool = False
    address: str = ""


class Numbered(Protocol):
    """A record that knows its place in the order."""

    @property
    def sequence(self) -> int:
        """The place, from 1."""


Record = TypeVar("Record", bound=Numbered)


class Ring(Generic[Record]):
    """The last `capacity` records, oldest first. `last` is the sequence of the newest ever added, 0 for none."""

    __slots__ = ("_records", "_waiting", "last")

    def __init__(self, capacity: int) -> None:
        self._records: deque[Record] = deque(maxlen=capacity)
        self._waiting: set[asyncio.Future[None]] = set()
        self.last = 0

    def add(self, record: Record) -> None:
        """Take in the newest record; its sequence is `last + 1`."""
        self._records.append(record)
        self.last = record.sequence
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def reach(self, sequence: int) -> None:
        """Wait until the record with this sequence was added; at once if it was already."""
        while self.last < sequence:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)

    def since(self, sequence: int) -> tuple[tuple[Record, ...], int]:
        """Return the records after `sequence` and how many between were already dropped."""
        found = tuple(record for record in self._records if record.sequence > sequence)
        return found, max(0, self.last - max(sequence, 0) - len(found))

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._records))

    def __len__(self) -> int:
        return len(self._records)
