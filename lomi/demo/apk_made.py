"""A tiny APK made from nothing: a binary manifest with one launcher activity, no code.

The place of its signature holds a label, not a signature: the simulated phone takes it, no real one would.
"""

import io
import struct
import zipfile
from typing import NamedTuple

PACKAGE = "org.example.lomi.tiny"
_SPACE = "http://schemas.android.com/apk/res/android"
# Android knows attributes by resource id, not by name; the ids stand in the order of the first strings of the pool.
_ATTRIBUTES = {"versionCode": 0x0101021B, "versionName": 0x0101021C, "minSdkVersion": 0x0101020C,
               "targetSdkVersion": 0x01010270, "label": 0x01010001, "name": 0x01010003}  # fmt: skip
_ABSENT = 0xFFFFFFFF
_TEXT, _NUMBER = 3, 16
_SCHEME_2 = 0x7109871A


class _Element(NamedTuple):
    tag: str
    attributes: dict[str, str | int]
    inside: tuple["_Element", ...] = ()


_FILTER = _Element("intent-filter", {}, (
    _Element("action", {"name": "android.intent.action.MAIN"}),
    _Element("category", {"name": "android.intent.category.LAUNCHER"}),
))  # fmt: skip
_ROOT = _Element("manifest", {"package": PACKAGE, "versionCode": 1, "versionName": "1.0"}, (
    _Element("uses-sdk", {"minSdkVersion": 26, "targetSdkVersion": 36}),
    _Element("application", {"label": "Tiny"}, (_Element("activity", {"name": f"{PACKAGE}.Main"}, (_FILTER,)),)),
))  # fmt: skip


def made_apk() -> bytes:
    """The bytes of the APK; the same every time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("AndroidManifest.xml", _manifest()), ("classes.dex", b"dex\n035\0")):
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return _labelled(packed.getvalue())


class _Strings:
    """The pool: attribute names first, in the order of their ids."""

    def __init__(self) -> None:
        self._all = list(_ATTRIBUTES)

    def index(self, text: str) -> int:
        """Where a string stands; added when it is new."""
        if text not in self._all:
            self._all.append(text)
        return self._all.index(text)

    def chunk(self) -> bytes:
        """The pool in UTF-16."""
        bodies = [struct.pack("<H", len(text)) + text.encode("utf-16-le") + b"\0\0" for text in self._all]
        offsets = [sum(map(len, bodies[:number])) for number in range(len(bodies))]
        joined = b"".join(bodies)
        joined += b"\0" * (-len(joined) % 4)
        start = 28 + 4 * len(offsets)
        head = struct.pack("<HHIIIIII", 1, 28, start + len(joined), len(offsets), 0, 0, start, 0)
        return head + struct.pack(f"<{len(offsets)}I", *offsets) + joined


def _manifest() -> bytes:
    strings = _Strings()
    body = _encoded(_ROOT, strings)
    ids = struct.pack(f"<HHI{len(_ATTRIBUTES)}I", 0x180, 8, 8 + 4 * len(_ATTRIBUTES), *_ATTRIBUTES.values())
    inner = strings.chunk() + ids + body
    return struct.pack("<HHI", 3, 8, 8 + len(inner)) + inner


def _encoded(element: _Element, strings: _Strings) -> bytes:
    """Start tag with attributes, what is inside, end tag."""
    tag = strings.index(element.tag)
    attributes = b""
    for name, value in element.attributes.items():
        space = strings.index(_SPACE) if name in _ATTRIBUTES else _ABSENT
        text = strings.index(value) if isinstance(value, str) else _ABSENT
        kind = _TEXT if isinstance(value, str) else _NUMBER
        held = text if isinstance(value, str) else value
        attributes += struct.pack("<IIIHBBI", space, strings.index(name), text, 8, 0, kind, held)
    count = len(element.attributes)
    start = struct.pack("<IIHHHHHH", _ABSENT, tag, 20, 20, count, 0, 0, 0) + attributes
    inside = b"".join(_encoded(child, strings) for child in element.inside)
    return (
        struct.pack("<HHIII", 0x102, 16, 16 + len(start), 1, _ABSENT)
        + start
        + inside
        + struct.pack("<HHIIIII", 0x103, 16, 24, 1, _ABSENT, _ABSENT, tag)
    )


def _sized(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


def _labelled(apk: bytes) -> bytes:
    """Put a block where a v2 signature would be, before the central directory; its certificate is a label."""
    end = apk.rfind(b"PK\x05\x06")
    (directory,) = struct.unpack_from("<I", apk, end + 16)
    signed = _sized(b"") + _sized(_sized(b"lomi demo, unsigned")) + _sized(b"")
    value = struct.pack("<I", _SCHEME_2) + _sized(_sized(_sized(signed) + _sized(b"") + _sized(b"")))
    pair = struct.pack("<Q", len(value)) + value
    size = struct.pack("<Q", len(pair) + 24)
    block = size + pair + size + b"APK Sig Block 42"
    moved = apk[end : end + 16] + struct.pack("<I", directory + len(block)) + apk[end + 20 :]
    return apk[:directory] + block + apk[directory:end] + moved
