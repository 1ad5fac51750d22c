"""A picture that a tool sent, or a failed step."""

from lomi.demo.record import DemoFailedError
from lomi.report import picture


def png_size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels.

    Raises:
        DemoFailedError: these bytes are no PNG.
    """
    size = picture.png_size(png)
    if size is None:
        raise DemoFailedError("the picture that arrived is no whole PNG")
    return size
