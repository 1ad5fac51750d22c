"""What was done to a phone and a web server: all that changed something there, whoever asked for it or not.

Looking is no deed, nor is walking through screens, typing into a field or opening an app. Nor is an install: some tool
servers bring an app of their own.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import emulator_images.paper
from agent_gate.site import Visit
from agent_gate.task import folder
from emulator_images.paper.screen.description import Item, load_apps

Entry = Mapping[str, object]
_EVENTS = frozenset({"submit", "permission", "dialog", "crash", "anr", "rotated", "stroke", "uninstall", "clear"})
_TOLD = frozenset({"submit", "permission", "dialog", "crash", "anr"})
"""What an item does that the phone tells of by an event of its own."""
_CHANGES = frozenset({"set", "log", "notify", "toast", "sleep"})
_SLOP = 16
"""Pixels: a finger that went farther did not press."""


def phone_deeds(journal: Sequence[Entry]) -> list[Entry]:
    """The events that changed something on the phone."""
    return [entry for entry in journal if _changed(entry)]


def web_deeds(visits: Sequence[Visit]) -> list[Visit]:
    """The requests that sent something, or fetched a file."""
    return [one for one in visits if one.method not in ("GET", "HEAD") or one.path.startswith("/report-")]


def _changed(entry: Entry) -> bool:
    if entry.get("event") != "input":
        # A permission's question is told of twice: by its dialog, and by what came of it.
        return entry.get("event") in _EVENTS and entry.get("kind") != "permission"
    return (entry.get("package"), entry.get("hit")) in _switches() and _pressed(entry)


def _pressed(entry: Entry) -> bool:
    ends = [(entry.get(near), entry.get(far, entry.get(near))) for near, far in (("x", "x2"), ("y", "y2"))]
    return all(isinstance(a, int) and isinstance(b, int) and abs(a - b) <= _SLOP for a, b in ends)


@cache
def _switches() -> frozenset[tuple[str, str]]:
    """Package and item of all that changes something without an event that tells of it."""
    places = (Path(emulator_images.paper.__file__).parent / "apps", folder("apps"))
    apps = [app for place in places for app in load_apps(place)]
    return frozenset(
        (app.package, item.id) for app in apps for screen in app.screens for item in screen.items if _silent(item)
    )


def _silent(item: Item) -> bool:
    does = {action.do for action in item.tap}
    return item.kind == "switch" or bool(does & _CHANGES and not does & _TOLD)
