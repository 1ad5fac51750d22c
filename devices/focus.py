"""Which window has the focus, read from the window service's dump."""

import re
from dataclasses import dataclass
from typing import Literal

FOCUS = ("dumpsys window", "mCurrentFocus|mFocusedApp")
"""The command that tells of the focus, and what of it is wanted."""
FOCUS_LINE = f"{FOCUS[0]} | grep -E '{FOCUS[1]}'"

Kind = Literal["activity", "window", "anr_dialog", "crash_dialog", "permission_dialog", "none", "unknown"]

_RECORD = re.compile(r"mCurrentFocus=(?P<null>null)|mCurrentFocus=Window\{\S+ (?:u(?P<user>\d+) )?(?P<title>[^}]*)\}")
_APP = re.compile(r"mFocusedApp=.*ActivityRecord\{\S+ u(?P<user>\d+) (?P<component>[^\s,}]+)")
_COMPONENT = re.compile(r"^(?P<package>[A-Za-z0-9_.]+)/(?P<activity>[\w.$]+)$")
_DIALOGS: tuple[tuple[str, Kind], ...] = (
    ("Application Not Responding: ", "anr_dialog"),
    ("Application Error: ", "crash_dialog"),
)
_PERMISSION_PACKAGES = frozenset(
    ("com.android.permissioncontroller", "com.google.android.permissioncontroller", "com.android.packageinstaller")
)


@dataclass(frozen=True, slots=True)
class Focus:
    """The focused window. `package` is the application a dialog is about; `title` is the raw window title."""

    kind: Kind
    package: str | None = None
    activity: str | None = None
    title: str = ""

    @property
    def is_system_dialog(self) -> bool:
        """Whether the system put a dialog of its own before the applications."""
        return self.kind in {"anr_dialog", "crash_dialog", "permission_dialog"}

    @property
    def label(self) -> str:
        """One short name for people: the component, or the window's title."""
        return f"{self.package}/{self.activity}" if self.activity else (self.title or self.package or self.kind)


def parse(text: str) -> Focus:
    """Read focus lines; with several displays the last one that has a focus decides, and the window beats the app."""
    records = list(_RECORD.finditer(text))
    focused = [record for record in records if not record["null"]]
    if focused:
        title = focused[-1]["title"].removesuffix(" paused=false").strip()
        return _from_title(title)
    if apps := list(_APP.finditer(text)):
        found = _from_title(apps[-1]["component"])
        return Focus(found.kind, found.package, found.activity)
    return Focus("none" if records or "mFocusedApp=null" in text else "unknown")


def _from_title(title: str) -> Focus:
    for prefix, kind in _DIALOGS:
        if title.startswith(prefix):
            return Focus(kind, package=title.removeprefix(prefix).split()[0], title=title)
    match = _COMPONENT.fullmatch(title)
    if match is None:
        package = title if re.fullmatch(r"[A-Za-z]\w*(\.\w+)+", title) else None
        return Focus("window", package=package, title=title)
    package, activity = match["package"], match["activity"]
    if activity.startswith("."):
        activity = package + activity
    elif "." not in activity:
        activity = f"{package}.{activity}" if "." in package else activity
    found: Kind = "permission_dialog" if package in _PERMISSION_PACKAGES else "activity"
    return Focus(found, package=package, activity=activity, title=title)
