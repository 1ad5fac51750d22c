"""Trusted input on exactly one node: checked before, guarded while, observed after."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, NamedTuple

import msgspec

from browser.errors import Intercepted, NotDelivered, PageEnded, Refused, StaleRef
from browser.page import Page
from browser.settle import SETTLE_S, Start, begin, observe
from browser.snapshot.lines import checked_word
from browser.values import Acted
from browser.wire import ContextGone, send
from browser.world import World

Effect = AbstractAsyncContextManager[None]
Button = Literal["left", "middle", "right"]
Modifier = Literal["Alt", "Control", "Meta", "Shift"]

DISPATCH_S = 4.0
_MODIFIER_BITS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_BUTTON_BITS = {"left": 1, "right": 2, "middle": 4}


class _Cover(msgspec.Struct):
    role: str = ""
    name: str = ""
    ref: int = 0


class _Refusal(msgspec.Struct):
    refused: str | None = None
    cover: _Cover | None = None
    options: tuple[str, ...] = ()


class _Prepared(_Refusal):
    x: float = 0
    y: float = 0
    focused: bool = False
    checked: bool | Literal["mixed"] | None = None
    role: str | None = None
    secret: bool = False
    tag: str = ""


class _Verdict(msgspec.Struct):
    seen: tuple[str, ...] = ()
    blocked: _Cover | None = None


class _Filled(msgspec.Struct):
    length: int | None = None
    equal: bool | None = None


class _Plan(_Refusal):
    how: str = ""


class Aim(NamedTuple):
    """A checked target: its world, its number there, and its point in the main viewport."""

    world: World
    frame: str
    number: int
    x: float
    y: float
    prepared: _Prepared


def _raise_refusal(refusal: _Refusal, ref: str) -> None:
    reason = refusal.refused
    if reason is None:
        return
    if reason in {"stale_ref", "detached"}:
        raise StaleRef(reason, ref=ref)
    if refusal.cover is not None:
        frame = ref.rpartition("-e")[0]
        by = f"{frame}-e{refusal.cover.ref}" if refusal.cover.ref else None
        raise Refused(reason, ref=ref, cover_role=refusal.cover.role, cover_name=refusal.cover.name, cover_ref=by)
    if refusal.options:
        raise Refused(reason, ref=ref, options=", ".join(refusal.options)[:500])
    raise Refused(reason, ref=ref)


def locate(page: Page, ref: str, snapshot_id: str | None) -> tuple[World, str, int]:
    """The live document a ref belongs to.

    Raises:
        StaleRef, StaleSnapshot: it has none any more.
    """
    frame, number, document = page.refs.resolve(ref, snapshot_id)
    frame_id = page.frames.frame_of(frame)
    world = page.frames.world(frame_id) if frame_id else None
    if world is None or world.unique != document:
        raise StaleRef("stale_ref", ref=ref)
    return world, frame, number


async def aim(page: Page, ref: str, snapshot_id: str | None, wants: str, *, position: tuple[float, float] | None = None, arm: str = "free") -> Aim:
    """Check that the exact node can take the action now.

    Raises:
        StaleRef, StaleSnapshot, Refused: it can't; nothing was done.
    """
    world, frame, number = locate(page, ref, snapshot_id)
    options: dict[str, object] = {"wants": wants, "arm": arm, "base": page.refs.base(frame), "most": 200}
    if position is not None:
        options["position"] = {"x": position[0], "y": position[1]}
    try:
        prepared = await world.call("prepare", number, options, shape=_Prepared)
        _raise_refusal(prepared, ref)
        place = await page.frames.place(world.frame_id)
        x, y = prepared.x + place.x, prepared.y + place.y
        if frame != "main" and not await page.frames.uncovered(world.frame_id, x, y):
            raise Refused("covered", ref=ref, cover_role="page around the frame", cover_name="", cover_ref=None)
    except ContextGone:
        raise StaleRef("stale_ref", ref=ref) from None
    return Aim(world, frame, number, x, y, prepared)


def _start(page: Page, target: Aim) -> Start:
    main = page.frames.world(page.frames.main_id)
    worlds = (target.world,) if main is None or main is target.world else (main, target.world)
    return begin(page, *worlds)


async def _mouse(page: Page, kind: str, x: float, y: float, *, button: str = "none", buttons: int = 0, count: int = 0, modifiers: int = 0) -> None:
    event = {"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": count, "modifiers": modifiers}
    await send(page.session, "Input.dispatchMouseEvent", event, deadline_s=DISPATCH_S)


async def _press_mouse(page: Page, target: Aim, button: Button, count: int, modifiers: int) -> None:
    bit = _BUTTON_BITS[button]
    calls = [_mouse(page, "mouseMoved", target.x, target.y, modifiers=modifiers)]
    for nth in range(1, count + 1):
        calls.append(_mouse(page, "mousePressed", target.x, target.y, button=button, buttons=bit, count=nth, modifiers=modifiers))
        calls.append(_mouse(page, "mouseReleased", target.x, target.y, button=button, count=nth, modifiers=modifiers))
    await asyncio.gather(*calls)


async def _delivered(page: Page, target: Aim, ref: str) -> bool | None:
    """Whether the target's document saw the pointer event; raises Intercepted when our guard swallowed it."""
    if page.activity.dialog is not None or page.activity.ended is not None:
        return None
    attempt = await page.unless_blocked(target.world.call("verdict", shape=_Verdict), DISPATCH_S)
    if not attempt.done:
        return None
    try:
        verdict = attempt.result()
    except (ContextGone, PageEnded):
        return None
    if verdict.blocked is not None:
        by = f"{target.frame}-e{verdict.blocked.ref}" if verdict.blocked.ref else None
        raise Intercepted("covered", ref=ref, cover_role=verdict.blocked.role, cover_name=verdict.blocked.name, cover_ref=by)
    return bool(verdict.seen)


