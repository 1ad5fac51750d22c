"""Android's binary XML, as far as a manifest needs it."""

import struct
from dataclasses import dataclass

_STRING_POOL, _RESOURCE_MAP, _START = 0x0001, 0x0180, 0x0102
_UTF8 = 0x100
_STRING_VALUE = 3

# Attribute names by resource id, since packers may leave the names out.
_NAMES = {
    0x01010001: "label", 0x01010003: "name", 0x0101000F: "debuggable", 0x0101020C: "minSdkVersion",
    0x0101021B: "versionCode", 0x0101021C: "versionName", 0x01010270: "targetSdkVersion", 0x01010272: "testOnly",
    0x01010576: "versionCodeMajor", 0x01010018: "enabled",
}  # fmt: skip


class BadXmlError(Exception):
    """Raised when bytes are no binary XML; says where."""


@dataclass(frozen=True, slots=True)
class Element:
    """One start tag: attributes as text, or as the integer they hold."""

    name: str
    attributes: dict[str, str | int]

    def text(self, name: str) -> str:
        """A text attribute; empty when it is missing or a resource reference."""
        value = self.attributes.get(name, "")
        return value if isinstance(value, str) else ""

    def number(self, name: str, fallback: int = 0) -> int:
        """A number attribute."""
        value = self.attributes.get(name, fallback)
        return value if isinstance(value, int) else fallback


def elements(payload: bytes) -> list[Element]:
    """The start tags of a document, in order.

    Raises:
        BadXmlError: the bytes are no binary XML.
    """
    try:
        return _elements(payload)
    except (struct.error, IndexError) as error:
        raise BadXmlError(f"broken binary XML: {error}") from error


def _elements(payload: bytes) -> list[Element]:
    kind, header, _ = struct.unpack_from("<HHI", payload, 0)
    if kind != 0x0003:
        raise BadXmlError("no binary XML header")
    strings: list[str] = []
    ids: list[int] = []
    found: list[Element] = []
    at = header
    while at + 8 <= len(payload):
        kind, header, size = struct.unpack_from("<HHI", payload, at)
        if size < 8:
            raise BadXmlError(f"chunk of {size} bytes at {at}")
        if kind == _STRING_POOL and not strings:
            strings = _strings(payload, at)
        elif kind == _RESOURCE_MAP:
            ids = list(struct.unpack_from(f"<{(size - header) // 4}I", payload, at + header))
        elif kind == _START:
            found.append(_start(payload, at, strings, ids))
        at += size
    return found


def _start(payload: bytes, at: int, strings: list[str], ids: list[int]) -> Element:
    name = strings[struct.unpack_from("<I", payload, at + 20)[0]]
    first, each, count = struct.unpack_from("<HHH", payload, at + 24)
    attributes: dict[str, str | int] = {}
    for number in range(count):
        _, key, _, _, _, kind, value = struct.unpack_from("<IIIHBBI", payload, at + 16 + first + each * number)
        label = _NAMES.get(ids[key], "") if key < len(ids) else ""
        attributes[label or strings[key]] = strings[value] if kind == _STRING_VALUE else value
    return Element(name, attributes)


def _strings(payload: bytes, at: int) -> list[str]:
    header = struct.unpack_from("<H", payload, at + 2)[0]
    count, _, flags, start, _ = struct.unpack_from("<5I", payload, at + 8)
    found: list[str] = []
    for number in range(count):
        place = at + start + struct.unpack_from("<I", payload, at + header + 4 * number)[0]
        found.append(_utf8(payload, place) if flags & _UTF8 else _utf16(payload, place))
    return found


def _utf8(payload: bytes, at: int) -> str:
    at += 2 if payload[at] & 0x80 else 1
    length = payload[at]
    at += 1
    if length & 0x80:
        length = (length & 0x7F) << 8 | payload[at]
        at += 1
    return payload[at : at + length].decode("utf-8", "replace")


def _utf16(payload: bytes, at: int) -> str:
    length = struct.unpack_from("<H", payload, at)[0]
    at += 2
    if length & 0x8000:
        length = (length & 0x7FFF) << 16 | struct.unpack_from("<H", payload, at)[0]
        at += 2
    return payload[at : at + 2 * length].decode("utf-16-le", "replace")
