"""logcat: log lines by buffer, in the formats tools ask for."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

_MOST_LINES = 4000
LEVELS = "VDIWEF"


@dataclass(frozen=True, slots=True)
class Line:
    """One log line; `moment` is the phone's wall clock."""

    number: int
    moment: datetime
    pid: int
    tid: int
    level: str
    tag: str
    text: str
    buffer: str
    user: str

    def rendered(self, form: str, *, year: bool = False) -> str:
        """The line in a logcat format: brief, tag, time, threadtime, raw, process or long."""
        stamp = self.moment.strftime("%Y-%m-%d %H:%M:%S.%f" if year else "%m-%d %H:%M:%S.%f")[:-3]
        return {
            "brief": f"{self.level}/{self.tag:<8}({self.pid:5}): {self.text}",
            "tag": f"{self.level}/{self.tag}: {self.text}",
            "process": f"{self.level}({self.pid:5}) {self.text}  ({self.tag})",
            "raw": self.text,
            "time": f"{stamp} {self.level}/{self.tag:<8}({self.pid:5}): {self.text}",
            "long": f"[ {stamp} {self.pid:5}:{self.tid:5} {self.level}/{self.tag:<8} ]\n{self.text}\n",
        }.get(form, f"{stamp} {self.pid:5} {self.tid:5} {self.level} {self.tag:<8}: {self.text}")


@dataclass(slots=True)
class LogBook:
    """The log of one boot; every line gets a millisecond of its own so that order shows."""

    now: Callable[[], datetime]
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    count: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, level: str, tag: str, text: str, *, pid: int, buffer: str = "main", user: str = "system") -> None:
        """Add a line."""
        moment = self.now()
        moment = moment.replace(microsecond=(moment.microsecond + self.count * 1000) % 1_000_000)
        self.count += 1
        self.lines.append(Line(self.count, moment, pid, pid, level, tag, text, buffer, user))
        self._news.set()

    def clear(self, buffers: Iterable[str]) -> None:
        """Forget the lines of some buffers."""
        gone = set(buffers)
        kept = [line for line in self.lines if line.buffer not in gone]
        self.lines.clear()
        self.lines.extend(kept)

    async def follow(self, after: int) -> AsyncIterator[Line]:
        """Lines later than number `after`, for ever."""
        while True:
            for line in list(self.lines):
                if line.number > after:
                    after = line.number
                    yield line
            self._news.clear()
            await self._news.wait()
