"""What changed between two snapshots, as lines for a reader."""

from dataclasses import dataclass

from devices.hierarchy.identity import Sight
from devices.hierarchy.outline import OUTLINE_BYTES, line_of, outlined
from devices.hierarchy.snapshots import Snapshot
from devices.hierarchy.tree import Tree


@dataclass(frozen=True, slots=True)
class Diff:
    """Lines `+` appeared, `-` went, `~` changed; `omitted` counts lines left out; `replaced` means another screen."""

    lines: tuple[str, ...]
    omitted: int
    replaced: bool

    @property
    def text(self) -> str:
        """The lines joined, `no visible change` when there are none."""
        if not self.lines and not self.omitted:
            return "no visible change"
        tail = (f"(+{self.omitted} more lines)",) if self.omitted else ()
        return "\n".join(self.lines + tail)


def between(before: Snapshot | None, after: Snapshot, *, limit: int = OUTLINE_BYTES) -> Diff:
    """The diff in reading order; when most of the screen is new, the new screen's outline stands for it."""
    new = _outlined(after)
    old = {} if before is None else _outlined(before)
    kept = old.keys() & new.keys()
    if before is None or (len(kept) * 2 < len(new) and len(new) > 2) or before.focus.label != after.focus.label:
        whole = after.outline(limit=limit)
        return Diff(whole.lines, whole.omitted, replaced=True)
    lines = []
    for ref in (ref for ref in new if ref in old):
        here, there = before.tree.nodes[old[ref]], after.tree.nodes[new[ref]]
        changed = here.value != there.value
        if changed or line_of(before.tree, old[ref], None) != line_of(after.tree, new[ref], None):
            lines.append(f"~ [{ref}] {line_of(after.tree, new[ref], None, changed=changed)}")
    lines += [f"+ {line_of(after.tree, index, ref)}" for ref, index in new.items() if ref not in old]
    lines += [f"- {line_of(before.tree, index, None)}" for ref, index in old.items() if ref not in new]
    shown, used = [], 40
    for line in lines:
        used += len(line.encode()) + 1
        if used > limit:
            break
        shown.append(line)
    return Diff(tuple(shown), len(lines) - len(shown), replaced=False)


def same_picture(one: Tree, other: Tree) -> bool:
    """Whether two looks show the same, numbers that tick aside: then the screen has settled."""
    return one is other or _shape(one) == _shape(other)


def _outlined(snapshot: Snapshot) -> dict[int, int]:
    """The refs that have a line, each with its node."""
    return {snapshot.refs[index]: index for index in outlined(snapshot.tree)}


def _shape(tree: Tree) -> tuple[object, ...]:
    sight = Sight(tree)
    return tuple(
        (
            sight.keys[node.index],
            _still(node.shown_text or node.value),
            node.shown_description,
            node.checked,
            node.enabled,
            node.focused,
        )
        for node in tree.nodes
    )


def _still(text: str) -> str:
    return "".join("#" if char.isdigit() else char for char in text)
