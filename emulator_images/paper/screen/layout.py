"""From an activity's state to its node tree: a column of widgets below the status bar and the app bar."""

from collections.abc import Sequence
from dataclasses import dataclass

from emulator_images.paper.screen.nodes import Bounds, Node
from emulator_images.paper.screen.state import Activity, Placed, placed_items

_HEIGHTS = {
    "text": 28, "title": 40, "field": 56, "check": 48, "switch": 48, "button": 56, "row": 64, "image": 96,
    "spinner": 40, "clock": 40, "canvas": 240, "blank": 32,
}  # fmt: skip
_CLASSES = {
    "text": "android.widget.TextView",
    "title": "android.widget.TextView",
    "field": "android.widget.EditText",
    "check": "android.widget.CheckBox",
    "switch": "android.widget.Switch",
    "button": "android.widget.Button",
    "row": "android.widget.TextView",
    "image": "android.widget.ImageView",
    "spinner": "android.widget.ProgressBar",
    "clock": "android.widget.TextView",
    "canvas": "android.view.View",
}
STATUS_BAR, APP_BAR, MARGIN, GAP = 24, 56, 16, 8
ICON_COLUMNS, ICON_HEIGHT = 4, 96


@dataclass(frozen=True, slots=True)
class Frame:
    """What the layout needs to know: display size in pixels, density, keyboard height and the moving texts."""

    width: int
    height: int
    density: int
    keyboard: int
    clock_text: str
    spinner_text: str
    icons: Sequence[tuple[str, str, str]] = ()

    def px(self, dp: float) -> int:
        """Density-independent pixels in pixels."""
        return round(dp * self.density / 160)


def lay_out(activity: Activity, frame: Frame) -> Node:
    """The root node of the activity's window."""
    top = frame.px(STATUS_BAR)
    children: list[Node] = []
    if activity.screen.title:
        bar = (0, top, frame.width, top + frame.px(APP_BAR))
        title = Node(
            "android.widget.TextView",
            (frame.px(MARGIN), bar[1] + frame.px(12), frame.width - frame.px(MARGIN), bar[3] - frame.px(12)),
            text=activity.screen.title,
            look="heading",
        )
        children.append(
            Node("android.view.ViewGroup", bar, id="toolbar", look="bar", colour=activity.app.colour, children=(title,))
        )
        top = bar[3]
    body: Bounds = (0, top, frame.width, frame.height - frame.keyboard)
    children.append(_body(activity, frame, body))
    full: Bounds = (0, 0, frame.width, frame.height)
    content = Node(
        "android.widget.FrameLayout",
        (0, frame.px(STATUS_BAR), frame.width, frame.height),
        id="android:id/content",
        children=tuple(children),
    )
    return Node(
        "android.widget.FrameLayout", full, children=(Node("android.widget.LinearLayout", full, children=(content,)),)
    )


def content_height(activity: Activity, frame: Frame) -> int:
    """How tall the activity's items are together, in pixels."""
    return sum(_height(placed, frame) + frame.px(GAP) for placed in placed_items(activity.screen)) + frame.px(GAP)


def span_of(activity: Activity, frame: Frame, key: str) -> tuple[int, int] | None:
    """Top and bottom of an item within the content, before scrolling; None when there is no such item."""
    top = frame.px(GAP)
    for placed in placed_items(activity.screen):
        height = _height(placed, frame)
        if placed.key == key:
            return top, top + height
        top += height + frame.px(GAP)
    return None


def body_height(activity: Activity, frame: Frame) -> int:
    """Height of the area that items are shown in, in pixels."""
    top = frame.px(STATUS_BAR + (APP_BAR if activity.screen.title else 0))
    return max(0, frame.height - frame.keyboard - top)


def _height(placed: Placed, frame: Frame) -> int:
    if placed.item.kind == "apps":
        lines = -(-len(frame.icons) // ICON_COLUMNS)
        return frame.px(ICON_HEIGHT) * max(1, lines)
    return frame.px(placed.item.height or _HEIGHTS[placed.item.kind])


def _body(activity: Activity, frame: Frame, body: Bounds) -> Node:
    left, right = frame.px(MARGIN), frame.width - frame.px(MARGIN)
    shown: list[Node] = []
    top = body[1] + frame.px(GAP) - activity.scrolled
    for placed in placed_items(activity.screen):
        height = _height(placed, frame)
        visible: Bounds = (left, max(top, body[1]), right, min(top + height, body[3]))
        if visible[1] < visible[3]:
            shown.extend(_nodes(activity, frame, placed, visible))
        top += height + frame.px(GAP)
    if activity.screen.scroll:
        return Node(
            "androidx.recyclerview.widget.RecyclerView"
            if any(item.count > 1 for item in activity.screen.items)
            else "android.widget.ScrollView",
            body,
            id="list",
            scrollable=content_height(activity, frame) > body[3] - body[1],
            focusable=True,
            children=tuple(shown),
        )
    return Node("android.widget.LinearLayout", body, children=tuple(shown))


def _nodes(activity: Activity, frame: Frame, placed: Placed, bounds: Bounds) -> list[Node]:
    kind = placed.item.kind
    if kind == "blank":
        return []
    if kind == "apps":
        return _icons(frame, bounds)
    item = placed.item
    text = activity.texts.get(placed.key, placed.text)
    hint = ""
    if kind == "clock":
        text = frame.clock_text
    elif kind == "spinner":
        text = frame.spinner_text
    elif kind == "field":
        typed = activity.editor(placed.key).text
        shown = "•" * len(typed) if item.password else typed
        text, hint = shown or item.hint, item.hint
    touchable = kind in {"field", "check", "switch", "button"} or bool(item.tap)
    return [
        Node(
            _CLASSES[kind],
            bounds,
            text=text,
            id=item.id.replace("{n}", str(placed.number)),
            description=item.description.replace("{n}", str(placed.number)),
            hint=hint,
            checkable=kind in {"check", "switch"},
            checked=kind in {"check", "switch"} and activity.is_checked(placed.key, item),
            clickable=touchable,
            enabled=item.enabled,
            focusable=touchable,
            focused=activity.focused == placed.key,
            long_clickable=kind == "field" or bool(item.hold),
            password=item.password,
            look="hint" if kind == "field" and not activity.editor(placed.key).text else kind,
            key=placed.key,
            colour=activity.app.colour,
        )
    ]


def _icons(frame: Frame, bounds: Bounds) -> list[Node]:
    width = (bounds[2] - bounds[0]) // ICON_COLUMNS
    height = frame.px(ICON_HEIGHT)
    nodes: list[Node] = []
    for position, (package, label, colour) in enumerate(frame.icons):
        left = bounds[0] + width * (position % ICON_COLUMNS)
        top = bounds[1] + height * (position // ICON_COLUMNS)
        if top + height > bounds[3]:
            break
        nodes.append(
            Node(
                "android.widget.TextView",
                (left, top, left + width, top + height),
                text=label,
                id="icon",
                description=label,
                clickable=True,
                focusable=True,
                long_clickable=True,
                look="icon",
                key=f"icon:{package}",
                colour=colour,
            )
        )
    return nodes
