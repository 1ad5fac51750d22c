"""The short outline: what a person could act on or read, one line each, with its ref and state."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from devices.hierarchy.tree import Node, Tree

OUTLINE_BYTES = 1000
_NAME_LENGTH = 64
_SECRET = re.compile(r"passw|secret|token|csrf|credential|one.?time|otp\b|\bcvv|\bcc[-_ ]|\bpin\b", re.IGNORECASE)
"""Names of fields whose length is not told either."""
_ROLES: tuple[tuple[str, str], ...] = (
    ("ImageButton", "button"),
    ("FloatingActionButton", "button"),
    ("RadioButton", "radio"),
    ("ToggleButton", "toggle"),
    ("Button", "button"),
    ("CheckBox", "checkbox"),
    ("CheckedTextView", "checkbox"),
    ("Switch", "switch"),
    ("SwitchCompat", "switch"),
    ("SeekBar", "slider"),
    ("ProgressBar", "progress"),
    ("Spinner", "picker"),
    ("ImageView", "image"),
    ("Image", "image"),
    ("TextView", "text"),
    ("WebView", "web"),
    ("RecyclerView", "list"),
    ("ListView", "list"),
    ("GridView", "list"),
    ("ScrollView", "scroll"),
    ("ViewPager", "pager"),
)


@dataclass(frozen=True, slots=True)
class Outline:
    """Rendered lines and how many more there were."""

    lines: tuple[str, ...]
    omitted: int

    @property
    def text(self) -> str:
        """The lines joined; what is left out is counted on a last line."""
        tail = (f"(+{self.omitted} more; narrow with query)",) if self.omitted else ()
        return "\n".join(self.lines + tail)


def role_of(node: Node) -> str:
    """A person's word for what the node is."""
    if node.editable:
        return "field"
    name = node.class_name.rpartition(".")[2]
    for suffix, role in _ROLES:
        if name.endswith(suffix):
            return "button" if role in {"text", "image"} and node.clickable else role
    if node.checkable:
        return "checkbox"
    if node.clickable or node.long_clickable:
        return "button"
    return "scroll" if node.scrollable else "group"


def quoted(name: str, length: int = _NAME_LENGTH) -> str:
    """One line in double quotes; control, bidi and other invisible characters are escaped, long names cut."""
    shown = []
    for char in name[: length + 1]:
        if char in '"\\':
            shown.append(f"\\{char}")
        elif char in "\n\r\t":
            shown.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        elif unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char != "\u200d":
            shown.append(f"\\u{ord(char):04x}" if ord(char) < 65536 else f"\\U{ord(char):08x}")
        else:
            shown.append(char)
    return '"' + "".join(shown[:length]) + ("…" if len(name) > length else "") + '"'


def value_of(node: Node, *, changed: bool = False) -> str:
    """What may be said of a field's value, nothing for other nodes; its length only where it `changed`."""
    if not node.editable:
        return ""
    if not node.value:
        return f"empty, hint {quoted(node.hint)}" if node.hint else "empty"
    state = "filled or hint" if node.value_unclear else "filled"
    if not changed:
        return state
    if node.password:
        return "changed"
    if node.value_unclear or _SECRET.search(f"{node.resource_id} {node.hint} {node.description}"):
        return f"{state}, changed"
    return f"{state}, {len(node.value)} character{'' if len(node.value) == 1 else 's'}"


def line_of(tree: Tree, index: int, ref: int | None, *, changed: bool = False) -> str:
    """One outline line: ref, role, name, states; the length of a field's value where that has `changed`."""
    node = tree.nodes[index]
    words = [f"[{ref}]"] if ref is not None else []
    words.append(role_of(node))
    label = tree.labels[index]
    if label:
        words.append(quoted(label))
    elif node.resource_id:
        words.append("#" + quoted(node.resource_id.rpartition("/")[2])[1:-1])
    states = (
        ("disabled", not node.enabled),
        ("checked", node.checked),
        ("unchecked", node.checkable and not node.checked),
        ("selected", node.selected),
        ("focused", node.focused and node.editable),
        ("password", node.password),
        (value_of(node, changed=changed), node.editable),
    )
    return " ".join(words + [name for name, holds in states if holds])


def outlined(tree: Tree) -> tuple[int, ...]:
    """The nodes worth a line, in document order: actionable ones, and words no line above already says."""
    covered: set[int] = set()
    chosen = []
    for node in tree.nodes:
        spoken = bool(node.shown_text or node.shown_description)
        if node.actionable:
            chosen.append(node.index)
            if not node.editable and not (node.shown_text or node.shown_description):
                covered.update(_first_words(tree, node.index))
        elif (spoken and node.index not in covered) or node.scrollable:
            chosen.append(node.index)
    return tuple(chosen)


def render(tree: Tree, refs: Callable[[int], int | None], *, query: str = "", limit: int = OUTLINE_BYTES) -> Outline:
    """The outline within `limit` bytes; `query` picks from the whole tree instead.

    Lines keep document order; when not all fit, things to act on go first.
    """
    chosen = matching(tree, query) if query else outlined(tree)
    visible = [index for index in chosen if not _empty_box(tree.nodes[index])]
    ranked = sorted(visible, key=lambda index: (not tree.nodes[index].actionable, index))
    kept: dict[int, str] = {}
    used = 40
    for index in ranked:
        line = line_of(tree, index, refs(index))
        size = len(line.encode()) + 1
        if used + size > limit:
            break
        kept[index] = line
        used += size
    return Outline(tuple(kept[index] for index in sorted(kept)), len(visible) - len(kept))


def matching(tree: Tree, query: str) -> tuple[int, ...]:
    """Nodes whose words, role or id hold every word of `query`; `role:` and `id:` narrow a word to one of them."""
    words = query.casefold().split()

    def holds(node: Node) -> bool:
        label, role, name = tree.labels[node.index].casefold(), role_of(node), node.resource_id.casefold()
        for word in words:
            if word.startswith("role:"):
                if role != word[5:]:
                    return False
            elif word.startswith("id:"):
                if word[3:] not in name:
                    return False
            elif word not in label and word not in name and word != role:
                return False
        return True

    hits = [node for node in tree.nodes if holds(node)]
    hit_indexes = {node.index for node in hits}
    # A word inside a button matches both; the button is what one can act on and stands for its own words.
    return tuple(
        node.index
        for node in hits
        if node.actionable
        or not any(above.index in hit_indexes and above.actionable for above in tree.ancestors(node.index))
    )


def _first_words(tree: Tree, index: int) -> tuple[int, ...]:
    spoken = [node.index for node in tree.descendants(index) if node.shown_text or node.shown_description]
    return tuple(spoken[:4])


def _empty_box(node: Node) -> bool:
    return node.bounds is not None and (node.bounds[0] >= node.bounds[2] or node.bounds[1] >= node.bounds[3])
