"""Finds where a message body ends in a stream that is passed on unchanged."""

from __future__ import annotations

import re
from typing import Final, Protocol, TypeAlias

CHUNKED: Final = -1
UNTIL_CLOSE: Final = -2

Framing: TypeAlias = int
"""A length in bytes, or CHUNKED, or UNTIL_CLOSE."""

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
_MOST_SIZE_LINE = 4_096
_MOST_TRAILERS = 16_384


class FramingError(ValueError):
    """Raised when a chunked body breaks its own framing."""


class BodyScanner(Protocol):
    """Counts a body's bytes as they pass."""

    done: bool

    def feed(self, data: bytes) -> int:
        """Take in bytes that follow each other; return how many of `data` belong to the body.

        Raises:
            FramingError: The bytes cannot be a body of this framing.
        """


class LengthScanner:
    """A body of a known length."""

    __slots__ = ("_left", "done")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> int:
        """See `BodyScanner`."""
        taken = min(len(data), self._left)
        self._left -= taken
        self.done = self._left == 0
        return taken


class CloseScanner:
    """A body that ends with its connection."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def feed(self, data: bytes) -> int:
        """See `BodyScanner`."""
        return len(data)


class ChunkedScanner:
    """A chunked body: sizes are read, chunk contents are skipped over without a copy."""

    __slots__ = ("_left", "_line", "_trailers", "_trailing", "done")

    def __init__(self) -> None:
        self.done = False
        self._left = 0  # bytes of the present chunk and its line end still to pass
        self._line = b""  # the part of a size or trailer line seen so far
        self._trailing = False
        self._trailers = 0

    def feed(self, data: bytes) -> int:
        """See `BodyScanner`."""
        position = 0
        while position < len(data) and not self.done:
            if self._left > 2:
                step = min(self._left - 2, len(data) - position)
                self._left -= step
                position += step
            elif self._left:
                if data[position] != (0x0D if self._left == 2 else 0x0A):
                    raise FramingError("a chunk does not end with its line end")
                self._left -= 1
                position += 1
            else:
                position = self._read_line(data, position)
        return position

    def _read_line(self, data: bytes, position: int) -> int:
        end = data.find(b"\n", position)
        stop = len(data) if end < 0 else end + 1
        self._line += data[position:stop]
        if len(self._line) > _MOST_SIZE_LINE:
            raise FramingError("a chunk size or trailer line is too long")
        if end >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n"):
                raise FramingError("a bare line feed between chunks")
            self._take_line(line[:-2])
        return stop

    def _take_line(self, line: bytes) -> None:
        if self._trailing:
            self._trailers += len(line)
            if self._trailers > _MOST_TRAILERS:
                raise FramingError("too many trailers")
            self.done = not line
            return
        match = _SIZE_LINE.fullmatch(line)
        if match is None:
            raise FramingError("not a chunk size")
        size = int(match[1], 16)
        if size:
            self._left = size + 2
        else:
            self._trailing = True


def scanner_for(framing: Framing) -> BodyScanner:
    """Return a fresh scanner for one body."""
    if framing == CHUNKED:
        return ChunkedScanner()
    if framing == UNTIL_CLOSE:
        return CloseScanner()
    return LengthScanner(framing)
