"""The few messages of `android.emulation.control` we use, in protocol-buffer wire format.

Field numbers are those of emulator_controller.proto (Apache-2.0, The Android Open Source Project), package
android-emulator-webrtc 1.0.18. Unknown fields are skipped, as the format asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
PNG, RGB888 = 0, 2

Value = int | bytes


@dataclass(frozen=True, slots=True)
class Finger:
    """One touch point in hardware pixels; pressure 0 lifts it."""

    identifier: int
    x: int
    y: int
    pressure: int


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: PNG bytes, or rows of RGB bottom up; `sequence` counts frames."""

    data: bytes
    width: int
    height: int
    rotation: int
    sequence: int


def touch_event(fingers: tuple[Finger, ...]) -> bytes:
    """TouchEvent."""
    return b"".join(_bytes(1, _touch(finger)) for finger in fingers)


def key_event(kind: Literal["keydown", "keyup", "keypress"], *, key: str = "", text: str = "") -> bytes:
    """KeyboardEvent by key name, or typed text."""
    number = {"keydown": 0, "keyup": 1, "keypress": 2}[kind]
    return _int(2, number) + _bytes(4, key.encode()) + _bytes(5, text.encode())


def clip(text: str) -> bytes:
    """ClipData."""
    return _bytes(1, text.encode())


def image_format(kind: int, *, width: int = 0, height: int = 0) -> bytes:
    """ImageFormat; zero width or height means the display's own."""
    return _int(1, kind) + _int(3, width) + _int(4, height)


def read_clip(raw: bytes) -> str:
    """The text of a ClipData.

    Raises:
        ValueError: not a message.
    """
    return _last_bytes(raw, 1).decode("utf-8", "replace")


def read_booted(raw: bytes) -> bool:
    """The booted flag of an EmulatorStatus.

    Raises:
        ValueError: not a message.
    """
    return bool(_last_int(raw, 3))


def read_image(raw: bytes) -> Image:
    """An Image with the format it carries.

    Raises:
        ValueError: not a message.
    """
    form = _last_bytes(raw, 1)
    turned = _last_bytes(form, 2)
    return Image(
        data=_last_bytes(raw, 4),
        width=_last_int(form, 3),
        height=_last_int(form, 4),
        rotation=_last_int(turned, 1) % 4,
        sequence=_last_int(raw, 5),
    )


def fields(raw: bytes) -> Iterator[tuple[int, Value]]:
    """Field numbers and values of a message.

    Raises:
        ValueError: not a message.
    """
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        kind = tag & 7
        value: Value
        if kind == _VARINT:
            value, at = _read_varint(raw, at)
        else:
            if kind == _BYTES:
                size, at = _read_varint(raw, at)
            elif kind in {_FIXED64, _FIXED32}:
                size = 8 if kind == _FIXED64 else 4
            else:
                raise ValueError(f"wire type {kind}")
            value, at = raw[at : at + size], at + size
            if len(value) != size:
                raise ValueError("a field longer than its message")
        yield tag >> 3, value


def _touch(finger: Finger) -> bytes:
    return _int(1, finger.x) + _int(2, finger.y) + _int(3, finger.identifier) + _int(4, finger.pressure)


def _int(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value) if value else b""


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value if value else b""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift < 70:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number without end")


def _last_int(raw: bytes, number: int) -> int:
    found = [value for field, value in fields(raw) if field == number and isinstance(value, int)]
    return found[-1] if found else 0


def _last_bytes(raw: bytes, number: int) -> bytes:
    found = [value for field, value in fields(raw) if field == number and isinstance(value, bytes)]
    return found[-1] if found else b""