def _bits(modifiers: tuple[Modifier, ...]) -> int:
    return sum(_MODIFIER_BITS[modifier] for modifier in set(modifiers))


async def click(
    page: Page,
    ref: str,
    *,
    snapshot_id: str | None = None,
    button: Button = "left",
    count: int = 1,
    modifiers: tuple[Modifier, ...] = (),
    position: tuple[float, float] | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Click the node's first uncovered point, or `position` in CSS pixels from its top left.

    Raises:
        StaleRef, StaleSnapshot, Refused, Blocked, PageEnded: before any effect.
        Intercepted: something moved over the target in the last instant; no click reached the page.
        Unresponsive: inside the effect; the outcome is unknown.
    """
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "click", position=position, arm="pointer")
        async with effect or nullcontext():
            start = _start(page, target)
            attempt = await page.unless_blocked(_press_mouse(page, target, button, count, _bits(modifiers)), DISPATCH_S)
            if attempt.done:
                attempt.result()
            delivered = await _delivered(page, target, ref)
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation, delivered=delivered)


async def fill(
    page: Page, ref: str, text: str, *, snapshot_id: str | None = None, settle_s: float = SETTLE_S, effect: Effect | None = None
) -> Acted:
    """Replace the text of a field with trusted input, or choose a select's option by label or value.

    Raises:
        StaleRef, StaleSnapshot, Refused, Blocked, PageEnded: before any effect.
        NotDelivered: the field does not hold the text afterwards.
    """
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "fill")
        planned = await target.world.call("plan", target.number, text, shape=_Plan)
        _raise_refusal(planned, ref)
        async with effect or nullcontext():
            start = _start(page, target)
            attempt = await page.unless_blocked(_type(page, target, text, planned.how, ref), DISPATCH_S)
            filled = attempt.result() if attempt.done else _Filled()
            if filled.equal is False and planned.how == "type":
                raise NotDelivered("not_delivered", ref=ref, wanted_length=len(text), length=filled.length)
        observation = await observe(page, start, settle_s)
    mode: Literal["trusted", "scripted"] = "trusted" if planned.how == "type" else "scripted"
    return Acted(ref, page.navigation_id, observation, input_mode=mode, delivered=filled.equal, value_length=filled.length)


async def _type(page: Page, target: Aim, text: str, how: str, ref: str) -> _Filled:
    world, number = target.world, target.number
    if how != "type":
        _raise_refusal(await world.call("put", number, text, shape=_Refusal), ref)
        return await world.call("filled", number, text, shape=_Filled)
    _raise_refusal(await world.call("aim", number, "replace", shape=_Refusal), ref)
    if text:
        await send(page.session, "Input.insertText", {"text": text}, deadline_s=DISPATCH_S)
    else:
        await page.playwright.keyboard.press("Delete")
    try:
        return await world.call("filled", number, text, shape=_Filled)
    except ContextGone:
        return _Filled()


async def check(
    page: Page, ref: str, *, on: bool = True, snapshot_id: str | None = None, settle_s: float = SETTLE_S, effect: Effect | None = None
) -> Acted:
    """Bring a checkbox, radio button or switch into a state; no click when it is there already. Raises as `click`."""
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "click", arm="pointer")
        if target.prepared.checked is None:
            raise Refused("not_checkable", ref=ref)
        delivered: bool | None = True
        async with effect or nullcontext():
            start = _start(page, target)
            if target.prepared.checked is not on:
                attempt = await page.unless_blocked(_press_mouse(page, target, "left", 1, 0), DISPATCH_S)
                if attempt.done:
                    attempt.result()
                delivered = await _delivered(page, target, ref)
        observation = await observe(page, start, settle_s)
        state: bool | Literal["mixed"] | None = None
        if not observation.closed and observation.dialog is None:
            try:
                state = await target.world.call("checkedNow", target.number, shape=bool | Literal["mixed"] | None)  # type: ignore[arg-type]
            except ContextGone:
                state = None
    return Acted(ref, page.navigation_id, observation, delivered=delivered, checked=checked_word(state))
