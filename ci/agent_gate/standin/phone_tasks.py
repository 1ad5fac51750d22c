"""The scripts of the phone's tasks that are the same whatever the tools: a hand knows how to look, tap and type."""

import re
from collections.abc import Callable
from typing import Protocol

from agent_gate.standin.part import LostError, Part, Script, Seen, Steps
from agent_gate.standin.sight import bands

_BUTTON = (0xC2, 0x18, 0x5B)


class Finger(Protocol):
    """Taps what a phone shows."""

    def tap(self, text: str) -> Steps[object]:
        """Tap the element with this text, as soon as it is there."""
        ...


class Hand(Finger, Protocol):
    """Does all that the tasks need of one phone."""

    def look(self) -> Steps[Seen]:
        """What is on the screen."""
        ...

    def tap_at(self, x: int, y: int) -> Steps[object]:
        """Tap a point, in pixels of the display."""
        ...

    def write(self, label: str, text: str) -> Steps[object]:
        """Type into a field."""
        ...

    def swipe_up(self) -> Steps[object]:
        """Show more of a list."""
        ...


Play = Callable[[Hand, Part], Script]
"""A script that begins in the task's app."""


def settings_toggle(finger: Finger, part: Part) -> Script:
    """Two screens deep, one switch."""
    yield from finger.tap(part.pick("decoy", "Network & internet", "Display"))
    for _ in part.times:
        yield from finger.tap(part.pick("decoy", "Wi-Fi", "Dark theme"))
    return "The dark theme is on."


def long_list(hand: Hand, part: Part) -> Script:
    """Swipe until the row is there."""
    row = part.pick("decoy", "Row 24", "Row 42")
    for _ in range(40):
        seen = yield from hand.look()
        if f'"{row}"' in seen.text:
            break
        yield from hand.swipe_up()
    for _ in part.times:
        yield from hand.tap(row)
        yield from hand.tap("OK")
    return "Row 42 is confirmed."


def phone_form(hand: Hand, part: Part) -> Script:
    """Fields, a box, a button."""
    yield from hand.write("Name", part.pick("wrong", "Zoe Luk 🙂", "Zoé Łuk 漢字 🙂"))
    yield from hand.write("Email", "zoe@example.org")
    yield from hand.tap("I agree")
    for _ in part.times:
        yield from hand.tap("Submit")
    return "The form is sent."


def permission(hand: Hand, part: Part) -> Script:
    """A question of the system."""
    for _ in part.times:
        yield from hand.tap("Use camera")
        yield from hand.tap(part.pick("decoy", "While using the app", "Don’t allow"))
    return "The camera is refused."


def lap(hand: Hand, part: Part) -> Script:
    """Press in the clock, once the phone is turned."""
    yield from hand.tap("Clock")
    for _ in part.times:
        yield from hand.tap("Lap")
    return "One lap is taken in landscape."


def day_ticket(hand: Hand, part: Part, shown: Seen, scale: str) -> Script:
    """Coloured bands are buttons, the day's above the year's; `scale` is the pattern of what a picture's pixel is."""
    found = bands(shown.pictures[0], _BUTTON) if shown.pictures else []
    factor = re.search(scale, shown.text)
    if len(found) < 2 or factor is None:
        raise LostError(f"{len(found)} buttons seen; {shown.text[:200]}")
    x, y = found[1 if part.saboteur == "decoy" else 0]
    for _ in part.times:
        yield from hand.tap_at(round(x * float(factor[1])), round(y * float(factor[1])))
    return "The day ticket is bought."
