"""A bounded ring of bytes whose positions never restart."""

from dataclasses import dataclass

CAPACITY = 512 * 1024


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of a ring. `gap` says that bytes between the asked position and `start` are gone."""

    content: bytes
    start: int
    next: int
    gap: bool


class Ring:
    """Keeps the last `capacity` bytes; positions count every byte ever written."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._kept = bytearray()
        self.end = 0

    @property
    def start(self) -> int:
        """The position of the oldest byte still kept."""
        return self.end - len(self._kept)

    def append(self, content: bytes) -> None:
        """Add bytes; the oldest make room."""
        self._kept += content
        self.end += len(content)
        if len(self._kept) > self._capacity:
            del self._kept[: len(self._kept) - self._capacity]

    def read(self, position: int, most: int, stop: int | None = None) -> Slice:
        """At most `most` bytes from `position` on, not past `stop`."""
        start = min(max(position, self.start), self.end)
        end = min(self.end if stop is None else min(stop, self.end), start + most)
        content = bytes(self._kept[start - self.start : max(end, start) - self.start])
        return Slice(content=content, start=start, next=start + len(content), gap=position < self.start)


def whole_characters(content: bytes) -> bytes:
    """The bytes without an unfinished UTF-8 sequence at their end, so that a page never splits a character."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return content[:-back] if length > back else content
    return content
