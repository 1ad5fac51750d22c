"""The phone's display: tasks, windows, dialogs, shade, keyboard and the fields being edited."""

from dataclasses import dataclass, field
from typing import Protocol

from emulator_images.paper.journal import Field
from emulator_images.paper.screen import keyboard
from emulator_images.paper.screen.description import App
from emulator_images.paper.screen.layout import Frame, body_height, content_height, lay_out, span_of
from emulator_images.paper.screen.nodes import Node, Window
from emulator_images.paper.screen.overlays import dialog_window, shade_window
from emulator_images.paper.screen.state import Activity, Dialog, Editor, Notification

LAUNCHER = "com.android.launcher3"


class Surroundings(Protocol):
    """What the display needs from the rest of the phone."""

    def app(self, package: str) -> App | None:
        """The installed app of a package."""

    def icons(self) -> list[tuple[str, str, str]]:
        """Package, label and colour of what the launcher shows."""

    def clock_text(self) -> str:
        """The time as the status bar writes it."""

    def record(self, event: str, **fields: Field) -> None:
        """Write to the journal."""

    def write_log(self, level: str, tag: str, text: str, *, package: str = "", buffer: str = "main") -> None:
        """Write to logcat."""

    def granted(self, package: str, permission: str) -> bool:
        """Whether an app holds a permission."""

    def answer_permission(self, package: str, permission: str, *, allowed: bool) -> None:
        """Keep a person's answer to a permission question."""

    def keyboard_wanted(self) -> bool:
        """Whether a focused field brings up the soft keyboard."""

    def died(self, package: str) -> None:
        """An app's process ended."""

    def started(self, package: str) -> bool:
        """An app's process is needed; true when it had to be started."""

    def sleep_after(self, seconds: float) -> None:
        """Turn the display off later."""


