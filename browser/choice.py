"""Which browser a broker runs, as the environment of its owner says."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

BROWSER = "LOMI_BROWSER"
"""``headless`` (the default) or ``headed``: pages in windows that a person sees."""
CHROMIUM = "LOMI_CHROMIUM"
"""The path of a Chromium to run instead of the one that is found."""

_KINDS = f"set {BROWSER} to headless or headed, or leave it out"


class BrowserChoiceError(ValueError):
    """The choice can't be kept; `hint` says what to do."""

    def __init__(self, said: str, hint: str) -> None:
        super().__init__(said)
        self.hint = hint


class BrowserChoice(NamedTuple):
    """What was chosen; no `executable` is whatever `find_engine` finds."""

    headed: bool = False
    executable: Path | None = None


def _runs(program: Path) -> bool:
    try:
        return program.is_file() and os.access(program, os.X_OK)
    except OSError:  # below a folder of another user's, or a name that no file can have
        return False


def browser_choice(environment: Mapping[str, str], platform: str = sys.platform) -> BrowserChoice:
    """The choice in an environment.

    Raises:
        BrowserChoiceError: no such kind of browser, no display for its windows, or no such program.
    """
    kind = environment.get(BROWSER) or "headless"
    if kind in ("firefox", "webkit"):
        raise BrowserChoiceError(f"{BROWSER} is {kind}, and pages are Chromium's only", _KINDS)
    if kind not in ("headless", "headed"):
        raise BrowserChoiceError(f"{BROWSER} is {kind!r}", _KINDS)
    if kind == "headed" and platform == "linux" and not environment.get("DISPLAY"):
        raise BrowserChoiceError(
            f"{BROWSER} is headed, and there is no display", "set DISPLAY, or run it below `xvfb-run`"
        )
    named = environment.get(CHROMIUM)
    executable = Path(named) if named else None
    if executable and not (executable.is_absolute() and _runs(executable)):
        raise BrowserChoiceError(
            f"{CHROMIUM} is {named!r}, and no program is there", "give the whole path of a Chromium"
        )
    if kind == "headed" and executable and "headless" in executable.resolve().name:
        raise BrowserChoiceError(f"{CHROMIUM} is {named!r}, which has no windows", "name a Chromium that has them")
    return BrowserChoice(kind == "headed", executable)
