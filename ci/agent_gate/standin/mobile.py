"""The scripts of the phone's tasks with the tools of mobile-mcp, for comparison."""

import re
from collections.abc import Callable, Generator, Mapping
from typing import TypeVar

from agent_gate.standin.part import Call, LostError, Part, Script, Seen, one
from agent_gate.standin.sight import bands

T = TypeVar("T")
Steps = Generator[list[Call], list[Seen], T]
LOOKS = 30


class Hand:
    """One phone, by the name that the prompt gives it."""

    def __init__(self, part: Part) -> None:
        found = re.search(r"\bphone (\S+)", part.prompt)
        if found is None:
            raise LostError("the prompt names no phone")
        self._device = found[1].rstrip(",:.")

    def call(self, tool: str, **arguments: object) -> Steps[Seen]:
        """A call for this phone."""
        return (yield from one(f"mobile_{tool}", device=self._device, **arguments))

    def look(self) -> Steps[Seen]:
        """What is on the screen."""
        return (yield from self.call("list_elements_on_screen"))

    def tap(self, text: str) -> Steps[None]:
        """Look until an element with this text is there, and tap its middle."""
        wanted = re.compile(rf'text="{re.escape(text)}".* at=(\d+),(\d+) size=(\d+)x(\d+)')
        for _ in range(LOOKS):
            seen = yield from self.look()
            found = wanted.search(seen.text)
            if found is not None:
                left, top, width, height = map(int, found.groups())
                yield from self.call("click_on_screen_at_coordinates", x=left + width // 2, y=top + height // 2)
                return
        raise LostError(f"the phone does not show {text!r}")

    def write(self, label: str, text: str) -> Steps[Seen]:
        """Tap a field and type."""
        yield from self.tap(label)
        return (yield from self.call("type_keys", text=text, submit=False))


def settings_toggle(part: Part) -> Script:
    """Two screens deep, one switch."""
    hand = Hand(part)
    yield from hand.tap("Settings")
    yield from hand.tap(part.pick("decoy", "Network & internet", "Display"))
    for _ in part.times:
        yield from hand.tap(part.pick("decoy", "Wi-Fi", "Dark theme"))
    return "The dark theme is on."


def long_list(part: Part) -> Script:
    """Swipe until the row is there."""
    hand = Hand(part)
    yield from hand.tap("Long list")
    row = part.pick("decoy", "Row 24", "Row 42")
    for _ in range(40):
        seen = yield from hand.look()
        if f'"{row}"' in seen.text:
            break
        yield from hand.call("swipe_on_screen", direction="up", distance=400)
    for _ in part.times:
        yield from hand.tap(row)
        yield from hand.tap("OK")
    return "Row 42 is confirmed."


def phone_form(part: Part) -> Script:
    """Fields, a box, a button."""
    hand = Hand(part)
    yield from hand.tap("Form")
    yield from hand.write("Name", part.pick("wrong", "Zoe Luk 🙂", "Zoé Łuk 漢字 🙂"))
    yield from hand.write("Email", "zoe@example.org")
    yield from hand.tap("I agree")
    for _ in part.times:
        yield from hand.tap("Submit")
    return "The form is sent."


def permission(part: Part) -> Script:
    """A question of the system."""
    hand = Hand(part)
    yield from hand.tap("Permissions")
    for _ in part.times:
        yield from hand.tap("Use camera")
        yield from hand.tap(part.pick("decoy", "While using the app", "Don’t allow"))
    return "The camera is refused."


def crash_report(part: Part) -> Script:
    """The device's log tells of the exception."""
    hand = Hand(part)
    yield from hand.tap("Trouble")
    message = ""
    for number in part.times:
        if number:
            yield from hand.tap("Trouble")
        yield from hand.tap("Crash")
        yield from hand.tap(part.pick("decoy", "Open app again", "Close app"))
        seen = yield from hand.call("get_device_logs", limit=200)
        found = re.search(r"RuntimeException: ([^\n\"\\]+)", seen.text)
        if found is None:
            raise LostError(f"no exception in: {seen.text[:300]}")
        message = found[1]
    return f"ANSWER: {part.pick('wrong', 'null pointer', message)}"


def rotate(part: Part) -> Script:
    """Turn first, then press."""
    hand = Hand(part)
    yield from hand.call("set_orientation", orientation=part.pick("decoy", "portrait", "landscape"))
    yield from hand.tap("Clock")
    for _ in part.times:
        yield from hand.tap("Lap")
    return "One lap is taken in landscape."


def no_hierarchy(part: Part) -> Script:
    """Only a picture tells where the buttons are."""
    hand = Hand(part)
    yield from hand.tap("Tickets")
    seen = yield from hand.call("take_screenshot")
    found = bands(seen.pictures[0], (0xC2, 0x18, 0x5B)) if seen.pictures else []
    scale = re.search(r"x by ([\d.]+)", seen.text)
    if len(found) < 2 or scale is None:
        raise LostError(f"{len(found)} buttons seen; {seen.text[:200]}")
    x, y = found[1 if part.saboteur == "decoy" else 0]
    for _ in part.times:
        at = {"x": round(x * float(scale[1])), "y": round(y * float(scale[1]))}
        yield from hand.call("click_on_screen_at_coordinates", **at)
    return "The day ticket is bought."


MOBILE: Mapping[str, Callable[[Part], Script]] = {
    "settings-toggle": settings_toggle,
    "long-list": long_list,
    "phone-form": phone_form,
    "permission": permission,
    "crash-report": crash_report,
    "rotate": rotate,
    "no-hierarchy": no_hierarchy,
}