@dataclass(slots=True)
class Stage:
    """State of the display; sizes in pixels of the unrotated panel."""

    around: Surroundings
    width: int
    height: int
    density: int
    rotation: int = 0
    awake: bool = True
    locked: bool = False
    tasks: list[list[Activity]] = field(default_factory=list)
    dialog: Dialog | None = None
    shade_open: bool = False
    notifications: list[Notification] = field(default_factory=list)
    toast: str = ""
    keyboard_shown: bool = False
    shifted: bool = False
    clipboard: str = ""
    spinner: int = 0
    frozen: set[str] = field(default_factory=set)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in the current rotation."""
        return (self.height, self.width) if self.rotation % 2 else (self.width, self.height)

    @property
    def activity(self) -> Activity:
        """The activity in front."""
        return self.tasks[-1][-1]

    def frame(self) -> Frame:
        """What the layout needs to know now."""
        width, height = self.size
        shown = keyboard.keyboard_height(height) if self.keyboard_shown else 0
        return Frame(
            width,
            height,
            self.density,
            shown,
            self.around.clock_text(),
            f"{self.spinner * 7 % 100} %",
            self.around.icons(),
        )

    def app_window(self) -> Window:
        """The window of the activity in front, whatever lies above it."""
        screen = self.activity.screen
        root = lay_out(self.activity, self.frame())
        return Window(
            self.activity.component, self.activity.app.package, root, secure=screen.secure, hierarchy=screen.hierarchy
        )

    def focused_window(self) -> Window:
        """The window that has the input focus."""
        if self.dialog is not None:
            return dialog_window(self.dialog, self.frame())
        if self.shade_open:
            return shade_window(self.notifications, self.frame())
        return self.app_window()

    def keyboard_window(self) -> Node | None:
        """The soft keyboard, when shown."""
        return keyboard.keyboard_node(*self.size, shifted=self.shifted) if self.keyboard_shown else None

    def start(self, app: App, activity: str = "", *, fresh: bool = False) -> bool:
        """Bring an app to the front: its task as it was, or a new one; true when a new activity was made."""
        screen = app.screen(activity) if activity else app.screens[0]
        screen = screen or app.screens[0]
        self.shade_open = False
        self.hide_keyboard()
        cold = self.around.started(app.package)
        task = next((task for task in self.tasks if task[0].app.package == app.package), None)
        if task is not None and (cold or fresh):
            self.tasks.remove(task)
            task = None
        if task is None:
            self.tasks.append([Activity(app, screen, focused=None)])
            self._shown(made=True)
            return True
        self.tasks.remove(task)
        self.tasks.append(task)
        if activity and task[-1].screen != screen:
            task.append(Activity(app, screen))
            self._shown(made=True)
            return True
        self._shown(made=False)
        return False

    def _shown(self, *, made: bool) -> None:
        activity = self.activity
        if activity.focused is not None:
            self.show_keyboard()
        self.around.record("shown", package=activity.app.package, activity=activity.component, new=made)
        self.around.write_log(
            "I", "ActivityTaskManager", f"Displayed {activity.component} for user 0: +123ms", buffer="system"
        )

    def open(self, activity: str) -> None:
        """Open another activity of the app in front."""
        app = self.activity.app
        screen = app.screen(activity)
        if screen is not None:
            self.hide_keyboard()
            self.tasks[-1].append(Activity(app, screen))
            self._shown(made=True)

    def home(self) -> None:
        """Show the launcher."""
        launcher = self.around.app(LAUNCHER)
        assert launcher is not None
        self.start(launcher)

    def leave(self) -> None:
        """Leave the activity in front, as BACK does."""
        task = self.tasks[-1]
        if task[0].app.package == LAUNCHER:
            return
        self.hide_keyboard()
        task.pop()
        if not task:
            self.tasks.remove(task)
        if not self.tasks:
            self.home()

    def remove(self, package: str) -> None:
        """Take an app's task and dialogs off the display, as when its process dies."""
        in_front = bool(self.tasks) and self.activity.app.package == package
        self.tasks = [task for task in self.tasks if task[0].app.package != package]
        self.frozen.discard(package)
        if self.dialog is not None and self.dialog.package == package:
            self.dialog = None
        if in_front:
            self.hide_keyboard()
        if in_front or not self.tasks:
            self.home()

    def crash(self, package: str, reason: str) -> None:
        """End an app as an uncaught exception does, with the log lines and the dialog."""
        lines = [
            "FATAL EXCEPTION: main",
            f"Process: {package}, PID: {{pid}}",
            f"java.lang.RuntimeException: {reason}",
            f"\tat {package}.Main.onClick(Main.java:42)",
        ]
        for line in lines:
            self.around.write_log("E", "AndroidRuntime", line, package=package, buffer="crash")
        self.around.record("crash", package=package, reason=reason)
        app = self.around.app(package)
        self.around.died(package)
        self.remove(package)
        label = app.label if app else package
        self.dialog = Dialog("crash", package, f"{label} keeps stopping", "", ("Open app again", "Close app"))

    def freeze(self, package: str) -> None:
        """Make an app stop answering; the dialog appears at once."""
        self.frozen.add(package)
        app = self.around.app(package)
        label = app.label if app else {"com.android.systemui": "System UI"}.get(package, package)
        self.around.write_log("E", "ActivityManager", f"ANR in {package}", buffer="system")
        self.around.write_log(
            "E",
            "ActivityManager",
            "Reason: Input dispatching timed out (waited 5000ms for MotionEvent)",
            buffer="system",
        )
        self.around.record("anr", package=package)
        self.dialog = Dialog("anr", package, f"{label} isn't responding", "", ("Close app", "Wait"))

    def show_keyboard(self) -> None:
        """Show the soft keyboard if the phone wants one, and scroll the focused field into view."""
        self.keyboard_shown = self.around.keyboard_wanted()
        activity = self.activity
        span = span_of(activity, self.frame(), activity.focused) if activity.focused else None
        if span is not None and activity.screen.scroll:
            visible = body_height(activity, self.frame())
            if span[1] - activity.scrolled > visible:
                self.scroll_to(span[1] - visible)

    def hide_keyboard(self) -> None:
        """Hide the soft keyboard."""
        if self.keyboard_shown:
            self.keyboard_shown = False
            if self.tasks:
                self.scroll_to(self.activity.scrolled)

    def scroll_to(self, offset: int) -> None:
        """Scroll the activity in front to an offset in pixels, as far as its content reaches."""
        activity, frame = self.activity, self.frame()
        furthest = max(0, content_height(activity, frame) - body_height(activity, frame))
        activity.scrolled = min(max(0, offset), furthest) if activity.screen.scroll else 0

    def editor(self) -> Editor | None:
        """The field being edited."""
        if self.dialog is not None or self.shade_open:
            return None
        activity = self.activity
        return activity.editor(activity.focused) if activity.focused is not None else None

    def rotate(self, rotation: int) -> None:
        """Turn the display to 0..3 quarter turns."""
        if rotation != self.rotation:
            self.rotation = rotation
            self.around.record("rotated", rotation=rotation)
            self.scroll_to(self.activity.scrolled)
