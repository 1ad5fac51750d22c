"""The short rendering of snapshots and observations.

One line per thing, bounded, impossible to forge from page text. Pure.
"""

import unicodedata
from collections.abc import Iterable

from browser.values import Diff, Found, Node, Observation, Snapshot

OUTLINE_BYTES = 7_200
_PLURALS = {
    "checkbox": "checkboxes",
    "textbox": "textboxes",
    "combobox": "comboboxes",
    "switch": "switches",
    "text": "texts",
    "searchbox": "searchboxes",
}


def shortened(name: str, most: int) -> str:
    """A name of at most so many characters; one that was cut says so."""
    return name if len(name) <= most else name[: most - 1] + "…"


def quoted(name: str, most: int = 120) -> str:
    """A name as one quoted line.

    Quotes, control, format (bidi, zero width) and line separating characters escaped, long ones cut.
    """
    cut = shortened(name, most)
    if cut.isascii() and cut.isprintable() and '"' not in cut and "\\" not in cut:
        return f'"{cut}"'
    return '"' + "".join(_escaped(character) for character in cut) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\u200d" or not unicodedata.category(character).startswith(("C", "Zl", "Zp")):
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"


def node_line(node: Node) -> str:
    """One node: ref, role, name, then only the states that matter."""
    parts = [node.ref, f"h{node.level}" if node.role == "heading" and node.level else node.role]
    if node.name:
        parts.append(("~" if node.name_unseen else "") + quoted(node.name, 160 if node.role == "text" else 100))
    words = [
        word
        for word, holds in (
            ("disabled", not node.enabled),
            ("checked", node.checked == "true"),
            ("mixed", node.checked == "mixed"),
            ("expanded", node.expanded is True),
            ("collapsed", node.expanded is False),
            ("selected", node.selected),
            ("required", node.required),
            ("invalid", node.invalid),
            ("focused", node.focused),
            ("HIDDEN", node.hidden),
        )
        if holds
    ]
    if node.value_length:
        words.append(f"{node.value_length} chars")
    if words:
        parts.append(f"[{', '.join(words)}]")
    if node.options:
        more = node.option_count - len(node.options)
        parts.append(
            "options: " + ", ".join(quoted(option, 40) for option in node.options) + (f" +{more}" if more > 0 else "")
        )
    return " ".join(parts)


def _count(role: str, number: int) -> str:
    return f"{number} {role if number == 1 else _PLURALS.get(role, role + 's')}"


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(_count(role, number) for role, number in sorted(counts, key=lambda pair: -pair[1]) if number)


class _Page:
    """Lines under a byte budget."""

    def __init__(self, budget: int) -> None:
        self.lines: list[str] = []
        self.left = budget

    def add(self, line: str) -> bool:
        size = len(line.encode("utf-8", "replace")) + 1
        if size > self.left:
            return False
        self.lines.append(line)
        self.left -= size
        return True


def snapshot_outline(snapshot: Snapshot, budget: int = OUTLINE_BYTES) -> str:
    """A snapshot as text of at most `budget` UTF-8 bytes.

    Viewport first, then controls outside it, then what was left out.
    """
    page = _Page(budget - 400)
    page.add(f"{snapshot.snapshot_id} {quoted(snapshot.title, 80)} {snapshot.url[:200]}")
    top = snapshot.scroll[1]
    if snapshot.full_height > snapshot.viewport.height:
        page.add(f"viewport y {top:.0f}-{top + snapshot.viewport.height:.0f} of {snapshot.full_height}")
    for frame in snapshot.frames[1:]:
        page.add(f"frame {frame.key} in {frame.parent} {frame.url[:120]}")
    nodes = [node for node in snapshot.nodes if not node.label_of_control]
    inside = [node for node in nodes if node.in_viewport]
    outside = [node for node in nodes if not node.in_viewport]
    shown: dict[str, int] = {}
    full = False
    for group, head in ((inside, ""), (outside, "outside the viewport:")):
        if not group or full:
            continue
        if head and not page.add(head):
            break
        for node in group:
            if not page.add(node_line(node)):
                full = True
                break
            shown[node.role] = shown.get(node.role, 0) + 1
    labels = sum(1 for node in snapshot.nodes if node.label_of_control)
    rest = {
        role: number - shown.get(role, 0) - (labels if role == "label" else 0)
        for role, number in snapshot.counts.items()
    }
    left_out = _counted((role, number) for role, number in rest.items() if number > 0)
    if left_out:
        page.left += 400
        page.add(f"not shown: {left_out}{' or more' if snapshot.cut else ''}; scroll, or query by text or role"[:390])
    elif snapshot.cut:
        page.left += 400
        page.add("not shown: more (the walk was cut); scroll, or query by text or role")
    if snapshot.omitted_frames:
        page.left += 60
        page.add(f"not shown: {_count('frame', snapshot.omitted_frames)}")
    return "\n".join(page.lines)


def found_outline(found: Found, budget: int = OUTLINE_BYTES) -> str:
    """The answer to a query as text of at most `budget` bytes."""
    page = _Page(budget - 100)
    shown = 0
    page.add(f"{found.snapshot_id} {found.total}{' or more' if found.cut else ''} found")
    for node in found.nodes:
        if not page.add(node_line(node)):
            break
        shown += 1
    if shown < found.total:
        page.left += 100
        page.add(f"not shown: {found.total - shown}; narrow the query")
    return "\n".join(page.lines)


def diff_lines(diff: Diff) -> list[str]:
    """A diff as lines: + added, ~ changed, - removed."""
    lines = [f"+ {node_line(node)}" for node in diff.added if not node.label_of_control]
    lines += [f"~ {node_line(node)}" for node in diff.changed]
    lines += [f"- {node.ref} {node.role} {quoted(node.name, 60)}" for node in diff.removed if not node.label_of_control]
    if diff.counts:
        lines.append("totals: " + ", ".join(f"{role} {number:+d}" for role, number in sorted(diff.counts.items())))
    if diff.omitted:
        lines.append(f"not shown: {diff.omitted} more changes; take a snapshot")
    if diff.focus:
        lines.append(f"focus: {diff.focus}")
    return lines


def observation_outline(seen: Observation, budget: int = 4_000) -> str:
    """An observation as text of at most `budget` bytes; a fresh document brings its own outline."""
    page = _Page(budget)
    page.add(
        ("settled" if seen.settled else "NOT settled")
        + f" after {seen.elapsed_ms:.0f} ms"
        + (f", {seen.snapshot_id}" if seen.snapshot_id else "")
    )
    if seen.navigation is not None:
        page.add(f"navigated: {seen.navigation.url[:300]} ({seen.navigation.navigation_id})")
    if seen.dialog:
        page.add(f"dialog open: {seen.dialog}")
    for word, names in (("popup", seen.opened), ("file chooser", seen.choosers), ("download", seen.downloads)):
        for name in names:
            page.add(f"{word}: {name}")
    for url in seen.refused_documents:
        page.add(f"refused: {url[:200]}")
    for message in seen.console_errors:
        page.add(f"console error: {quoted(message, 160)}")
    if seen.closed:
        page.add("the page closed itself")
    if seen.pending_requests:
        page.add(f"{_count('request', seen.pending_requests)} pending")
    if seen.page is not None:
        page.add(snapshot_outline(seen.page, max(600, page.left - 200)))
    for line in diff_lines(seen.diff):
        if not page.add(line):
            page.left += 60
            page.add("not shown: more changes; take a snapshot")
            break
    return "\n".join(page.lines)
