"""The other trusted inputs: keys, scrolling, choosing options, hovering, dragging."""

import asyncio
import math
from collections.abc import Awaitable, Iterator
from contextlib import nullcontext, suppress
from typing import Literal, TypeVar

import msgspec

from browser.actions import (
    DISPATCH_S,
    Aim,
    Effect,
    Refusal,
    aim,
    delivered,
    dispatch_mouse,
    locate,
    lower,
    mark_at,
    raise_refusal,
    require_on_target,
    start_at,
    start_of,
)
from browser.errors import BrowserError, ContextGoneError, RefusedError, StaleRefError
from browser.inspector.mouse import Drag
from browser.keys import require_known
from browser.page import Page
from browser.settle import SETTLE_S, observe
from browser.values import Acted
from browser.world import World

T = TypeVar("T")

MOST_DELTA = 10_000


class _Point(Refusal):
    x: float = 0
    y: float = 0


class _Scroll(msgspec.Struct):
    x: float = 0
    y: float = 0


class _Choice(Refusal):
    ok: bool = False


async def _pressed(page: Page, chord: str, count: int) -> None:
    for _ in range(count):
        await page.keyboard.press(chord)


async def key(
    page: Page,
    chord: str,
    *,
    ref: str | None = None,
    snapshot_id: str | None = None,
    count: int = 1,
    must_be_focused: bool = False,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Press a key or a chord such as ``Control+Shift+A``, with its default action; `ref` gets the focus first.

    Raises:
        StaleRefError, StaleSnapshotError, BlockedError, PageEndedError: before any effect.
        RefusedError: ``unknown_key``; ``not_focused`` when `must_be_focused` and another node has the focus, or when
            the page took the focus away in the last instant and our guard swallowed the key: nothing happened.
    """
    require_known(chord)
    async with page.turn:
        page.require_free()
        world = await page.main_world()
        target: Aim | None = None
        if ref is not None:
            target = await aim(page, ref, snapshot_id, "key", arm="keys")
            if must_be_focused and not target.prepared.focused:
                raise RefusedError("not_focused", ref=ref)
        if target is None:
            await mark_at(page, world)
        async with effect or nullcontext():
            start = start_at(page, world) if target is None else start_of(page, target)
            if target is not None and not target.prepared.focused:
                raise_refusal(await target.world.call("aim", target.number, "focus", shape=Refusal), ref or "")
            attempt = await page.unless_blocked(_pressed(page, chord, count), DISPATCH_S + 0.05 * count)
            page.outcome(attempt, "key")
            if target is not None:
                await require_on_target(page, target, ref or "")
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation)


async def type_text(
    page: Page,
    ref: str,
    text: str,
    *,
    snapshot_id: str | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Type into a field key by key at its caret, for pages that listen to keys. Raises as `key`."""
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "fill")
        async with effect or nullcontext():
            start = start_of(page, target)
            raise_refusal(await target.world.call("aim", target.number, "focus", shape=Refusal), ref)
            attempt = await page.unless_blocked(page.keyboard.type(text), DISPATCH_S + 0.02 * len(text))
            page.outcome(attempt, "type")
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation)


async def scroll(
    page: Page,
    delta_x: float,
    delta_y: float,
    *,
    ref: str | None = None,
    frame: str = "main",
    snapshot_id: str | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Turn the wheel over a frame's viewport, or over the node `ref`, by CSS pixels.

    Where no point of the viewport turns the viewport itself (an inner scroller covers it all), the viewport is
    scrolled by script and `input_mode` says so.

    Raises:
        RefusedError: ``malformed_value`` for deltas that are not finite or over 10,000.
        StaleRefError, StaleSnapshotError, BlockedError, PageEndedError: before any effect.
    """
    if not all(math.isfinite(delta) and abs(delta) <= MOST_DELTA for delta in (delta_x, delta_y)):
        raise RefusedError("malformed_value")
    async with page.turn:
        page.require_free()
        world, number = await _scrolled_frame(page, ref, frame, snapshot_id)
        try:
            point = await world.call("scrollTarget", number, delta_x, delta_y, shape=_Point)
            raise_refusal(point, ref or "viewport")
            place = await page.frames.place(world.frame_id)
        except ContextGoneError:
            raise StaleRefError("stale_ref", ref=ref or frame) from None
        scripted = point.x < 0
        before = await world.call("scrolled", number, shape=dict[str, float])
        await mark_at(page, world)
        at: _Scroll | None
        async with effect or nullcontext():
            start = start_at(page, world)
            if scripted:
                at = await world.call("scrollDirect", number, delta_x, delta_y, shape=_Scroll)
            else:
                at_point = place.point(point.x, point.y)
                turn = _turned(page, world, number, before, at_point, (delta_x, delta_y))
                attempt = await page.unless_blocked(turn, DISPATCH_S)
                at = page.outcome(attempt, "scroll")
        observation = await observe(page, start, settle_s)
    position = (at.x, at.y) if at is not None else None
    mode: Literal["trusted", "scripted"] = "scripted" if scripted else "trusted"
    return Acted(ref, page.navigation_id, observation, input_mode=mode, scroll=position)


async def _turned(
    page: Page, world: World, number: int, before: dict[str, float], at: tuple[float, float], delta: tuple[float, float]
) -> _Scroll | None:
    await dispatch_mouse(page, "mouseMoved", *at)
    await dispatch_mouse(page, "mouseWheel", *at, delta=delta)
    with suppress(ContextGoneError):  # the wheel may have led to another document
        return await world.call("scrollMoved", number, before, shape=_Scroll)
    return None


async def _scrolled_frame(page: Page, ref: str | None, frame: str, snapshot_id: str | None) -> tuple[World, int]:
    if ref is not None:
        world, _, number = locate(page, ref, snapshot_id)
        return world, number
    frame_id = page.frames.frame_of(frame)
    found = page.frames.world(frame_id) if frame_id else None
    if found is None:
        raise StaleRefError("stale_ref", ref=f"{frame}-viewport")
    return found, 0


async def select(
    page: Page,
    ref: str,
    options: tuple[str, ...],
    *,
    snapshot_id: str | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Choose a select's options by label or value.

    The engine's own list can't be driven headless: `input_mode` is ``scripted``.

    Raises:
        RefusedError: ``not_selectable``, ``no_such_option``, ``one_option_only`` and the usual checks; nothing
            was done.
    """
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "select")
        raise_refusal(await target.world.call("canPick", target.number, list(options), shape=_Choice), ref)
        async with effect or nullcontext():
            start = start_of(page, target)
            attempt = await page.unless_blocked(
                target.world.call("pick", target.number, list(options), shape=Refusal), DISPATCH_S
            )
            raise_refusal(page.outcome(attempt, "select") or Refusal(), ref)
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation, input_mode="scripted", delivered=True)


