"""The little that the stand-in sees in a picture: bands of one colour, from top to bottom."""

import base64
import io

from PIL import Image

from agent_gate.talk import Picture

_LEAST_HEIGHT = 12
_NEAR = 16
"""How far a colour may be off: some servers send JPEG."""


def bands(picture: Picture, colour: tuple[int, int, int]) -> list[tuple[int, int]]:
    """The middles of the bands in which a row's left quarter has this colour, in pixels of the picture."""
    with Image.open(io.BytesIO(base64.b64decode(picture.base64))) as opened:
        seen = opened.convert("RGB")
        column = seen.width // 4
        rows = [y for y in range(seen.height) if _near(seen.getpixel((column, y)), colour)]
        width = seen.width
    found: list[tuple[int, int]] = []
    start = previous = -2
    for y in [*rows, seen.height + 2]:
        if y != previous + 1:
            if previous - start >= _LEAST_HEIGHT:
                found.append((width // 2, (start + previous) // 2))
            start = y
        previous = y
    return found


def _near(pixel: object, colour: tuple[int, int, int]) -> bool:
    return isinstance(pixel, tuple) and all(abs(int(a) - b) <= _NEAR for a, b in zip(pixel, colour, strict=True))
