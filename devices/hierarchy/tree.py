"""A UI Automator hierarchy as frozen nodes in document order, and the bounded reader that makes it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from xml.parsers.expat import ExpatError, ParserCreate

from devices.faults import TreeUnavailable

MAX_BYTES, MAX_DEPTH, MAX_NODES = 256 * 1024, 64, 4096
MAX_ATTRIBUTES, MAX_ATTRIBUTE = 32, 16384

Bounds = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels of the rotated display."""

_BOUNDS = re.compile(r"^\[(-?\d{1,6}),(-?\d{1,6})\]\[(-?\d{1,6}),(-?\d{1,6})\]$")
_DOCUMENT = re.compile(rb"(?:<\?xml[^>]*\?>\s*)?<hierarchy\b.*</hierarchy\s*>", re.DOTALL)
_EDITABLE = re.compile(r"(EditText|AutoCompleteTextView|SearchAutoComplete|ExtractEditText)$")
_MASKED = re.compile(r"[•●∙·*]+")
"""What a password field shows in place of its characters."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node; `parent` is an index into the tree's nodes, -1 for a root.

    Raw `text` may be secret: `shown_text` is what may be shown. `hint_told` is whether the dump has an attribute for
    hints, as newer releases write: an empty field's `text` is its hint in all of them.
    """

    index: int
    parent: int
    depth: int
    class_name: str
    resource_id: str
    package: str
    description: str
    text: str = field(repr=False)
    hint: str
    bounds: Bounds | None
    enabled: bool
    clickable: bool
    long_clickable: bool
    focusable: bool
    focused: bool
    scrollable: bool
    checkable: bool
    checked: bool
    selected: bool
    password: bool
    hint_told: bool = True

    @property
    def editable(self) -> bool:
        """Whether a person types into it."""
        return self.password or _EDITABLE.search(self.class_name) is not None

    @property
    def value(self) -> str:
        """What a field holds, never to be shown: its text, unless that is its hint. Empty for all other nodes."""
        return self.text if self.editable and not (self.hint_told and self.text == self.hint) else ""

    @property
    def value_omitted(self) -> bool:
        """Whether a value exists that is never shown."""
        return bool(self.value)

    @property
    def value_unclear(self) -> bool:
        """Whether what looks like a value may be a hint: the dump does not tell them apart."""
        masked = self.password and _MASKED.fullmatch(self.text) is not None
        return bool(self.value) and not self.hint_told and not masked

    @property
    def shown_text(self) -> str:
        """The text that may be shown: none for password and editable fields."""
        return "" if self.editable else self.text

    @property
    def shown_description(self) -> str:
        """The description that may be shown: none for password fields."""
        return "" if self.password else self.description

    @property
    def actionable(self) -> bool:
        """Whether a person could do something with it."""
        return self.clickable or self.long_clickable or self.checkable or self.editable

    @property
    def centre(self) -> tuple[int, int] | None:
        """The middle of its bounds."""
        if self.bounds is None:
            return None
        left, top, right, bottom = self.bounds
        return (left + right) // 2, (top + bottom) // 2


@dataclass(frozen=True)
class Tree:
    """A whole hierarchy. `rotation` counts quarter turns; `warnings` are lines of noise found around the document."""

    nodes: tuple[Node, ...]
    rotation: int
    warnings: tuple[str, ...] = ()

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each node the indexes of its children, in document order."""
        lists: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            if node.parent >= 0:
                lists[node.parent].append(node.index)
        return tuple(tuple(one) for one in lists)

    def ancestors(self, index: int) -> Iterator[Node]:
        """The node's ancestors, nearest first."""
        parent = self.nodes[index].parent
        while parent >= 0:
            yield self.nodes[parent]
            parent = self.nodes[parent].parent

    def descendants(self, index: int) -> Iterator[Node]:
        """The nodes below, in document order."""
        depth = self.nodes[index].depth
        for node in self.nodes[index + 1 :]:
            if node.depth <= depth:
                return
            yield node

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What a person would call each node: its own words, else for an actionable node the words inside it."""
        return tuple(self._label(node) for node in self.nodes)

    def _label(self, node: Node) -> str:
        own = node.shown_text or node.shown_description
        if own or not node.actionable:
            return own or (node.hint if node.editable else "")
        if node.editable:
            return node.hint
        inner = []
        for below in self.descendants(node.index):
            words = below.shown_text or below.shown_description
            if words:
                inner.append(words)
            if len(inner) == 4:
                break
        return " / ".join(inner)

    @cached_property
    def values_unclear(self) -> bool:
        """Whether a field's value may be its hint."""
        return any(node.value_unclear for node in self.nodes)

    @cached_property
    def focused_editable(self) -> Node | None:
        """The field that would receive typed text."""
        return next((node for node in self.nodes if node.focused and node.editable), None)


