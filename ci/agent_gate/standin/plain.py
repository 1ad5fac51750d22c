"""Scripts for a phone behind two bare tools, `phone_screen` (UI Automator's XML) and `phone_tap` (a point)."""

import html
import re
from collections.abc import Callable, Mapping

from agent_gate.standin import phone_tasks
from agent_gate.standin.part import LostError, Part, Script, Steps, one

LOOKS = 20


class Finger:
    """On the only phone there is."""

    def tap(self, text: str) -> Steps[None]:
        """Look until an element with this text is there, and tap its middle."""
        written = re.escape(html.escape(text, quote=False))
        wanted = re.compile(rf'text="{written}"[^>]*?bounds="\[(\d+),(\d+)\]\[(\d+),(\d+)\]"')
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
    finger = Finger()
    yield from finger.tap("Settings")
    return (yield from phone_tasks.settings_toggle(finger, part))


PLAIN: Mapping[str, Callable[[Part], Script]] = {"settings-toggle": settings_toggle}
