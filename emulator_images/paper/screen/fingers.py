"""Fingers on the glass: each is followed from down to up, and together they are one gesture."""

from dataclasses import dataclass, field

from emulator_images.paper.screen.stage import Stage
from emulator_images.paper.screen.touch import gesture, pinch

Path = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Fingers:
    """The fingers that are down, and those lifted since the first of them came down; `began` in seconds."""

    down: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    lifted: list[Path] = field(default_factory=list)
    began: float = 0.0

    def touch(self, identifier: int, point: tuple[int, int], *, pressed: bool, now: float) -> tuple[Path, ...]:
        """Put down, move or lift a finger; answers with the paths of all once the last one is lifted."""
        if pressed:
            if not self.down:
                self.began = now
            self.down.setdefault(identifier, []).append(point)
            return ()
        path = self.down.pop(identifier, None)
        if path is None:
            return ()
        self.lifted.append((*path, point))
        if self.down:
            return ()
        paths, self.lifted = tuple(self.lifted), []
        return paths


def play(stage: Stage, paths: tuple[Path, ...], milliseconds: int) -> str:
    """Do what one finger's path, or that of several, means; answers with the key of what was touched."""
    return gesture(stage, paths[0], milliseconds) if len(paths) == 1 else pinch(stage, paths)


def to_rotated(stage: Stage, x: int, y: int) -> tuple[int, int]:
    """The pixel of the display as it is turned for a pixel of the unrotated panel."""
    last_x, last_y = stage.width - 1, stage.height - 1
    return ((x, y), (y, last_x - x), (last_x - x, last_y - y), (last_y - y, x))[stage.rotation]
