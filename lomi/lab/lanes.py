"""Where a device's time went: stretches that lie end to end, so that they add up to the time that passed."""

import time
from collections.abc import Callable

from lomi.lab.shard import Part, Segment


class HostClock:
    """Seconds since the epoch that never go back: the epoch is read once, the rest is a steady clock."""

    def __init__(self, epoch: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._base = epoch() - steady()

    def now(self) -> float:
        """The present."""
        return self._base + self._steady()


class Lane:
    """One phone, or one worker without phones. It is always in exactly one part, from the moment it is made.

    Lanes of one host begin and are told of at one moment, so that each adds up to the same time.
    """

    def __init__(self, host: str, name: str, clock: HostClock, part: Part = "idle", began: float | None = None) -> None:
        self.name = name
        self._host = host
        self._clock = clock
        self._part: Part = part
        self._began = clock.now() if began is None else began
        self._shard: int | None = None
        self._test: str | None = None
        self._done: list[Segment] = []

    def enter(self, part: Part, *, shard: int | None = None, test: str | None = None, at: float | None = None) -> None:
        """Begin another part, now or at a moment that another process told; never before the present part began."""
        if (part, shard, test) == (self._part, self._shard, self._test):
            return
        now = self._clock.now()
        moment = now if at is None else min(max(at, self._began), now)
        self._close(moment)
        self._part, self._shard, self._test = part, shard, test

    def taken(self, until: float | None = None) -> tuple[Segment, ...]:
        """Every stretch since the last call, the present one up to now or `until`; together they have no gap."""
        self._close(self._clock.now() if until is None else until)
        done, self._done = tuple(self._done), []
        return done

    def _close(self, moment: float) -> None:
        if moment > self._began:
            self._done.append(
                Segment(
                    host=self._host,
                    lane=self.name,
                    part=self._part,
                    began=self._began,
                    ended=moment,
                    shard=self._shard,
                    test=self._test,
                )
            )
            self._began = moment
