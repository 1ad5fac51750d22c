"""What a PNG says of itself, without decoding it."""

import struct

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_size(png: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None when these bytes are no whole PNG."""
    if png[:8] != _SIGNATURE or png[12:16] != b"IHDR" or png[-8:-4] != b"IEND":
        return None
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)
