"""Snapshots with refs: what was seen, under which numbers, and where a ref's node is now."""

import itertools
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass

import msgspec

from devices.faults import TargetRefused
from devices.focus import Focus
from devices.geometry import Screen
from devices.hierarchy import identity, outline
from devices.hierarchy.identity import Sight
from devices.hierarchy.tree import Bounds, Node, Tree

_KEPT = 32
_LAST_REF = 65000


@dataclass(frozen=True, slots=True)
class Element:
    """One node as data, with what must not be shown left out. `id` is its ref; `parent` is a ref or None."""

    id: int
    parent: int | None
    class_name: str
    resource_id: str
    package: str
    description: str
    text: str
    bounds: Bounds | None
    enabled: bool
    clickable: bool
    focused: bool
    scrollable: bool
    checked: bool
    value_omitted: bool


@dataclass(frozen=True)
class Snapshot:
    """One look at the hierarchy.

    `refs[i]` is the number of node i; numbers carry over to the next snapshot for nodes that are still there.
    `taken_ms` is wall time, `at` is monotonic: when the look was complete. `frames` is how many frames the device
    had shown then, None when it drew or does not say.
    """

    id: str
    generation: str
    sight: Sight
    refs: tuple[int, ...]
    focus: Focus
    screen: Screen
    taken_ms: int
    at: float
    frames: int | None
    settled: bool = True

    @property
    def tree(self) -> Tree:
        """The nodes."""
        return self.sight.tree

    def ref_of(self, index: int) -> int:
        """The ref of a node."""
        return self.refs[index]

    def index_of(self, ref: int) -> int | None:
        """The node of a ref."""
        try:
            return self.refs.index(ref)
        except ValueError:
            return None

    def outline(self, *, query: str = "", limit: int = outline.OUTLINE_BYTES) -> outline.Outline:
        """The short rendering."""
        return outline.render(self.tree, self.ref_of, query=query, limit=limit)

    def elements(
        self, *, max_nodes: int = 250, max_bytes: int = 32768, query: str = ""
    ) -> tuple[tuple[Element, ...], bool]:
        """The first nodes within both bounds (those that fit `query`, if any) and whether some were left out.

        `max_bytes` counts them as JSON.
        """
        wanted = outline.matching(self.tree, query) if query else range(len(self.tree.nodes))
        kept: list[Element] = []
        used = 2
        for index in wanted[:max_nodes]:
            element = self._element(self.tree.nodes[index])
            used += len(msgspec.json.encode(element)) + 1
            if used > max_bytes:
                break
            kept.append(element)
        return tuple(kept), len(kept) < len(wanted)

    def _element(self, node: Node) -> Element:
        return Element(
            id=self.refs[node.index],
            parent=self.refs[node.parent] if node.parent >= 0 else None,
            class_name=node.class_name[:256],
            resource_id=node.resource_id[:256],
            package=node.package[:256],
            description=_cut(node.shown_description),
            text=_cut(node.shown_text),
            bounds=node.bounds,
            enabled=node.enabled,
            clickable=node.clickable,
            focused=node.focused,
            scrollable=node.scrollable,
            checked=node.checked,
            value_omitted=node.value_omitted,
        )


class SnapshotBook:
    """The last snapshots of one generation of one device."""

    def __init__(self, generation: str, ids: "itertools.count[int]") -> None:
        self.generation = generation
        self._ids = ids
        self._kept: OrderedDict[str, Snapshot] = OrderedDict()
        self._next_ref = 1
        self.newest: Snapshot | None = None

    def add(
        self,
        tree: Tree,
        focus: Focus,
        screen: Screen,
        *,
        taken_ms: int,
        at: float,
        frames: int | None,
        settled: bool,
        shown: bool = True,
    ) -> Snapshot:
        """Number the nodes; keep the snapshot under its id if it is `shown` to a caller, who may then use its refs.

        The one that was not used for longest goes when there are too many.
        """
        sight = Sight(tree)
        snapshot = Snapshot(
            id=f"s{next(self._ids)}",
            generation=self.generation,
            sight=sight,
            refs=self._number(sight),
            focus=focus,
            screen=screen,
            taken_ms=taken_ms,
            at=at,
            frames=frames,
            settled=settled,
        )
        self.newest = snapshot
        if shown:
            self._kept[snapshot.id] = snapshot
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return snapshot

    def get(self, snapshot_id: str) -> Snapshot:
        """A kept snapshot.

        Raises:
            TargetRefused: reason unknown_snapshot.
        """
        snapshot = self._kept.get(snapshot_id)
        if snapshot is None:
            raise TargetRefused("unknown_snapshot", "the snapshot is not kept any more; take a new one")
        self._kept.move_to_end(snapshot_id)
        return snapshot

    def _number(self, sight: Sight) -> tuple[int, ...]:
        """Carry numbers over from the newest snapshot for nodes of the same name, then for those that ticked on."""
        last = self.newest
        free: defaultdict[object, deque[int]] = defaultdict(deque)
        refs: list[int] = [0] * len(sight.tree.nodes)
        if last is not None:
            for naming in (_exact, _loose):
                free.clear()
                taken = set(refs)
                for index, ref in enumerate(last.refs):
                    if ref not in taken:
                        free[naming(last.sight, index)].append(ref)
                for index in range(len(refs)):
                    if not refs[index] and (queue := free.get(naming(sight, index))):
                        refs[index] = queue.popleft()
        used = set(refs)
        for index in range(len(refs)):
            if not refs[index]:
                while self._next_ref in used:
                    self._next_ref = self._next_ref % _LAST_REF + 1
                refs[index] = self._next_ref
                used.add(self._next_ref)
                self._next_ref = self._next_ref % _LAST_REF + 1
        return tuple(refs)


def locate(snapshot: Snapshot, ref: int, now: Snapshot) -> int:
    """The index in `now` of the node that `ref` named in `snapshot`.

    Raises:
        TargetRefused: unknown_ref, or stale_ref when the node is gone or cannot be told from another.
    """
    index = snapshot.index_of(ref)
    if index is None:
        raise TargetRefused("unknown_ref", f"snapshot {snapshot.id} has no ref {ref}")
    if not _same_window(snapshot.focus, now.focus):
        raise TargetRefused("stale_ref", f"another window has the focus: {now.focus.label}", fields={"ref": ref})
    found = identity.find(snapshot.sight, index, now.sight)
    if found is None:
        raise TargetRefused("stale_ref", "its node is gone or cannot be told apart", fields={"ref": ref})
    return found


def _same_window(before: Focus, after: Focus) -> bool:
    known = {"activity", "anr_dialog", "crash_dialog", "permission_dialog"}
    if before.kind not in known or after.kind not in known:
        return True
    return (before.kind, before.package, before.activity) == (after.kind, after.package, after.activity)


def _exact(sight: Sight, index: int) -> object:
    return sight.keys[index], sight.tree.labels[index], sight.contexts[index]


def _loose(sight: Sight, index: int) -> object:
    return sight.keys[index], sight.tree.nodes[index].bounds


def _cut(text: str) -> str:
    raw = text.encode()
    return text if len(raw) <= 512 else raw[:509].decode("utf-8", "ignore") + "…"
