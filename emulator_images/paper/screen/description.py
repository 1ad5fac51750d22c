"""Apps as data: what a TOML app description may say."""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that happens on a tap, a long press or a pinch (whose `{scale}` is in hundredths).

    `open` shows the activity `target`; `back` leaves it; `submit` journals every field and check of the screen; `set`
    puts `value` into the text of item `target`; `dialog` shows `value` under the title `target`; `permission` asks for
    `target`; `launch` starts package `target`; `notify` posts `value` titled `target`; `toast` shows `value`;
    `log` writes `value` with tag `target` to logcat; `crash` and `anr` end or freeze the app; `sleep` turns the
    display off after `value` seconds of phone time.
    """

    do: Literal[
        "open", "back", "submit", "set", "dialog", "permission", "launch", "notify", "toast", "log", "crash", "anr",
        "sleep",
    ]  # fmt: skip
    target: str = ""
    value: str = ""


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One widget, laid out from top to bottom. `count` > 1 repeats it with `{n}` (from 1) replaced in its texts.

    `clock` shows the phone's time, `spinner` a number that changes with every look, `apps` the launcher's icons,
    `blank` is empty space; `height` is in density-independent pixels (0: the kind's own).

    What an app does to its fields while a person types: `most` characters are kept (0: all), `form` rewrites them in
    upper case or as groups of three digits, `clears` empties the field when it gets the focus, and the focus goes on to
    the next field once there are `full` characters (0: never).
    """

    kind: Literal[
        "text", "title", "field", "check", "switch", "button", "row", "image", "spinner", "clock", "canvas", "apps",
        "blank",
    ]  # fmt: skip
    id: str = ""
    text: str = ""
    hint: str = ""
    description: str = ""
    password: bool = False
    most: int = 0
    form: Literal["", "upper", "groups"] = ""
    clears: bool = False
    full: int = 0
    enabled: bool = True
    checked: bool = False
    count: int = 1
    height: int = 0
    tap: tuple[Action, ...] = ()
    hold: tuple[Action, ...] = ()
    pinch: tuple[Action, ...] = ()


class Screen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One activity. `secure` blacks out pictures, `hierarchy = false` hides everything below the root from dumps."""

    activity: str
    title: str = ""
    scroll: bool = False
    secure: bool = False
    hierarchy: bool = True
    landscape: bool = False
    items: tuple[Item, ...] = ()


class App(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One app: its package, what the launcher says of it, and its activities (the first is the main one).

    `schemes` are those of the URIs that open it; the URI is put into the text of its item `url`.
    """

    package: str
    label: str
    screens: tuple[Screen, ...]
    version_code: int = 1
    version_name: str = "1.0"
    colour: str = "#3d5afe"
    launchable: bool = True
    system: bool = False
    permissions: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()

    def screen(self, activity: str) -> Screen | None:
        """The screen of an activity named in full or with a leading dot."""
        wanted = self.full_name(activity)
        return next((screen for screen in self.screens if self.full_name(screen.activity) == wanted), None)

    def full_name(self, activity: str) -> str:
        """The activity's class name without the dot short form."""
        return self.package + activity if activity.startswith(".") else activity


class BadAppDescriptionError(Exception):
    """Raised when an app description is not valid; names the file and the fault."""


def load_apps(directory: Path) -> tuple[App, ...]:
    """Every `*.toml` app description of a directory, in name order.

    Raises:
        BadAppDescriptionError: one of them is not valid.
    """
    apps: list[App] = []
    for path in sorted(directory.glob("*.toml")):
        try:
            app = msgspec.convert(tomllib.loads(path.read_text("utf-8")), App)
        except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise BadAppDescriptionError(f"{path}: {error}") from error
        if not app.screens:
            raise BadAppDescriptionError(f"{path}: an app needs at least one screen")
        apps.append(app)
    return tuple(apps)
