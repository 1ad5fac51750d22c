"""Scripts for a phone behind two bare tools, `phone_screen` (UI Automator's XML) and `phone_tap` (a point)."""

import re
from collections.abc import Callable, Generator, Mapping

from agent_gate.standin.part import Call, LostError, Part, Script, Seen, one

LOOKS = 20


def _tap(text: str) -> Generator[list[Call], list[Seen], None]:
    wanted = re.compile(rf'text="{re.escape(text)}"[^>]*?bounds="\[(\d+),(\d+)\]\[(\d+),(\d+)\]"')
    for _ in range(LOOKS):
        seen = yield from one("phone_screen")
        found = wanted.search(seen.text)
        if found is not None:
            left, top, right, bottom = map(int, found.groups())
            yield from one("phone_tap", x=(left + right) // 2, y=(top + bottom) // 2)
            return
    raise LostError(f"the phone does not show {text!r}")


def settings_toggle(part: Part) -> Script:
    """Two screens deep, one switch."""
    yield from _tap("Settings")
    yield from _tap(part.pick("decoy", "Network &amp; internet", "Display"))
    for _ in part.times:
        yield from _tap(part.pick("decoy", "Wi-Fi", "Dark theme"))
    return "The dark theme is on."


PLAIN: Mapping[str, Callable[[Part], Script]] = {"settings-toggle": settings_toggle}
