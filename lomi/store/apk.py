"""Is this file an APK? Decided by a bounded reader of our own: the file is hostile until proven plain.

It reads the central directory and the manifest, nothing else; only the manifest is unpacked, and that to a bound.
"""

import os
import struct
import zlib
from typing import NamedTuple

ENTRIES = 8192
DIRECTORY_BYTES = 8 << 20
EXPANDED_BYTES = 2 << 30
MANIFEST_BYTES = (8, 1 << 20)
MANIFEST = b"AndroidManifest.xml"

_END = struct.Struct("<4s4H2IH")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_LONGEST_COMMENT = 0xFFFF
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_EXTRA = 0x0001
# Bit 0 encryption, 6 strong encryption, 13 an encrypted central directory.
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
_STORED, _DEFLATED = 0, 8
_BINARY_XML = 0x0003


class NotAnApk(Exception):  # noqa: N818  an answer, not a fault
    """The file is not a plain APK; the text says why and holds nothing of the file."""


class _Entry(NamedTuple):
    name: bytes
    flags: int
    method: int
    crc: int
    compressed: int
    expanded: int
    local: int


def check_apk(descriptor: int) -> None:
    """Check the structure of an open file. Blocks.

    Raises:
        NotAnApk: it is not a plain ZIP within the bounds, or its manifest is not binary XML.
    """
    size = os.fstat(descriptor).st_size
    count, start, directory = _directory(descriptor, size)
    manifest = None
    names: set[bytes] = set()
    compressed = expanded = 0
    for entry in _entries(directory, count):
        if entry.name in names:
            raise NotAnApk("two entries share a name")
        names.add(entry.name)
        compressed += entry.compressed + _LOCAL.size
        expanded += entry.expanded
        if expanded > EXPANDED_BYTES:
            raise NotAnApk("it expands to more than 2 GiB")
        # Entries that overlap are how a small file claims to hold a large one.
        if compressed > start or entry.local + _LOCAL.size + entry.compressed > start:
            raise NotAnApk("entries overlap or lie outside the file")
        if entry.name == MANIFEST:
            manifest = entry
    if manifest is None:
        raise NotAnApk("there is no manifest")
    _check_manifest(descriptor, manifest, start)


def _directory(descriptor: int, size: int) -> tuple[int, int, bytes]:
    """Number of entries, where the central directory starts, and its bytes."""
    tail_start = max(0, size - _END.size - _LONGEST_COMMENT)
    tail = os.pread(descriptor, size - tail_start, tail_start)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise NotAnApk("it is not a ZIP file")
    _, disk, first_disk, here, count, length, start, comment = _END.unpack_from(tail, at)
    if at + _END.size + comment != len(tail):
        raise NotAnApk("something follows the end of the ZIP file")
    if 0xFFFF in {disk, first_disk, here, count} or 0xFFFFFFFF in {length, start} or _has_locator(tail, at):
        raise NotAnApk("it is a ZIP64 file")
    if (disk, first_disk) != (0, 0) or here != count:
        raise NotAnApk("it is a part of a split ZIP file")
    if count > ENTRIES or length > DIRECTORY_BYTES:
        raise NotAnApk("its directory is over the bound")
    if start + length != tail_start + at:
        raise NotAnApk("its directory is not where it says")
    return count, start, os.pread(descriptor, length, start)


def _has_locator(tail: bytes, at: int) -> bool:
    return at >= 20 and tail[at - 20 : at - 16] == _ZIP64_LOCATOR


def _entries(directory: bytes, count: int) -> list[_Entry]:
    entries = []
    at = 0
    for _ in range(count):
        if len(directory) - at < _CENTRAL.size:
            raise NotAnApk("its directory is cut short")
        fields = _CENTRAL.unpack_from(directory, at)
        mark, flags, method, crc = fields[0], fields[3], fields[4], fields[7]
        compressed, expanded, name_length, extra_length, comment_length = fields[8:13]
        if mark != b"PK\x01\x02":
            raise NotAnApk("its directory is damaged")
        at += _CENTRAL.size
        name, extra = directory[at : at + name_length], directory[at + name_length : at + name_length + extra_length]
        at += name_length + extra_length + comment_length
        if at > len(directory):
            raise NotAnApk("its directory is cut short")
        if 0xFFFFFFFF in {compressed, expanded, fields[16]} or _zip64(extra):
            raise NotAnApk("it is a ZIP64 file")
        if flags & _ENCRYPTED:
            raise NotAnApk("an entry is encrypted")
        if method not in {_STORED, _DEFLATED} or (method == _STORED and compressed != expanded):
            raise NotAnApk("an entry is packed in a way that Android does not know")
        entries.append(_Entry(name, flags, method, crc, compressed, expanded, fields[16]))
    if at != len(directory):
        raise NotAnApk("its directory is longer than its entries")
    return entries


def _zip64(extra: bytes) -> bool:
    at = 0
    while len(extra) - at >= 4:
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == _ZIP64_EXTRA:
            return True
        at += 4 + length
    return False


def _check_manifest(descriptor: int, entry: _Entry, end: int) -> None:
    least, most = MANIFEST_BYTES
    if not least <= entry.expanded <= most:
        raise NotAnApk("its manifest is over or under the bound")
    head = os.pread(descriptor, _LOCAL.size, entry.local)
    if len(head) != _LOCAL.size:
        raise NotAnApk("its manifest is cut short")
    mark, _, flags, method, _, _, _, _, _, name_length, extra_length = _LOCAL.unpack(head)
    body = entry.local + _LOCAL.size + name_length + extra_length
    name = os.pread(descriptor, name_length, entry.local + _LOCAL.size)
    if mark != b"PK\x03\x04" or name != MANIFEST or method != entry.method or flags & _ENCRYPTED:
        raise NotAnApk("its manifest differs from what the directory says")
    if body + entry.compressed > end:
        raise NotAnApk("its manifest is cut short")
    content = _unpacked(os.pread(descriptor, min(entry.compressed, 2 * most), body), entry)
    if len(content) != entry.expanded or zlib.crc32(content) != entry.crc:
        raise NotAnApk("its manifest differs from what the directory says")
    kind, header, length = struct.unpack_from("<2HI", content)
    if kind != _BINARY_XML or header != 8 or not 8 <= length <= len(content):
        raise NotAnApk("its manifest is not binary XML")


def _unpacked(packed: bytes, entry: _Entry) -> bytes:
    if entry.method == _STORED:
        return packed
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(packed, entry.expanded + 1)
    except zlib.error as error:
        raise NotAnApk("its manifest is damaged") from error
    return content