def read_dump(output: bytes) -> Tree:
    """Find the document in what the dump command wrote, and read it within bounds.

    Raises:
        TreeUnavailable: reason tree_not_idle, tree_unavailable (no document or an empty one) or tree_hostile.
    """
    found = _DOCUMENT.search(output)
    if found is None:
        words = output[:400].decode("utf-8", "replace").strip()
        reason = "tree_not_idle" if "idle state" in words else "tree_unavailable"
        raise TreeUnavailable(reason, "the dump holds no document", evidence=words)
    if found.end() - found.start() > MAX_BYTES:
        raise _hostile(f"more than {MAX_BYTES} bytes")
    around = (output[: found.start()] + b"\n" + output[found.end() :]).decode("utf-8", "replace")
    noise = (line.strip()[:200] for line in around.splitlines())
    reader = _Reader()
    parser = ParserCreate()
    # Entities need a document type, and none is let in.
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = reader.begin, reader.end
    try:
        parser.Parse(found[0], True)  # noqa: FBT003  # positional only
    except ExpatError as broken:
        raise TreeUnavailable("tree_unavailable", f"broken XML: {broken}") from broken
    if not reader.nodes:
        raise TreeUnavailable("tree_unavailable", "the hierarchy has no nodes")
    warnings = tuple(line for line in noise if line and not line.startswith("UI hierchary dumped to"))
    return Tree(tuple(reader.nodes), reader.rotation, warnings[:8])


def _hostile(detail: str) -> TreeUnavailable:
    return TreeUnavailable("tree_hostile", f"the hierarchy is refused: {detail}")


def _refuse_doctype(*_declared: object) -> None:
    raise _hostile("a document type")


class _Reader:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.rotation = 0
        self._open: list[int] = []
        self._depth = 0

    def begin(self, name: str, attrs: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _hostile(f"deeper than {MAX_DEPTH}")
        if len(attrs) > MAX_ATTRIBUTES or any(len(value) > MAX_ATTRIBUTE for value in attrs.values()):
            raise _hostile("too many or too long attributes")
        if name == "hierarchy":
            turns = attrs.get("rotation", "0")
            self.rotation = int(turns) % 4 if turns.isdigit() else 0
        elif name == "node":
            if len(self.nodes) >= MAX_NODES:
                raise _hostile(f"more than {MAX_NODES} nodes")
            self.nodes.append(self._node(attrs))
        self._open.append(len(self.nodes) - 1 if name == "node" else -1)

    def end(self, _name: str) -> None:
        self._depth -= 1
        self._open.pop()

    def _node(self, attrs: dict[str, str]) -> Node:
        def flag(key: str) -> bool:
            return attrs.get(key) == "true"

        parent = next((index for index in reversed(self._open) if index >= 0), -1)
        return Node(
            index=len(self.nodes),
            parent=parent,
            depth=0 if parent < 0 else self.nodes[parent].depth + 1,
            class_name=attrs.get("class", ""),
            resource_id=attrs.get("resource-id", ""),
            package=attrs.get("package", ""),
            description=attrs.get("content-desc", ""),
            text=attrs.get("text", ""),
            hint=attrs.get("hint", ""),
            bounds=_bounds(attrs.get("bounds", "")),
            enabled=attrs.get("enabled", "true") == "true",
            clickable=flag("clickable"),
            long_clickable=flag("long-clickable"),
            focusable=flag("focusable"),
            focused=flag("focused"),
            scrollable=flag("scrollable"),
            checkable=flag("checkable"),
            checked=flag("checked"),
            selected=flag("selected"),
            password=flag("password"),
            hint_told="hint" in attrs,
        )


def _bounds(text: str) -> Bounds | None:
    match = _BOUNDS.fullmatch(text)
    if match is None:
        return None
    left, top, right, bottom = (int(part) for part in match.groups())
    return left, top, right, bottom
