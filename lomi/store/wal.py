"""A write-ahead log judged by its own checksums, before SQLite sees it.

SQLite treats the first frame with a wrong checksum as the end of the log and drops every committed frame behind it in
silence. A torn tail is what a crash leaves and harmless; damage in front of a later commit is not.
"""

import os
import struct
from typing import NamedTuple

_HEADER = 32
_FRAME = 24
_MAGIC = (0x377F0682, 0x377F0683)


class WalState(NamedTuple):
    """Whole frames that check, those up to the last commit among them, whether acknowledged commits follow damage."""

    valid: int
    committed: int
    damaged: bool


def examine(descriptor: int) -> WalState:
    """Read a log file of any length from its start. Blocks about 25 ms per MiB."""
    size = os.fstat(descriptor).st_size
    header = os.pread(descriptor, _HEADER, 0)
    if len(header) < _HEADER:
        return WalState(0, 0, damaged=False)
    magic, _, page, _, *_ = struct.unpack(">8I", header)
    word = ">" if magic & 1 else "<"
    sums = _sum(word, header[:24], 0, 0)
    if magic not in _MAGIC or sums != struct.unpack(">2I", header[24:]) or not _plausible(page):
        # Without a header nothing in the log counts; a log that never got its first frame has nothing to lose.
        return WalState(0, 0, damaged=size > _HEADER + _FRAME)
    salts = header[16:24]
    step = _FRAME + page
    valid = committed = 0
    offset = _HEADER
    while len(frame := os.pread(descriptor, step, offset)) == step:
        if frame[8:16] != salts:
            break
        sums = _sum(word, frame[_FRAME:], *_sum(word, frame[:8], *sums))
        if sums != struct.unpack(">2I", frame[16:24]):
            break
        valid += 1
        offset += step
        if frame[4:8] != b"\0\0\0\0":
            committed = valid
    return WalState(valid, committed, damaged=_commits_from(descriptor, offset, step, size, salts) > 1)


def _commits_from(descriptor: int, offset: int, step: int, size: int, salts: bytes) -> int:
    """How many frames of this generation of the log, from `offset` on, say that they end a commit.

    Each commit is synced before the next is written, so a power cut leaves one at most: the one nobody was told of.
    Whether the last commit was acknowledged is for the witness to say.
    """
    heads = (os.pread(descriptor, _FRAME, at) for at in range(offset, size - step + 1, step))
    return sum(head[8:16] == salts and head[4:8] != b"\0\0\0\0" for head in heads)


def _plausible(page: int) -> bool:
    return 512 <= page <= 65536 and page & (page - 1) == 0


def _sum(word: str, content: bytes, first: int, second: int) -> tuple[int, int]:
    numbers = iter(struct.unpack(f"{word}{len(content) // 4}I", content))
    for even, odd in zip(numbers, numbers, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
