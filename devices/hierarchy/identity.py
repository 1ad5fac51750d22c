"""Whether a node seen in one hierarchy is there in another one.

UI Automator gives nodes no lasting name, so identity is argued from what a person could check: the same kind of thing
at the same place in the structure, called the same, on the same screen. What changes elsewhere does not matter; what
cannot be told apart is not found.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from devices.hierarchy.tree import Node, Tree

_TICKING = re.compile(r"^[\s\d.,:;%/+\-]*\d[\s\d.,:;%/+\-]*([AaPp]\.?[Mm]\.?|[a-zA-Z]{1,3})?$")
_DIGITS = re.compile(r"\d+")
_SYSTEM_UI = "com.android.systemui"
_SAME_WORDS = 0.5
_SAME_BOXES = 0.9

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Sight:
    """A tree with what identity needs of it, computed once."""

    tree: Tree

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Per node: package, class, resource id and a hash of the chain of ancestors."""
        chains: list[int] = []
        keys = []
        for node in self.tree.nodes:
            above = chains[node.parent] if node.parent >= 0 else 0
            keys.append((node.package, node.class_name, node.resource_id, above))
            chains.append(hash((above, node.class_name, node.resource_id)))
        return tuple(keys)

    @cached_property
    def by_key(self) -> dict[Key, tuple[int, ...]]:
        """Indexes of the nodes that share a key."""
        groups: defaultdict[Key, list[int]] = defaultdict(list)
        for index, key in enumerate(self.keys):
            groups[key].append(index)
        return {key: tuple(indexes) for key, indexes in groups.items()}

    @cached_property
    def zones(self) -> tuple[int, ...]:
        """Per node: the index of the nearest scrolling ancestor, -1 outside of all."""
        zones: list[int] = []
        for node in self.tree.nodes:
            above = node.parent
            zones.append(-1 if above < 0 else (above if self.tree.nodes[above].scrollable else zones[above]))
        return tuple(zones)

    @cached_property
    def contexts(self) -> tuple[str, ...]:
        """Per node: the words of the list row around it, empty outside of lists."""
        rows: dict[int, str] = {}
        contexts = []
        for node in self.tree.nodes:
            zone = self.zones[node.index]
            if zone < 0:
                contexts.append("")
                continue
            row = node.index
            while self.tree.nodes[row].parent != zone:
                row = self.tree.nodes[row].parent
            if row not in rows:
                words = [self.tree.nodes[row].shown_text, self.tree.nodes[row].shown_description]
                words += [f"{one.shown_text}{one.shown_description}" for one in self.tree.descendants(row)]
                rows[row] = "\x1f".join(word for word in words if word)
            contexts.append(rows[row])
        return tuple(contexts)

    def words(self, *, but: int, inside_lists: bool) -> frozenset[str]:
        """The lasting words on the screen, without node `but`, ticking numbers and the system bars."""
        return frozenset(
            node.shown_text or node.shown_description
            for node in self.tree.nodes
            if node.index != but
            and node.package != _SYSTEM_UI
            and (inside_lists or self.zones[node.index] < 0)
            and (node.shown_text or node.shown_description)
            and not _TICKING.match(node.shown_text or node.shown_description)
        )

    @cached_property
    def boxes(self) -> frozenset[tuple[object, ...]]:
        """Where what kind of thing is."""
        return frozenset(
            (node.class_name, node.resource_id, node.bounds) for node in self.tree.nodes if node.package != _SYSTEM_UI
        )


def find(old: Sight, index: int, new: Sight) -> int | None:
    """The index in `new` of the node that `index` names in `old`, None when it is not there or cannot be told apart."""
    if old.tree is new.tree:
        return index
    key = old.keys[index]
    candidates = new.by_key.get(key, ())
    if not candidates:
        return None
    found = _same_name(old, index, new, candidates)
    if found is None:
        found = _same_place(old, index, new, candidates)
    if found is None or not _same_screen(old, index, new, found):
        return None
    return found


def _same_name(old: Sight, index: int, new: Sight, candidates: tuple[int, ...]) -> int | None:
    """The one candidate with the same name, told from its namesakes by its row or, if nothing moved, its place."""
    name = (old.tree.labels[index], old.contexts[index])
    before = [i for i in old.by_key[old.keys[index]] if (old.tree.labels[i], old.contexts[i]) == name]
    after = [i for i in candidates if (new.tree.labels[i], new.contexts[i]) == name]
    if len(before) == 1 and len(after) == 1:
        unnamed = not old.tree.labels[index] and not old.tree.nodes[index].resource_id
        return None if unnamed and not _unmoved(old, index, new, after[0]) else after[0]
    if len(before) == len(after) and all(_unmoved(old, i, new, j) for i, j in zip(before, after, strict=True)):
        return after[before.index(index)]
    return None


def _same_place(old: Sight, index: int, new: Sight, candidates: tuple[int, ...]) -> int | None:
    """The one candidate whose name only ticked on, or whose value a person typed into, at the same place."""
    node = old.tree.nodes[index]
    pattern = _DIGITS.sub("#", old.tree.labels[index])

    def fits(sight: Sight, other: int) -> bool:
        return node.editable or _DIGITS.sub("#", sight.tree.labels[other]) == pattern

    before = [i for i in old.by_key[old.keys[index]] if fits(old, i)]
    after = [i for i in candidates if fits(new, i)]
    if len(before) == 1 and len(after) == 1 and _unmoved(old, index, new, after[0]):
        return after[0]
    return None


def _same_screen(old: Sight, index: int, new: Sight, found: int) -> bool:
    for inside_lists in (False, True):
        before = old.words(but=index, inside_lists=inside_lists)
        after = new.words(but=found, inside_lists=inside_lists)
        if before and after:
            shared = len(before & after) / min(len(before), len(after))
            if shared >= _SAME_WORDS:
                return True
            if min(len(before), len(after)) > 2:
                return False
            break
    union = old.boxes | new.boxes
    return len(old.boxes & new.boxes) >= _SAME_BOXES * len(union)


def _unmoved(old: Sight, index: int, new: Sight, found: int) -> bool:
    return _box(old.tree.nodes[index]) == _box(new.tree.nodes[found])


def _box(node: Node) -> tuple[int, int] | None:
    """Left and top: a growing label may widen its node to the right and down."""
    return None if node.bounds is None else node.bounds[:2]
