"""What a PNG says of itself, without decoding it."""

import struct

from lomi.demo.record import DemoFailedError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels.

    Raises:
        DemoFailedError: these bytes are no PNG.
    """
    if png[:8] != _SIGNATURE or png[12:16] != b"IHDR" or png[-8:-4] != b"IEND":
        raise DemoFailedError("the picture that arrived is no whole PNG")
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)
