"""Three coordinate spaces: unrotated hardware pixels, rotated display pixels, and pixels of a shrunk picture."""

import math
from dataclasses import dataclass

from devices.spec import Display

Affine = tuple[float, float, float, float, float, float]
"""[a, b, c, d, tx, ty] with x = a*u + c*v + tx and y = b*u + d*v + ty."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A hardware display and the quarter turns it is shown with."""

    display: Display
    rotation: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the rotated display."""
        width, height = self.display.width, self.display.height
        return (height, width) if self.rotation % 2 else (width, height)

    def holds(self, x: int, y: int) -> bool:
        """Whether a rotated point is on the display."""
        width, height = self.size
        return 0 <= x < width and 0 <= y < height

    def to_rotated(self, x: int, y: int) -> tuple[int, int]:
        """The rotated display pixel of a hardware pixel."""
        width, height = self.display.width, self.display.height
        turns = ((x, y), (y, width - 1 - x), (width - 1 - x, height - 1 - y), (height - 1 - y, x))
        return turns[self.rotation]

    def to_hardware(self, x: int, y: int) -> tuple[int, int]:
        """The hardware pixel of a rotated display pixel."""
        width, height = self.display.width, self.display.height
        turns = ((x, y), (width - 1 - y, x), (width - 1 - x, height - 1 - y), (y, height - 1 - x))
        return turns[self.rotation]

    def image_to_hardware(self, image_width: int, image_height: int) -> Affine:
        """The map from pixels of a picture of the rotated display to hardware pixels."""
        w, h, x, y = self.display.width, self.display.height, image_width, image_height
        maps: tuple[Affine, ...] = (
            (w / x, 0.0, 0.0, h / y, 0.0, 0.0),
            (0.0, h / x, -w / y, 0.0, float(w), 0.0),
            (-w / x, 0.0, 0.0, -h / y, float(w), float(h)),
            (0.0, -h / x, w / y, 0.0, 0.0, float(h)),
        )
        return maps[self.rotation]


def apply(affine: Affine, u: float, v: float, display: Display) -> tuple[int, int]:
    """Map a picture point to a hardware pixel: floor, then clamp to the display."""
    a, b, c, d, tx, ty = affine
    x, y = math.floor(a * u + c * v + tx), math.floor(b * u + d * v + ty)
    return min(max(x, 0), display.width - 1), min(max(y, 0), display.height - 1)
