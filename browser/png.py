"""What a PNG says of itself."""

import struct

from browser.errors import CaptureFailedError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_END = b"IEND\xaeB`\x82"


def png_size(png: bytes) -> tuple[int, int]:
    """Width and height of a whole PNG.

    Raises:
        CaptureFailedError: it is empty, truncated or no PNG.
    """
    if len(png) < 57 or not png.startswith(_SIGNATURE) or png[12:16] != b"IHDR" or not png.endswith(_END):
        raise CaptureFailedError("capture_invalid", byte_length=len(png))
    width, height = struct.unpack(">II", png[16:24])
    if not width or not height:
        raise CaptureFailedError("capture_invalid", width=width, height=height)
    return width, height
