"""The point at which a tap reaches a node and nothing else."""

from devices.faults import TargetRefused
from devices.geometry import Screen
from devices.hierarchy.tree import Bounds, Node, Tree


def point_on(tree: Tree, index: int, screen: Screen) -> tuple[int, int]:
    """A point of the rotated display that belongs to the node: its visible middle, or a free spot near it.

    Raises:
        TargetRefused: offscreen (scroll first), or covered by something else that takes taps.
    """
    node = tree.nodes[index]
    visible = _visible(tree, node, screen)
    if visible is None:
        raise TargetRefused("offscreen", "the target is outside the visible area; scroll to it")
    spots = _spots(visible)
    owners = [_owner_at(tree, node, x, y) for x, y in spots]
    for spot, owner in zip(spots, owners, strict=True):
        if owner is None:
            return spot
    if any(above.index == index for owner in owners if owner for above in tree.ancestors(owner.index)):
        return spots[0]  # filled by parts of its own: what a person would tap is the same thing
    raise TargetRefused("covered", "another element lies over the target")


def _visible(tree: Tree, node: Node, screen: Screen) -> Bounds | None:
    width, height = screen.size
    area: Bounds | None = _cut(node.bounds, (0, 0, width, height))
    for above in tree.ancestors(node.index):
        if above.scrollable:
            area = _cut(area, above.bounds)
    return area


def _cut(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        return one
    left, top = max(one[0], other[0]), max(one[1], other[1])
    right, bottom = min(one[2], other[2]), min(one[3], other[3])
    return (left, top, right, bottom) if left < right and top < bottom else None


def _spots(area: Bounds) -> tuple[tuple[int, int], ...]:
    left, top, right, bottom = area
    steps = (4, 2, 6, 1, 7)
    columns = [left + (right - left) * step // 8 for step in steps]
    rows = [top + (bottom - top) * step // 8 for step in steps]
    return tuple((x, y) for y in rows for x in columns)


def _owner_at(tree: Tree, target: Node, x: int, y: int) -> Node | None:
    """What would take a tap there in the target's place: the last thing drawn there that takes taps."""
    topmost: Node | None = None
    for node in tree.nodes:
        if node.bounds is None or not (node.clickable or node.checkable or node.editable):
            continue
        left, top, right, bottom = node.bounds
        if left <= x < right and top <= y < bottom:
            topmost = node
    if topmost is None or topmost.index == target.index:
        return None
    return None if any(above.index == topmost.index for above in tree.ancestors(target.index)) else topmost
