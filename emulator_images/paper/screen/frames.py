"""What the compositor tells of frames: how many were shown, and whether a view waits to draw another."""

from collections.abc import Callable

from emulator_images.paper.screen.stage import Stage

FRAME_SECONDS = 1 / 60


class Frames:
    """Counts what the display showed.

    A change is on the display after `frame_seconds` (0 when drawing takes no time); until then, while something moves
    by itself, and while a change is announced that has yet to be made, a view waits for the next frame.
    """

    def __init__(self, stage: Callable[[], Stage], monotonic: Callable[[], float], frame_seconds: float) -> None:
        self._stage = stage
        self._monotonic = monotonic
        self._frame_seconds = frame_seconds
        self._shown: tuple[object, ...] = ()
        self._due = 0.0
        self._coming = 0
        self._count = 0

    def announce(self) -> None:
        """A change is under way; it is awaited until it is `made`, for its time may be up before its turn comes."""
        self._coming += 1

    def made(self) -> None:
        """An announced change is there."""
        self._coming -= 1

    def look(self) -> tuple[int, bool]:
        """How many frames were shown until now, and whether another is awaited."""
        stage = self._stage()
        shown = (
            stage.focused_window(),
            stage.rotation,
            stage.keyboard_shown,
            stage.shifted,
            stage.toast,
            stage.awake,
            len(stage.notifications),
            len(stage.activity.strokes) if stage.tasks else 0,
        )
        if shown != self._shown:
            self._shown = shown
            self._count += 1
            self._due = self._monotonic() + self._frame_seconds
        moves = bool(stage.tasks) and any(item.kind == "spinner" for item in stage.activity.screen.items)
        return self._count, moves or self._coming > 0 or self._monotonic() < self._due
