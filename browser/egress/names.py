"""Remembers for a short while where names lead, as browsers do: one look-up serves a whole page load."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from browser.egress.addresses import Address

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Finds the addresses of a host name; raises OSError when there are none."""

_MOST_NAMES = 256


class NameMemory:
    """One context's names. What it remembers is judged anew for each connection; failures are not remembered."""

    def __init__(self, resolve: Resolve, clock: Callable[[], float], keep_s: float) -> None:
        self._resolve = resolve
        self._clock = clock
        self._keep_s = keep_s
        self._known: dict[str, tuple[float, Sequence[Address]]] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def lookup(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of `host`. Who asks while another does waits for the same answer.

        Raises:
            OSError: The name has no address.
        """
        lock = self._asking.setdefault(host, asyncio.Lock())
        try:
            async with lock:
                known = self._known.get(host)
                if known is not None and self._clock() < known[0]:
                    return known[1]
                found = tuple(await self._resolve(host, port))
                if len(self._known) >= _MOST_NAMES:
                    self._known.clear()
                if found:
                    self._known[host] = (self._clock() + self._keep_s, found)
                return found
        finally:
            if not lock.locked() and self._asking.get(host) is lock:
                del self._asking[host]