async def hover(
    page: Page, ref: str, *, snapshot_id: str | None = None, settle_s: float = SETTLE_S, effect: Effect | None = None
) -> Acted:
    """Move the pointer over a node's first uncovered point. Raises as `browser.actions.click`."""
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "hover")
        async with effect or nullcontext():
            start = start_of(page, target)
            attempt = await page.unless_blocked(dispatch_mouse(page, "mouseMoved", target.x, target.y), DISPATCH_S)
            page.outcome(attempt, "hover")
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation)


async def drag(
    page: Page,
    ref: str,
    to_ref: str,
    *,
    snapshot_id: str | None = None,
    position: tuple[float, float] | None = None,
    to_position: tuple[float, float] | None = None,
    steps: int = 8,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Drag one node onto another, with the page's own drag and drop when it has that.

    Positions are in CSS pixels from a node's top left; its centre without one. An error in between lifts the button.

    Raises:
        StaleRefError, StaleSnapshotError, RefusedError, BlockedError, PageEndedError: before any effect.
        InterceptedError: inside the effect, and proven to be without one: the first node moved or was covered in the
            last instant, and our guard swallowed the press.
        UnresponsiveError: inside the effect; the outcome is unknown.
    """
    async with page.turn:
        page.require_free()
        await aim(page, to_ref, snapshot_id, "hover", position=to_position)
        source = await aim(page, ref, snapshot_id, "hover", position=position, arm="drag")
        goal = await _still_there(page, to_ref, snapshot_id, to_position)
        async with effect or nullcontext():
            start = start_of(page, source)
            work = _dragged(page, source, ref, goal, steps)
            page.outcome(await page.unless_blocked(work, DISPATCH_S + 0.05 * steps), "drag")
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation)


async def _still_there(
    page: Page, ref: str, snapshot_id: str | None, position: tuple[float, float] | None
) -> tuple[float, float]:
    """The second point of a drag, without scrolling the first one away again."""
    world, _, number = locate(page, ref, snapshot_id)
    point = await world.call("scrollTarget" if position is None else "boxOf", number, 0, 0, shape=_Point)
    raise_refusal(point, ref)
    place = await page.frames.place(world.frame_id)
    metrics = await page.main_world()
    size = await metrics.call("viewNow", shape=_Scroll)
    off = position or (0.0, 0.0)
    x, y = place.point(point.x + off[0], point.y + off[1])
    if not (0 <= x < size.x and 0 <= y < size.y):
        raise RefusedError("offscreen", ref=ref)
    return x, y


async def _dragged(page: Page, source: Aim, ref: str, goal: tuple[float, float], steps: int) -> None:
    async def arm() -> None:
        await asyncio.gather(*(_quietly(world.run("dragArm")) for world in page.frames.live()))

    async def begun() -> bool:
        told = (_quietly(world.call("dragBegun", shape=bool)) for world in page.frames.live())
        return any(await asyncio.gather(*told))

    mouse = Drag(page.session, arm, begun)
    await mouse.down(source.x, source.y)
    at = (source.x, source.y)
    try:
        await delivered(page, source, ref)
        for at in (*_way((source.x + 4, source.y + 4), goal, max(1, steps)), goal):
            await mouse.move(*at)
    finally:
        await mouse.up(*at)
        await lower(source)


def _way(start: tuple[float, float], goal: tuple[float, float], steps: int) -> Iterator[tuple[float, float]]:
    for step in range(steps + 1):
        share = step / steps
        yield start[0] + (goal[0] - start[0]) * share, start[1] + (goal[1] - start[1]) * share


async def _quietly(work: Awaitable[T]) -> T | None:
    """A call to a document that may go at any time."""
    try:
        return await work
    except BrowserError:
        return None
