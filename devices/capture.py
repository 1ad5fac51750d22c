"""Screen pictures: found among noise, checked before they count, shrunk within bounds."""

import asyncio
import io
import struct
import zlib
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

from devices.adb.shell import ShellLane
from devices.faults import CaptureFailed
from devices.geometry import Affine, Screen

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_RAW = 48 * 1024 * 1024
_MAX_PIXELS = 2_000_000
_MAX_EDGE = 1414
_MAX_NOISE = 4096
_MAX_WORDS = 2048


@dataclass(frozen=True, slots=True)
class Picture:
    """A checked PNG and its size in pixels; `warnings` is what the device wrote before the bytes."""

    png: bytes
    width: int
    height: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    """The full picture, a bounded one, and the map from the bounded picture to hardware pixels.

    `uniform` says that every pixel is the same; that is reported, not hidden.
    """

    full: Picture
    bounded: Picture
    image_to_hardware: Affine
    screen: Screen
    uniform: bool

    @property
    def scaled(self) -> bool:
        """Whether the bounded picture is smaller than the full one."""
        return self.bounded.width < self.full.width


async def grab(lane: ShellLane, *, within: float) -> bytes:
    """What screencap wrote, its complaints first; over a kept shell, whose stream tells outputs and their ends apart.

    Raises:
        ChannelLost: the stream broke or took too long; the next picture gets a fresh one.
    """
    answer = await lane.run("screencap -p", within=within, limit=_MAX_RAW)
    return answer.err[-_MAX_WORDS:] + answer.out


def check_png(raw: bytes) -> Picture:
    """Find the PNG in what was captured and prove it whole: signature, IHDR, checksums of the frame, IEND.

    Raises:
        CaptureFailed: capture_invalid or capture_truncated.
    """
    at = raw.find(_SIGNATURE, 0, _MAX_NOISE + len(_SIGNATURE))
    if at < 0:
        words = raw[:400].decode("utf-8", "replace").strip()
        raise CaptureFailed("capture_invalid", "no picture came", evidence=words, fields={"bytes": len(raw)})
    noise = tuple(line.strip()[:200] for line in raw[:at].decode("utf-8", "replace").splitlines() if line.strip())
    png = raw[at:]
    if len(png) < 45:
        raise CaptureFailed("capture_truncated", "the picture ends in its header", fields={"bytes": len(png)})
    length, kind, width, height = struct.unpack_from(">I4sII", png, 8)
    (checksum,) = struct.unpack_from(">I", png, 29)
    if length != 13 or kind != b"IHDR" or zlib.crc32(png[12:29]) != checksum or not width or not height:
        raise CaptureFailed("capture_invalid", "the picture's header is broken")
    end = _end_of(png)
    return Picture(png[:end], width, height, noise[:8])


def _end_of(png: bytes) -> int:
    """Walk the chunks to the end of IEND without touching their contents."""
    at = 8
    while at + 12 <= len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        kind = png[at + 4 : at + 8]
        at += 12 + length
        if kind == b"IEND" and at <= len(png):
            return at
    raise CaptureFailed("capture_truncated", "the picture has no end", fields={"bytes": len(png)})


async def bounded(picture: Picture, screen: Screen, *, max_edge: int, max_bytes: int) -> Capture:
    """Decode in a thread, see whether it is uniform, and make a picture within `max_edge` pixels and `max_bytes`.

    Raises:
        CaptureFailed: capture_truncated or capture_invalid when it does not decode, capture_too_large when even a small
            picture exceeds `max_bytes`.
    """
    small, uniform = await asyncio.to_thread(_shrink, picture, min(max_edge, _MAX_EDGE), max_bytes)
    affine = screen.image_to_hardware(small.width, small.height)
    return Capture(picture, small, affine, screen, uniform)


def _shrink(picture: Picture, max_edge: int, max_bytes: int) -> tuple[Picture, bool]:
    try:
        with Image.open(io.BytesIO(picture.png), formats=("PNG",)) as opened:
            opened.load()
            image = opened if opened.mode == "RGB" else opened.convert("RGB")
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as broken:
        reason = "capture_truncated" if "truncated" in str(broken).lower() else "capture_invalid"
        raise CaptureFailed(reason, f"the picture does not decode: {broken}") from broken
    uniform = image.getcolors(1) is not None  # gives up at the second colour
    edge = max(picture.width, picture.height)
    if edge <= max_edge and picture.width * picture.height <= _MAX_PIXELS and len(picture.png) <= max_bytes:
        return picture, uniform
    scale = min(1.0, max_edge / edge, (_MAX_PIXELS / (picture.width * picture.height)) ** 0.5)
    while scale * edge >= 48:
        size = (max(1, int(picture.width * scale)), max(1, int(picture.height * scale)))
        resized = image if size == image.size else image.resize(size, Image.Resampling.BILINEAR, reducing_gap=1.0)
        png = _encode_flat(resized)
        if len(png) > size[0] * size[1]:  # more a photograph than a screen
            png = _encode(resized, level=1)
        if len(png) > max_bytes:
            png = _encode(resized, level=6)
        if len(png) <= max_bytes:
            return Picture(png, *size), uniform
        scale *= max(0.5, min(0.9, (max_bytes / len(png)) ** 0.5))
    raise CaptureFailed("capture_too_large", "no picture fits", fields={"max_bytes": max_bytes})


def _encode_flat(image: Image.Image) -> bytes:
    """An RGB picture as a PNG without row filters: for flat screens much quicker than choosing them, and no larger."""
    pixels, stride = image.tobytes(), image.width * 3
    rows = b"".join(b"\0" + pixels[at : at + stride] for at in range(0, len(pixels), stride))
    head = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def _encode(image: Image.Image, *, level: int) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=level)
    return out.getvalue()
