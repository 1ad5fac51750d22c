"""What pytest shows of a failure: up to the user's own line. How Lomi got from there to its error helps nobody."""

from pathlib import Path

import pytest

_OURS = Path(__file__).resolve().parents[2]
_BETWEEN = ("asyncio", "concurrent")
"""Packages of Python by which a call of ours gets to its loop and back."""


def hide_own_frames(error: pytest.ExceptionInfo[BaseException]) -> None:
    """Leave out the frames below the user's last one, where all of them are ours and the error is one that we tell.

    A fault of Lomi itself, which raises something else, keeps them; `--full-trace` shows them all.
    """
    if not type(error.value).__module__.startswith("lomi."):
        return
    frames = error.traceback
    last = max((number for number, frame in enumerate(frames) if not _ours(frame.path)), default=None)
    if last is None:
        return
    # pytest reads it anew from the exception, whatever it was told of the frames.
    kept = error.tb
    for _ in range(last):
        assert kept.tb_next is not None
        kept = kept.tb_next
    kept.tb_next = None
    error.traceback = frames[: last + 1]


def _ours(path: Path | str) -> bool:
    place = Path(path)
    return place.is_relative_to(_OURS) or place.parent.name in _BETWEEN or place.parent.parent.name in _BETWEEN
