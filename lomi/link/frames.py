"""Frames: u32 big-endian length, u8 kind, body. The length counts kind and body: 2 to 8 MiB + 1.

Pure: bytes in, frames out. A binary frame is the second half of the JSON frame directly before it.
"""

import enum
import struct
from collections.abc import Iterator
from typing import NamedTuple

from lomi.link.errors import FrameReason, FrameRefusedError
from lomi.link.limits import MAX_BODY

HEADER = struct.Struct(">IB")
_JOINED = 64 << 10


class Kind(enum.IntEnum):
    """What a frame's body is."""

    JSON = 1
    BINARY = 2
    CANCEL = 3
    MCP = 4


class Frame(NamedTuple):
    """One message. `body` is 1 byte to 8 MiB; a received one is bytes or, if large, a bytearray of its own."""

    kind: Kind
    body: bytes | bytearray | memoryview


_KINDS = {int(kind): kind for kind in Kind}
EVERY_KIND = frozenset(Kind)
JSON_ONLY = frozenset({Kind.JSON})


def encode(*frames: Frame) -> list[bytes | bytearray | memoryview]:
    """Return the buffers to write, in order; small frames come joined, large bodies uncopied.

    Raises:
        ValueError: a body is empty or over 8 MiB, or a binary frame has no JSON frame before it. (Our own mistake, so
            no `FrameRefusedError`.)
    """
    buffers: list[bytes | bytearray | memoryview] = []
    before: Kind | None = None
    for kind, body in frames:
        length = len(body)
        if not 0 < length <= MAX_BODY:
            raise ValueError(f"a frame body of {length} bytes is not between 1 and {MAX_BODY}")
        if kind is Kind.BINARY and before is not Kind.JSON:
            raise ValueError("a binary frame is sent together with its JSON frame")
        before = kind
        header = HEADER.pack(length + 1, kind)
        if length <= _JOINED:
            buffers.append(b"".join((header, body)))
        else:
            buffers += (header, body)
    return buffers


class FrameParser:
    """Cuts a byte stream into frames; refuses a bad header before anything is kept for its body."""

    def __init__(self) -> None:
        self._max_body = MAX_BODY
        self._kinds = EVERY_KIND
        self._header = bytearray()
        self._kind = Kind.JSON
        self._body = bytearray()
        self._missing = 0
        self._before: Kind | None = None
        self._refused: FrameReason | None = None

    def narrow(self, max_body: int, kinds: frozenset[Kind]) -> None:
        """Accept only `kinds` of at most `max_body` bytes for the next frame; after it everything again."""
        self._max_body = max_body
        self._kinds = kinds

    @property
    def partial(self) -> bool:
        """Whether the stream stands inside a frame."""
        return self._missing > 0 or bool(self._header)

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield the frames that `chunk` completes.

        Raises:
            FrameRefusedError: the stream broke the framing; the frames before the break were yielded, none come after.
        """
        view = memoryview(chunk)
        position, end = 0, len(chunk)
        while position < end:
            if self._missing == 0:
                position = self._take_header(view, position)
                continue
            taken = min(self._missing, end - position)
            piece = view[position : position + taken]
            position += taken
            self._missing -= taken
            if self._missing == 0 and not self._body:
                yield self._finish(bytes(piece))
                continue
            self._body += piece
            if self._missing == 0:
                body, self._body = self._body, bytearray()
                yield self._finish(body)

    def _take_header(self, view: memoryview, position: int) -> int:
        header = self._header
        if not header and self._refused is None and len(view) - position >= HEADER.size:
            self._begin(*HEADER.unpack_from(view, position))
            return position + HEADER.size
        taken = min(HEADER.size - len(header), len(view) - position)
        header += view[position : position + taken]
        if self._refused is None and len(header) >= 4:
            self._check_length(int.from_bytes(header[:4]))
        if self._refused is not None:
            raise FrameRefusedError(self._refused)
        if len(header) == HEADER.size:
            length, number = HEADER.unpack(header)
            header.clear()
            self._begin(length, number)
        return position + taken

    def _begin(self, length: int, number: int) -> None:
        self._check_length(length)
        if self._refused is None:
            self._check_kind(number)
        if self._refused is not None:
            raise FrameRefusedError(self._refused)
        self._missing = length - 1
        self.narrow(MAX_BODY, EVERY_KIND)

    def _check_length(self, length: int) -> None:
        if length < 2:
            self._refused = "frame_empty"
        elif length - 1 > self._max_body:
            self._refused = "frame_too_large"

    def _check_kind(self, number: int) -> None:
        kind = _KINDS.get(number)
        if kind is None:
            self._refused = "frame_kind_unknown"
        elif kind not in self._kinds:
            self._refused = "frame_kind_unexpected"
        elif kind is Kind.BINARY and self._before is not Kind.JSON:
            self._refused = "binary_without_header"
        else:
            self._kind = kind

    def _finish(self, body: bytes | bytearray) -> Frame:
        self._before = self._kind
        return Frame(self._kind, body)
