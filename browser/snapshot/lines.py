"""What the walk in the page sends, decoded, and its translation into nodes."""

from collections.abc import Iterable
from typing import Literal, cast

from msgspec import Struct, field

from browser.values import Checked, Node


class Line(Struct):
    """One thing of the page with the short keys it travels under."""

    number: int = field(name="k", default=0)
    role: str = field(name="r", default="")
    name: str = field(name="n", default="")
    disabled: int = field(name="d", default=0)
    editable: int = field(name="e", default=0)
    checked: bool | Literal["mixed"] | None = field(name="c", default=None)
    value_length: int | None = field(name="v", default=None)
    level: int | None = field(name="l", default=None)
    expanded: bool | None = field(name="x", default=None)
    selected: int = field(name="s", default=0)
    required: int = field(name="q", default=0)
    invalid: int = field(name="i", default=0)
    focused: int = field(name="f", default=0)
    outside: int = field(name="o_", default=0)
    hidden: int = field(name="h", default=0)
    unseen: int = field(name="u", default=0)
    repaired: int = field(name="w", default=0)
    label_of_control: int = field(name="lf", default=0)
    options: tuple[str, ...] = field(name="o", default=())
    option_count: int = field(name="on", default=0)


class Where(Struct, rename="camel"):
    """The document a walk saw."""

    url: str = ""
    title: str = ""
    ready: str = ""
    width: float = 0
    height: float = 0
    scale: float = 1
    scroll_x: float = 0
    scroll_y: float = 0
    full_height: float = 0


class Walked(Where):
    """Answer of `collect` and `find`."""

    items: tuple[Line, ...] = ()
    counts: dict[str, int] = {}
    total: int = 0
    near: int = 0
    hosts: int = 0
    cut: bool = False
    next: int = 1
    ms: float = 0


class Differed(Walked):
    """Answer of `finish`: whether the document came to rest, and what is different."""

    quiet: bool = False

    added: tuple[Line, ...] = ()
    changed: tuple[Line, ...] = ()
    removed: tuple[Line, ...] = ()
    delta: dict[str, int] = {}
    omitted: int = 0
    focus: int = 0


def checked_word(checked: bool | str | None) -> Checked | None:
    """The wire word of a checked state."""
    if checked is None:
        return None
    return cast("Checked", checked) if isinstance(checked, str) else "true" if checked else "false"


def node_of(line: Line, frame: str) -> Node:
    """One line as a node of frame `frame`."""
    return Node(
        ref=f"{frame}-e{line.number}",
        frame=frame,
        role=line.role,
        name=line.name,
        enabled=not line.disabled,
        editable=bool(line.editable),
        checked=checked_word(line.checked),
        value_length=line.value_length,
        level=line.level,
        expanded=line.expanded,
        selected=bool(line.selected),
        required=bool(line.required),
        invalid=bool(line.invalid),
        focused=bool(line.focused),
        in_viewport=not line.outside,
        hidden=bool(line.hidden),
        name_unseen=bool(line.unseen),
        repaired=bool(line.repaired),
        label_of_control=bool(line.label_of_control),
        options=line.options,
        option_count=line.option_count or len(line.options),
    )


def nodes_of(lines: Iterable[Line], frame: str) -> tuple[Node, ...]:
    """Lines as nodes of frame `frame`."""
    return tuple(node_of(line, frame) for line in lines)
