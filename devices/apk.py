"""An APK before it is sent: bounded checks of its zip, and who it says it is, from its binary manifest."""

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

from devices.faults import PackageRefused

_MAX_ENTRIES, _MAX_DIRECTORY, _MAX_EXPANDED = 8192, 8 << 20, 2 << 30
_MIN_MANIFEST, _MAX_MANIFEST = 8, 1 << 20
_STRING_POOL, _START_ELEMENT = 0x0001, 0x0102
_UTF8_POOL = 0x100
_TYPE_STRING = 3


@dataclass(frozen=True, slots=True)
class ApkIdentity:
    """What the manifest claims: package name, version code and version name."""

    package: str
    version_code: int
    version_name: str


def read_apk(path: Path) -> ApkIdentity:
    """Check an APK within bounds and read its identity; blocking, call it in a thread.

    Raises:
        PackageRefused: reason bad_apk.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            entries = opened.infolist()
            _check(opened, entries, path.stat().st_size)
            manifest = opened.read("AndroidManifest.xml")
        return _identity(manifest)
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, struct.error, IndexError, ValueError) as broken:
        raise _bad(f"not readable: {broken}") from broken


def _check(opened: zipfile.ZipFile, entries: list[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > _MAX_ENTRIES:
        raise _bad(f"more than {_MAX_ENTRIES} entries")
    if size - opened.start_dir > _MAX_DIRECTORY:
        raise _bad(f"a central directory of more than {_MAX_DIRECTORY} bytes")
    if sum(entry.file_size for entry in entries) > _MAX_EXPANDED:
        raise _bad(f"more than {_MAX_EXPANDED} bytes unpacked")
    for entry in entries:
        if entry.flag_bits & 1 or entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise _bad("an entry is encrypted or packed in an unknown way")
        if entry.extract_version >= 45 or max(entry.file_size, entry.compress_size, entry.header_offset) >= 0xFFFFFFFF:
            raise _bad("zip64")
    length = opened.getinfo("AndroidManifest.xml").file_size
    if not _MIN_MANIFEST <= length <= _MAX_MANIFEST:
        raise _bad(f"a manifest of {length} bytes")


def _identity(manifest: bytes) -> ApkIdentity:
    """Walk the chunks to the first element, which is the manifest's."""
    kind, header, _ = struct.unpack_from("<HHI", manifest)
    if kind != 0x0003:
        raise _bad("the manifest is not binary XML")
    at = header
    strings: tuple[str, ...] = ()
    while at + 8 <= len(manifest):
        kind, header, size = struct.unpack_from("<HHI", manifest, at)
        if size < 8:
            raise _bad("a manifest chunk without size")
        if kind == _STRING_POOL:
            strings = _strings(manifest[at : at + size], header)
        elif kind == _START_ELEMENT:
            return _from_attributes(_attributes(manifest, at, strings))
        at += size
    raise _bad("the manifest has no element")


def _from_attributes(attributes: dict[str, str | int]) -> ApkIdentity:
    package, code = attributes.get("package"), attributes.get("versionCode", 0)
    if not isinstance(package, str) or not package or not isinstance(code, int):
        raise _bad("the manifest names no package")
    return ApkIdentity(package, code, str(attributes.get("versionName", "")))


def _attributes(manifest: bytes, at: int, strings: tuple[str, ...]) -> dict[str, str | int]:
    start, width, count = struct.unpack_from("<HHH", manifest, at + 24)
    found: dict[str, str | int] = {}
    for number in range(count):
        _, name, raw, _, _, kind, value = struct.unpack_from("<IIIHBBI", manifest, at + 16 + start + number * width)
        text = value if kind == _TYPE_STRING else raw
        found[strings[name]] = strings[text] if text < len(strings) else value
    return found


def _strings(pool: bytes, header: int) -> tuple[str, ...]:
    count, _, flags, start = struct.unpack_from("<IIII", pool, 8)
    if count > len(pool) // 4:
        raise _bad("a string pool larger than itself")
    offsets = struct.unpack_from(f"<{count}I", pool, header)
    read = _utf8 if flags & _UTF8_POOL else _utf16
    return tuple(read(pool, start + offset) for offset in offsets)


def _utf8(pool: bytes, at: int) -> str:
    """Two lengths (characters, then bytes), each of one or two bytes, then the bytes."""
    at += 2 if pool[at] & 0x80 else 1
    length = pool[at]
    at += 1
    if length & 0x80:
        length = (length & 0x7F) << 8 | pool[at]
        at += 1
    return pool[at : at + length].decode("utf-8", "replace")


def _utf16(pool: bytes, at: int) -> str:
    (length,) = struct.unpack_from("<H", pool, at)
    at += 2
    if length & 0x8000:
        length = (length & 0x7FFF) << 16 | struct.unpack_from("<H", pool, at)[0]
        at += 2
    return pool[at : at + 2 * length].decode("utf-16-le", "replace")


def _bad(detail: str) -> PackageRefused:
    return PackageRefused("bad_apk", f"the APK is refused: {detail}")
