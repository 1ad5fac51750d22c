"""Windows above the app: dialogs and the notification shade."""

from collections.abc import Sequence

from emulator_images.paper.screen.layout import Frame
from emulator_images.paper.screen.nodes import Node, Window
from emulator_images.paper.screen.state import Dialog, Notification

_OWNERS = {"permission": "com.android.permissioncontroller", "anr": "android", "crash": "android"}
_PERMISSION_IDS = ("permission_allow_button", "permission_deny_button")


def dialog_window(dialog: Dialog, frame: Frame) -> Window:
    """A dialog in the middle of the display; its buttons have keys `dialog:0`, `dialog:1`..."""
    width, line = frame.px(280), frame.px(48)
    left = (frame.width - width) // 2
    height = line * (2 + len(dialog.buttons))
    top = (frame.height - height) // 2
    inner_left, inner_right = left + frame.px(16), left + width - frame.px(16)
    ids = {
        "permission": _PERMISSION_IDS,
        "anr": ("android:id/aerr_close", "android:id/aerr_wait"),
        "crash": ("android:id/aerr_restart", "android:id/aerr_close"),
    }.get(dialog.kind, ("android:id/button1", "android:id/button2"))
    children = [
        Node(
            "android.widget.TextView",
            (inner_left, top + frame.px(8), inner_right, top + line),
            text=dialog.title,
            id="permission_message" if dialog.kind == "permission" else "android:id/alertTitle",
            look="title",
        ),
    ]
    if dialog.message:
        children.append(
            Node(
                "android.widget.TextView",
                (inner_left, top + line, inner_right, top + 2 * line),
                text=dialog.message,
                id="android:id/message",
                look="text",
            )
        )
    for position, label in enumerate(dialog.buttons):
        button_top = top + line * (2 + position)
        children.append(
            Node(
                "android.widget.Button",
                (inner_left, button_top, inner_right, button_top + line - frame.px(4)),
                text=label,
                id=ids[position] if position < len(ids) else "",
                clickable=True,
                focusable=True,
                look="button",
                key=f"dialog:{position}",
                colour="#455a64",
            )
        )
    panel = Node(
        "android.widget.LinearLayout", (left, top, left + width, top + height), look="panel", children=tuple(children)
    )
    root = Node("android.widget.FrameLayout", (left, top, left + width, top + height), children=(panel,))
    package = _OWNERS.get(dialog.kind, dialog.package)
    return Window(_title(dialog, package), package, root)


def _title(dialog: Dialog, package: str) -> str:
    if dialog.kind == "anr":
        return f"Application Not Responding: {dialog.package}"
    if dialog.kind == "crash":
        return f"Application Error: {dialog.package}"
    if dialog.kind == "permission":
        return f"{package}/{package}.permission.ui.GrantPermissionsActivity"
    return dialog.title or package


def shade_window(notifications: Sequence[Notification], frame: Frame) -> Window:
    """The open notification shade with its entries, newest first; `shade:clear` removes them all."""
    line = frame.px(64)
    left, right = frame.px(8), frame.width - frame.px(8)
    rows: list[Node] = []
    top = frame.px(72)
    for position, note in enumerate(notifications):
        bounds = (left, top, right, top + line)
        title = Node(
            "android.widget.TextView",
            (left + 8, top, right, top + line // 2),
            text=note.title,
            id="android:id/title",
            look="title",
        )
        body = Node(
            "android.widget.TextView",
            (left + 8, top + line // 2, right, top + line),
            text=note.text,
            id="android:id/text",
            look="text",
        )
        rows.append(
            Node(
                "android.widget.FrameLayout",
                bounds,
                id="expandableNotificationRow",
                clickable=True,
                focusable=True,
                look="panel",
                key=f"shade:{position}",
                children=(title, body),
            )
        )
        top += line + frame.px(4)
    rows.append(
        Node(
            "android.widget.Button",
            (left, top, right, top + frame.px(48)),
            text="Clear all",
            id="clear_all",
            clickable=True,
            focusable=True,
            look="button",
            key="shade:clear",
            colour="#455a64",
        )
    )
    full = (0, 0, frame.width, frame.height)
    root = Node("android.widget.FrameLayout", full, id="notification_shade", look="shade", children=tuple(rows))
    return Window("NotificationShade", "com.android.systemui", root)
