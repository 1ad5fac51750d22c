"""Time on the phone: a clock that stands still unless moved, and how long commands take."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

FIRST_SECOND = 1_767_258_000.0  # 2026-01-01 09:00:00 UTC: every paper phone boots at this moment


class PhoneClock:
    """Device time in seconds since the epoch.

    It stands still so that pictures repeat; `advance` moves it, `run` lets it follow real time at a rate.
    """

    def __init__(self, monotonic: Callable[[], float], zone: str) -> None:
        self._monotonic = monotonic
        self._base = FIRST_SECOND
        self._rate = 0.0
        self._since = monotonic()
        self.zone_name = zone
        self.zone = _zone(zone)

    def now(self) -> float:
        """Seconds since the epoch, on the phone."""
        return self._base + self._rate * (self._monotonic() - self._since)

    def local(self, second: float | None = None) -> datetime:
        """The same moment as the phone's wall clock shows it."""
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now() if second is None else second)
        return moment.astimezone(self.zone)

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        self._rebase(self._rate)
        self._base += seconds

    def run(self, rate: float) -> None:
        """Let the clock follow real time, `rate` phone seconds for each; 0 stops it."""
        self._rebase(rate)

    def _rebase(self, rate: float) -> None:
        self._base = self.now()
        self._since = self._monotonic()
        self._rate = rate


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


_DEVICE_MILLISECONDS: Mapping[str, int] = {"dump": 450, "screencap": 150, "input": 40, "shell": 8, "install": 900}


@dataclass(slots=True)
class Latency:
    """How long the phone takes: nothing (`instant`) or about what a phone takes (`device`), seeded, within a tenth."""

    profile: str
    dice: random.Random

    async def spend(self, kind: str) -> None:
        """Wait as long as a phone needs for one `dump`, `screencap`, `input`, `shell` or `install`."""
        if self.profile == "device":
            await asyncio.sleep(_DEVICE_MILLISECONDS[kind] / 1000 * self.dice.uniform(0.9, 1.1))
