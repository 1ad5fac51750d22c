"""Protocol-buffer wire format, and the messages of emulator_controller.proto by their field numbers.

The numbers are those of the proto in npm's android-emulator-webrtc 1.0.18 (Apache-2.0, The Android Open Source
Project). Unknown fields are skipped; a field that is left out has its default. The client's side of the same messages
is `devices.engine.codec`, which must not be shared: a mistake that both sides make alike would never be seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
PNG, RGBA8888, RGB888 = range(3)
KEY_DOWN, KEY_UP, KEY_PRESS = range(3)


class BadMessageError(Exception):
    """Raised for bytes that are no message."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One finger in pixels of the unrotated display; pressure 0 lifts it."""

    x: int
    y: int
    identifier: int
    pressure: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """The picture that is asked for; a width or height of 0 is the display's own."""

    kind: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Key:
    """A key by its W3C name, or a text; `event` is one of KEY_DOWN, KEY_UP, KEY_PRESS."""

    event: int
    name: str
    text: str


def read_touches(raw: bytes) -> tuple[Touch, ...]:
    """TouchEvent.

    Raises:
        BadMessageError: it is none.
    """
    found = []
    for number, value in fields(raw):
        if number == 1 and isinstance(value, bytes):
            one = dict(fields(value))
            found.append(Touch(*(_signed(one.get(n, 0)) for n in range(1, 5))))
    return tuple(found)


def read_wanted(raw: bytes) -> Wanted:
    """ImageFormat.

    Raises:
        BadMessageError: it is none.
    """
    one = dict(fields(raw))
    return Wanted(_signed(one.get(1, 0)), _signed(one.get(3, 0)), _signed(one.get(4, 0)))


def read_key(raw: bytes) -> Key:
    """KeyboardEvent.

    Raises:
        BadMessageError: it is none.
    """
    one = dict(fields(raw))
    return Key(_signed(one.get(2, 0)), _text(one.get(4, b"")), _text(one.get(5, b"")))


def read_clip(raw: bytes) -> str:
    """ClipData.

    Raises:
        BadMessageError: it is none.
    """
    return _text(dict(fields(raw)).get(1, b""))


def clip(text: str) -> bytes:
    """ClipData."""
    return _bytes(1, text.encode("utf-8", "surrogatepass"))


def status(version: str, uptime_ms: int, *, booted: bool) -> bytes:
    """EmulatorStatus."""
    return _bytes(1, version.encode()) + _number(2, uptime_ms) + _number(3, int(booted))


def image(wanted: Wanted, data: bytes, *, rotation: int, sequence: int, microseconds: int) -> bytes:
    """Image: `wanted` holds the size that it has got."""
    turned = _bytes(2, _number(1, rotation)) if rotation else b""
    form = _number(1, wanted.kind) + turned + _number(3, wanted.width) + _number(4, wanted.height)
    return _bytes(1, form) + _bytes(4, data) + _number(5, sequence) + _number(6, microseconds)


def fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields.

    Raises:
        BadMessageError: it is none.
    """
    at = 0
    while at < len(raw):
        tag, at = _varint_at(raw, at)
        kind = tag & 7
        if kind == _VARINT:
            number, at = _varint_at(raw, at)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            size, at = _varint_at(raw, at)
        elif kind in {_FIXED64, _FIXED32}:
            size = 8 if kind == _FIXED64 else 4
        else:
            raise BadMessageError(f"wire type {kind}")
        if at + size > len(raw):
            raise BadMessageError("a field is longer than its message")
        yield tag >> 3, raw[at : at + size]
        at += size


def _varint_at(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            break
        value |= (raw[at] & 0x7F) << shift
        at += 1
        if raw[at - 1] < 0x80:
            return value, at
    raise BadMessageError("a number without an end")


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise BadMessageError("bytes where a number belongs")
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: int | bytes) -> str:
    try:
        return value.decode("utf-8") if isinstance(value, bytes) else ""
    except UnicodeDecodeError as error:
        raise BadMessageError("a text that is no UTF-8") from error


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value) if value else b""


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value if value else b""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
