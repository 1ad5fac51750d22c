"""After an action: wait until the page has come to rest, bounded, and say what changed."""

import msgspec

from browser.errors import BlockedError, ContextGoneError, PageEndedError, UnresponsiveError
from browser.page import Page
from browser.snapshot.lines import Differed, nodes_of
from browser.values import Diff, Navigation, Observation, Snapshot
from browser.world import World

SETTLE_S = 1.5
_REST_CAP_MS = 600
_MOST_CHANGES = 40


class _Rest(msgspec.Struct):
    quiet: bool = False


class Start(msgspec.Struct, frozen=True):
    """Where an action began: the instant, and the address and documents it was aimed at."""

    at: float
    committed: int
    within: int
    worlds: tuple[World, ...]


def begin(page: Page, *worlds: World) -> Start:
    """The account of an action that is about to be dispatched."""
    page.activity.begin()
    return Start(page.clock(), page.activity.committed, page.activity.within, worlds)


async def observe(page: Page, start: Start, budget_s: float = SETTLE_S, *, one_frame: bool = False) -> Observation:
    """What is seen once the page has settled, or at the end of the budget.

    `one_frame` is for text entry: where it changed nothing at all, one frame is enough.
    """
    activity = page.activity
    deadline = start.at + budget_s
    settled = await _quiet(page, start, deadline)
    diff = Diff()
    snapshot: Snapshot | None = None
    snapshot_id: str | None = None
    while not activity.interrupted():
        replaced = activity.committed != start.committed
        try:
            if replaced:
                settled = await _fresh_rest(page, deadline) and settled
                snapshot = await page.snapshot(observation=True)
                snapshot_id = snapshot.snapshot_id
            else:
                parts = await _finish(page, start, deadline, one_frame=one_frame)
                settled = all(part.quiet for _, part in parts) and settled
                diff = _merged(page, parts)
                snapshot_id = page.refs.name(observation=True)
        except (BlockedError, PageEndedError):
            break
        except (UnresponsiveError, ContextGoneError):
            settled = False
        if page.clock() >= deadline or not activity.busy():
            break
        settled = await _quiet(page, start, deadline)  # what the action began only now
    return Observation(
        settled=settled and not activity.busy() and activity.ended is None,
        elapsed_ms=(page.clock() - start.at) * 1000,
        snapshot_id=snapshot_id,
        diff=diff if snapshot is None else Diff(),
        navigation=_navigation(page, start),
        page=snapshot,
        dialog=activity.dialog,
        opened=tuple(activity.opened),
        closed=activity.ended is not None,
        choosers=tuple(activity.choosers),
        downloads=tuple(activity.downloads),
        refused_documents=tuple(activity.refused),
        console_errors=tuple(activity.errors[:5]),
        pending_requests=activity.pending,
    )


def _navigation(page: Page, start: Start) -> Navigation | None:
    if page.activity.committed != start.committed:
        return Navigation(page.navigation_id, page.url, "document")
    if page.activity.within != start.within:
        return Navigation(page.navigation_id, page.url, "within_document")
    return None


async def _quiet(page: Page, start: Start, deadline: float) -> bool:
    """Wait until no navigation, popup or request that the action began is pending; False at the deadline."""
    activity = page.activity
    while not activity.interrupted() and activity.busy():
        if not await activity.wait(deadline - page.clock()):
            return False
    return start.at <= deadline


async def _fresh_rest(page: Page, deadline: float) -> bool:
    """The rest of a document that the action brought."""
    left = max(0.05, deadline - page.clock())
    world = await page.main_world(left)
    rest = world.call("rest", {"capMs": round(min(left, 0.3) * 1000)}, shape=_Rest, deadline_s=left + 2.0)
    attempt = await page.unless_blocked(rest, left + 2.5)
    page.require_free()
    return attempt.done and attempt.result().quiet


async def _of(page: Page, world: World, options: dict[str, object], left: float) -> Differed:
    work = world.call("finish", options, shape=Differed, deadline_s=left + 2.0)
    attempt = await page.unless_blocked(work, left + 2.5)
    page.require_free()
    if not attempt.done:
        raise UnresponsiveError("page_unresponsive", call="settle")
    return attempt.result()


async def _finish(page: Page, start: Start, deadline: float, *, one_frame: bool) -> list[tuple[World, Differed]]:
    left = max(0.0, deadline - page.clock())
    parts = []
    for world in start.worlds:
        if page.frames.world(world.frame_id) is not world:
            continue
        options: dict[str, object] = {
            "capMs": max(1, round(min(left * 1000, _REST_CAP_MS))),
            "oneFrame": one_frame,
            "base": page.refs.base(page.frames.key(world.frame_id)),
            "most": 200,
            "mostChanges": _MOST_CHANGES,
        }
        part = await _of(page, world, options, left)
        if part.hosts and (part.added or part.changed):
            await page.walk(world, page.frames.key(world.frame_id))
            part = await _of(page, world, options, left)
        parts.append((world, part))
    return parts


def _merged(page: Page, parts: list[tuple[World, Differed]]) -> Diff:
    merged = Diff()
    for world, part in parts:
        frame = page.frames.key(world.frame_id)
        added, changed = nodes_of(part.added, frame), nodes_of(part.changed, frame)
        if not page.admit(world, frame, added + changed, part.next):
            continue
        counts = dict(merged.counts)
        for role, number in part.delta.items():
            counts[role] = counts.get(role, 0) + number
        merged = Diff(
            added=merged.added + added,
            changed=merged.changed + changed,
            removed=merged.removed + nodes_of(part.removed, frame),
            counts=counts,
            omitted=merged.omitted + part.omitted,
            focus=f"{frame}-e{part.focus}" if part.focus else merged.focus,
        )
    return merged
