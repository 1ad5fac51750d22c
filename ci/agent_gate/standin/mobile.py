"""The scripts of the phone's tasks with the tools of mobile-mcp, for comparison."""

import re
from collections.abc import Callable, Mapping

from agent_gate.standin import phone_tasks
from agent_gate.standin.part import LostError, Part, Script, Seen, Steps, one
from agent_gate.standin.phone_tasks import Play

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
                yield from self.tap_at(left + width // 2, top + height // 2)
                return
        raise LostError(f"the phone does not show {text!r}")

    def tap_at(self, x: int, y: int) -> Steps[Seen]:
        """Tap a point."""
        return (yield from self.call("click_on_screen_at_coordinates", x=x, y=y))

    def write(self, label: str, text: str) -> Steps[Seen]:
        """Tap a field and type."""
        yield from self.tap(label)
        return (yield from self.call("type_keys", text=text, submit=False))

    def swipe_up(self) -> Steps[Seen]:
        """Show more of a list."""
        return (yield from self.call("swipe_on_screen", direction="up", distance=400))


def in_app(app: str, play: Play) -> Callable[[Part], Script]:
    """A script played in an app that is opened by its icon."""

    def script(part: Part) -> Script:
        hand = Hand(part)
        yield from hand.tap(app)
        return (yield from play(hand, part))

    return script


def crash_report(part: Part) -> Script:
    """The device's log tells of the exception."""
    hand = Hand(part)
    yield from hand.tap("Parcels")
    message = ""
    for number in part.times:
        if number:
            yield from hand.tap("Parcels")
        yield from hand.tap("Sort")
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
    return (yield from phone_tasks.lap(hand, part))


def no_hierarchy(part: Part) -> Script:
    """Only a picture tells where the buttons are."""
    hand = Hand(part)
    yield from hand.tap("Tickets")
    seen = yield from hand.call("take_screenshot")
    return (yield from phone_tasks.day_ticket(hand, part, seen, r"x by ([\d.]+)"))


MOBILE: Mapping[str, Callable[[Part], Script]] = {
    "settings-toggle": in_app("Settings", phone_tasks.settings_toggle),
    "long-list": in_app("Long list", phone_tasks.long_list),
    "phone-form": in_app("Form", phone_tasks.phone_form),
    "permission": in_app("Permissions", phone_tasks.permission),
    "crash-report": crash_report,
    "rotate": rotate,
    "no-hierarchy": no_hierarchy,
}
