"""After an action: wait until the page has come to rest, bounded, and say what changed."""

import asyncio

import msgspec

from browser.errors import BlockedError, PageEndedError, UnresponsiveError
from browser.page import Page
from browser.snapshot.lines import Differed, nodes_of
from browser.values import Diff, Navigation, Observation
from browser.wire import ContextGoneError
from browser.world import World

SETTLE_S = 1.5
_REST_CAP_MS = 600


class _Rest(msgspec.Struct):
    quiet: bool = False
    ms: float = 0
    changed: bool = False


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


async def observe(page: Page, start: Start, budget_s: float = SETTLE_S, *, most: int = 200) -> Observation:
    """What is seen once the page has settled, or at the end of the budget."""
    settled = await _settle(page, start, start.at + budget_s)
    activity = page.activity
    navigation = _navigation(page, start)
    diff = Diff()
    snapshot = None
    snapshot_id = None
    if activity.dialog is None and activity.ended is None:
        try:
            if activity.committed != start.committed:
                snapshot = await page.snapshot(most=most, observation=True)
                snapshot_id = snapshot.snapshot_id
            else:
                snapshot_id, diff = await _difference(page, start)
        except (BlockedError, PageEndedError, UnresponsiveError, ContextGoneError):
            settled = False
    return Observation(
        settled=settled,
        elapsed_ms=(page.clock() - start.at) * 1000,
        snapshot_id=snapshot_id,
        diff=diff,
        navigation=navigation,
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


async def _settle(page: Page, start: Start, deadline: float) -> bool:
    activity = page.activity
    while not activity.interrupted():
        left = deadline - page.clock()
        if left <= 0:
            return False
        if activity.busy() or page.expects_popup():
            await activity.wait(left)
            continue
        replaced = activity.committed != start.committed
        worlds = [world for world in start.worlds if page.frames.world(world.frame_id) is world] if not replaced else []
        if not worlds:
            fresh = await page.frames.main_world(left)
            if fresh is None:
                return False
            worlds = [fresh]
        cap = max(1, round(min(left * 1000, _REST_CAP_MS if not replaced else 300)))
        attempts = [
            page.background(world.call("rest", {"capMs": cap}, shape=_Rest, deadline_s=left + 0.5)) for world in worlds
        ]
        while not all(a.done for a in attempts) and not activity.interrupted():
            if not await activity.wait(deadline + 0.2 - page.clock()):
                return False
        if activity.interrupted():
            break
        try:
            rests = [attempt.result() for attempt in attempts]
        except ContextGoneError:
            continue
        except (PageEndedError, UnresponsiveError):
            return False
        if activity.busy() or page.expects_popup():
            continue
        return all(rest.quiet for rest in rests)
    return activity.dialog is not None


async def _difference(page: Page, start: Start) -> tuple[str, Diff]:
    worlds = [world for world in start.worlds if page.frames.world(world.frame_id) is world]
    parts = await asyncio.gather(*(_frame_difference(page, world) for world in worlds))
    merged = Diff()
    for part in parts:
        counts = dict(merged.counts)
        for role, number in part.counts.items():
            counts[role] = counts.get(role, 0) + number
        merged = Diff(
            added=merged.added + part.added,
            changed=merged.changed + part.changed,
            removed=merged.removed + part.removed,
            counts=counts,
            omitted=merged.omitted + part.omitted,
            focus=part.focus or merged.focus,
        )
    return page.refs.name(observation=True), merged


async def _frame_difference(page: Page, world: World) -> Diff:
    frame = page.frames.key(world.frame_id)
    options = {"base": page.refs.base(frame), "most": 200, "mostChanges": 40}
    differed = await world.call("conclude", options, shape=Differed)
    shown = differed.added + differed.changed
    if differed.hosts and any(True for _ in shown):
        await page.walk(world, frame)
    if not page.admit(world, frame, shown, differed.next):
        return Diff()
    return Diff(
        added=nodes_of(differed.added, frame),
        changed=nodes_of(differed.changed, frame),
        removed=nodes_of(differed.removed, frame),
        counts=differed.delta,
        omitted=differed.omitted,
        focus=f"{frame}-e{differed.focus}" if differed.focus else None,
    )
