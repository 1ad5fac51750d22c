"""The node tree of a window and its UI Automator dump."""

from collections.abc import Iterator
from dataclasses import dataclass, field

Bounds = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """One view: bounds are left, top, right, bottom in display pixels of the current rotation.

    `key` names the item behind it, `look` says how it is drawn; both never reach a dump.
    """

    name: str
    bounds: Bounds
    text: str = ""
    id: str = ""
    description: str = ""
    hint: str = ""
    checkable: bool = False
    checked: bool = False
    clickable: bool = False
    enabled: bool = True
    focusable: bool = False
    focused: bool = False
    scrollable: bool = False
    long_clickable: bool = False
    password: bool = False
    selected: bool = False
    look: str = ""
    key: str = ""
    colour: str = ""
    children: tuple["Node", ...] = field(default=())

    def walk(self) -> Iterator["Node"]:
        """This node and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def contains(self, x: int, y: int) -> bool:
        """Whether a point lies inside."""
        left, top, right, bottom = self.bounds
        return left <= x < right and top <= y < bottom

    def hit(self, x: int, y: int) -> "Node | None":
        """The deepest keyed node under a point."""
        if not self.contains(x, y):
            return None
        for child in reversed(self.children):
            if (found := child.hit(x, y)) is not None:
                return found
        return self if self.key else None


@dataclass(frozen=True, slots=True)
class Window:
    """A window: its title as `dumpsys window` writes it, the package of its views, and its tree."""

    title: str
    package: str
    root: Node
    secure: bool = False
    hierarchy: bool = True


_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\n": "&#10;",
    "\r": "&#13;",
    "\t": "&#9;",
}


def _attribute(text: str) -> str:
    out: list[str] = []
    for character in text:
        code = ord(character)
        if character in _ESCAPES:
            out.append(_ESCAPES[character])
        elif code < 0x20 or 0xD800 <= code <= 0xDFFF or code in {0xFFFE, 0xFFFF}:
            out.append(".")  # what UI Automator puts for characters that XML forbids
        else:
            out.append(character)
    return "".join(out)


def dump(window: Window, *, rotation: int, api: int) -> str:
    """The window as UI Automator writes it; newer releases add `drawing-order` and `hint`."""
    parts = [f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"{rotation}\">"]
    root = window.root if window.hierarchy else _bare(window.root)
    _write(parts, root, 0, window.package, newer=api >= 33)
    parts.append("</hierarchy>")
    return "".join(parts)


def _bare(root: Node) -> Node:
    return Node(root.name, root.bounds)


def _write(parts: list[str], node: Node, index: int, package: str, *, newer: bool) -> None:
    flags = (
        ("checkable", node.checkable),
        ("checked", node.checked),
        ("clickable", node.clickable),
        ("enabled", node.enabled),
        ("focusable", node.focusable),
        ("focused", node.focused),
        ("scrollable", node.scrollable),
        ("long-clickable", node.long_clickable),
        ("password", node.password),
        ("selected", node.selected),
    )
    left, top, right, bottom = node.bounds
    full_id = node.id if not node.id or ":" in node.id else f"{package}:id/{node.id}"
    parts.append(
        f'<node index="{index}" text="{_attribute(node.text)}" resource-id="{_attribute(full_id)}" class="{node.name}" '
        f'package="{package}" content-desc="{_attribute(node.description)}" '
        + " ".join(f'{name}="{"true" if value else "false"}"' for name, value in flags)
        + f' bounds="[{left},{top}][{right},{bottom}]"'
        + (f' drawing-order="{index + 1}" hint="{_attribute(node.hint)}"' if newer else "")
    )
    if not node.children:
        parts.append(" />")
        return
    parts.append(">")
    for position, child in enumerate(node.children):
        _write(parts, child, position, package, newer=newer)
    parts.append("</node>")
