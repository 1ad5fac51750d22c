"""The APK check: plain archives pass, every crafted one is refused, and nothing is unpacked beyond its bound."""

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lomi.store.apk import NotAnApk, check_apk

XML = struct.pack("<2HI", 3, 8, 64) + bytes(56)


def apk(manifest: bytes = XML, entries: int = 3, method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytearray:
    """A small archive as a build tool writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("AndroidManifest.xml", manifest)
        for number in range(entries - 1):
            archive.writestr(f"classes{number}.dex", bytes(100))
        archive.comment = comment
    return bytearray(file.getvalue())


def checked(tmp_path: Path, content: bytes) -> None:
    """Check bytes as a file."""
    path = tmp_path / "a.apk"
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        check_apk(descriptor)
    finally:
        os.close(descriptor)


def end_of(content: bytes) -> int:
    return content.rfind(b"PK\x05\x06")


def central_of(content: bytes) -> int:
    return int(struct.unpack_from("<I", content, end_of(content) + 16)[0])


def patched(offset: Callable[[bytes], int], form: str, value: int, content: bytearray | None = None) -> bytearray:
    content = content or apk()
    struct.pack_into(form, content, offset(content), value)
    return content


@pytest.mark.parametrize(
    "content",
    [apk(), apk(method=zipfile.ZIP_STORED), apk(entries=8192, method=zipfile.ZIP_STORED), apk(comment=b"signed by x")],
    ids=["deflated", "stored", "8192 entries", "comment"],
)
def test_plain_archives_pass(tmp_path: Path, content: bytes) -> None:
    """What build tools write is accepted, up to exactly 8,192 entries."""
    checked(tmp_path, content)


def test_a_signing_block_before_the_directory_passes(tmp_path: Path) -> None:
    """APK signature scheme v2 puts a block between the entries and the central directory."""
    content = apk()
    start = central_of(content)
    block = b"APK Sig Block 42" * 8
    signed = bytearray(content[:start] + block + content[start:])
    struct.pack_into("<I", signed, end_of(signed) + 16, start + len(block))
    checked(tmp_path, signed)


def zip64_extra() -> bytearray:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open("AndroidManifest.xml", "w", force_zip64=True) as entry:
        entry.write(XML)
    content = bytearray(file.getvalue())
    # Python keeps the extra field in the local header only; this puts one into the directory as well.
    start, end = central_of(content), end_of(content)
    extra = struct.pack("<2HQ", 1, 8, 64)
    struct.pack_into("<H", content, start + 30, len(extra))
    struct.pack_into("<I", content, end + 12, end - start + len(extra))
    return content[:end] + extra + content[end:]


def two_of_a_name() -> bytearray:
    content = apk(entries=4)
    at = content.rfind(b"classes1.dex")
    content[at : at + 12] = b"classes0.dex"
    return content


def bomb() -> bytearray:
    content = apk()
    at = content.rfind(b"classes0.dex") - 46
    struct.pack_into("<I", content, at + 24, (2 << 30) - 64)
    return content


def overlapping() -> bytearray:
    content = apk()
    at = content.rfind(b"classes0.dex") - 46
    struct.pack_into("<I", content, at + 20, central_of(content))
    return content


def shrunken_manifest() -> bytearray:
    """A manifest that unpacks to more than it says."""
    content = apk(manifest=XML + bytes(5000))
    struct.pack_into("<I", content, central_of(content) + 24, 64)
    return content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        bytes(100),
        apk()[:-5],
        apk() + b"x",
        apk(entries=8193, method=zipfile.ZIP_STORED),
        apk(manifest=b"<manifest/>"),
        apk(manifest=b"short"),
        apk(manifest=struct.pack("<2HI", 3, 8, 65) + bytes(56)),
        apk(manifest=struct.pack("<2HI", 3, 8, 1 << 20) + bytes((1 << 20) + 1)),
        zip64_extra(),
        two_of_a_name(),
        bomb(),
        overlapping(),
        shrunken_manifest(),
        patched(lambda content: central_of(content) + 8, "<H", 1),
        patched(lambda content: central_of(content) + 8, "<H", 1 << 6),
        patched(lambda content: central_of(content) + 10, "<H", 12),
        patched(lambda content: central_of(content) + 16, "<I", 1),
        patched(lambda content: central_of(content) + 42, "<I", 5),
        patched(central_of, "<I", 0),
        patched(lambda _: 0, "<I", 0),
        patched(lambda _: 6, "<H", 1),
        patched(lambda _: 30, "<B", 0x61),
        patched(lambda content: end_of(content) + 4, "<H", 1),
        patched(lambda content: end_of(content) + 8, "<H", 2),
        patched(lambda content: end_of(content) + 10, "<H", 0xFFFF),
        patched(lambda content: end_of(content) + 12, "<I", 9 << 20),
        patched(lambda content: end_of(content) + 16, "<I", 0xFFFFFFFF),
        patched(lambda content: end_of(content) + 16, "<I", 0),
        apk()[: central_of(apk())] + b"PK\x06\x07" + bytes(16) + apk()[central_of(apk()) :],
    ],
    ids=[
        *("empty", "a local header only", "zeros", "cut short", "something behind it", "8193 entries", "text manifest"),
        *("short manifest", "manifest longer than its bytes", "manifest over 1 MiB", "zip64 extra field"),
        *(
            "two entries of one name",
            "expands to over 2 GiB",
            "entries overlap",
            "manifest unpacks to more than it says",
        ),
        *(
            "encrypted",
            "strongly encrypted",
            "unknown method",
            "wrong checksum",
            "wrong local offset",
            "no directory mark",
        ),
        *("no local mark", "encrypted local header", "another local name", "second disk", "entries on other disks"),
        *("zip64 count", "directory over 8 MiB", "zip64 offset", "directory elsewhere", "zip64 locator"),
    ],
)
def test_crafted_archives_are_refused(tmp_path: Path, content: bytes) -> None:
    """Each kind of malformed or hostile file is refused by the same exception."""
    with pytest.raises(NotAnApk):
        checked(tmp_path, content)


def test_an_archive_without_a_manifest_is_refused(tmp_path: Path) -> None:
    """A plain ZIP file is no APK."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "x")
    with pytest.raises(NotAnApk, match="no manifest"):
        checked(tmp_path, file.getvalue())
