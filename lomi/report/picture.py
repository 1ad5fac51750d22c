"""What a PNG or an animated WebP says of itself, without decoding it."""

import struct

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_size(png: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None when these bytes are no whole PNG."""
    if png[:8] != _SIGNATURE or png[12:16] != b"IHDR" or png[-8:-4] != b"IEND":
        return None
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)


def video_size(webp: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of an animated WebP; None when these bytes are no whole one."""
    if webp[:4] != b"RIFF" or webp[8:16] != b"WEBPVP8X" or webp[30:34] != b"ANIM":
        return None
    if int.from_bytes(webp[4:8], "little") + 8 != len(webp):
        return None
    return int.from_bytes(webp[24:27], "little") + 1, int.from_bytes(webp[27:30], "little") + 1
