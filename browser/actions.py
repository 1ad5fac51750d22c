"""Trusted input on exactly one node: checked before, guarded while, observed after."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from browser.errors import (
    ContextGoneError,
    InterceptedError,
    NotDeliveredError,
    PageEndedError,
    RefusedError,
    StaleRefError,
    UnresponsiveError,
)
from browser.page import Page
from browser.settle import SETTLE_S, Start, begin, observe
from browser.snapshot.lines import checked_word
from browser.snapshot.outline import quoted
from browser.values import Acted
from browser.wire import send
from browser.world import World

Effect = AbstractAsyncContextManager[None]
Button = Literal["left", "middle", "right"]
Modifier = Literal["Alt", "Control", "Meta", "Shift"]

DISPATCH_S = 4.0
_AIMS = 5
_MODIFIER_BITS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_BUTTON_BITS = {"left": 1, "right": 2, "middle": 4}


class _Cover(msgspec.Struct):
    role: str = ""
    name: str = ""
    ref: int = 0


class Refusal(msgspec.Struct):
    """What a check in the page found wrong, if anything."""

    refused: str | None = None
    cover: _Cover | None = None
    options: tuple[str, ...] = ()


class _Prepared(Refusal):
    x: float = 0
    y: float = 0
    focused: bool = False
    checked: bool | Literal["mixed"] | None = None
    role: str | None = None
    how: str = ""


class Verdict(msgspec.Struct):
    """What the guard of a document saw of an action's input; `blocked` is what it would have landed on."""

    seen: tuple[str, ...] = ()
    blocked: _Cover | None = None
    missed: _Cover | None = None
    downloads: bool = False
    elsewhere: bool = False


class Delivery(NamedTuple):
    """Whether the page saw the press (None: it could not be asked), and on what else the release landed, if it did."""

    seen: bool | None
    released_on: str | None = None


class _Filled(msgspec.Struct):
    length: int | None = None
    equal: bool | None = None


class _State(msgspec.Struct):
    checked: bool | Literal["mixed"] | None = None


class Aim(NamedTuple):
    """A checked target: its world, its number there, and its point in the main viewport."""

    world: World
    frame: str
    number: int
    x: float
    y: float
    prepared: _Prepared


def raise_refusal(refusal: Refusal, ref: str) -> None:
    """Raises the error a refusal stands for; nothing when it is none."""
    reason = refusal.refused
    if reason is None:
        return
    if reason in {"stale_ref", "detached"}:
        raise StaleRefError(reason, ref=ref)
    if refusal.cover is not None:
        frame = ref.rpartition("-e")[0]
        by = f"{frame}-e{refusal.cover.ref}" if refusal.cover.ref else None
        raise RefusedError(reason, ref=ref, cover_role=refusal.cover.role, cover_name=refusal.cover.name, cover_ref=by)
    if refusal.options:
        raise RefusedError(reason, ref=ref, options=", ".join(refusal.options)[:500])
    raise RefusedError(reason, ref=ref)


def locate(page: Page, ref: str, snapshot_id: str | None) -> tuple[World, str, int]:
    """The live document a ref belongs to.

    Raises:
        StaleRefError, StaleSnapshotError: it has none any more.
    """
    frame, number, document = page.refs.resolve(ref, snapshot_id)
    frame_id = page.frames.frame_of(frame)
    world = page.frames.world(frame_id) if frame_id else None
    if world is None or world.unique != document:
        raise StaleRefError("stale_ref", ref=ref)
    return world, frame, number


async def aim(
    page: Page,
    ref: str,
    snapshot_id: str | None,
    wants: str,
    *,
    position: tuple[float, float] | None = None,
    text: str | None = None,
    arm: str = "free",
) -> Aim:
    """Check that the exact node can take the action now.

    Raises:
        StaleRefError, StaleSnapshotError, RefusedError: it can't; nothing was done.
    """
    world, frame, number = locate(page, ref, snapshot_id)
    options: dict[str, object] = {"wants": wants, "arm": arm, "base": page.refs.base(frame), "most": 200}
    if position is not None:
        options["position"] = {"x": position[0], "y": position[1]}
    if text is not None:
        options["text"] = text
    try:
        prepared = await world.call("prepare", number, options, shape=_Prepared)
        raise_refusal(prepared, ref)
        place = await page.frames.place(world.frame_id)
        x, y = place.point(prepared.x, prepared.y)
        if frame != "main" and not await page.frames.uncovered(world.frame_id, x, y):
            raise RefusedError("covered", ref=ref, cover_role="page around the frame", cover_name="", cover_ref=None)
        if arm != "free":
            await _everywhere(page, world, "arm", 0, arm)
    except ContextGoneError:
        raise StaleRefError("stale_ref", ref=ref) from None
    return Aim(world, frame, number, x, y, prepared)


class FileAim(NamedTuple):
    """A checked file input: its world and number, and how a person would call it."""

    world: World
    frame: str
    number: int
    label: str
    multiple: bool


class _FileInput(Refusal):
    label: str = ""
    multiple: bool = False


async def aim_file(page: Page, ref: str, snapshot_id: str | None) -> FileAim:
    """Check that a ref is a file input that takes files now.

    It need not be visible. Raises StaleRefError, StaleSnapshotError, RefusedError.
    """
    page.require_free()
    world, frame, number = locate(page, ref, snapshot_id)
    try:
        found = await world.call("prepare", number, {"wants": "file"}, shape=_FileInput)
    except ContextGoneError:
        raise StaleRefError("stale_ref", ref=ref) from None
    raise_refusal(found, ref)
    return FileAim(world, frame, number, found.label, found.multiple)


async def mark_at(page: Page, world: World) -> None:
    """Remember what a document shows, for the difference after an action that has no pointer. Changes nothing."""
    await world.run("mark", {"base": page.refs.base(page.frames.key(world.frame_id)), "most": 200})
    await world.run("arm", 0, "free")


def start_at(page: Page, world: World) -> Start:
    """The account of an action on a document that was marked."""
    main = page.frames.world(page.frames.main_id)
    return begin(page, *((world,) if main is None or main is world else (main, world)))


def start_of(page: Page, target: Aim) -> Start:
    """The account of an action on a checked target."""
    return start_at(page, target.world)


async def dispatch_mouse(
    page: Page,
    kind: str,
    x: float,
    y: float,
    *,
    button: str = "none",
    buttons: int = 0,
    count: int = 0,
    modifiers: int = 0,
    delta: tuple[float, float] | None = None,
) -> None:
    """One trusted mouse event at a point of the main viewport."""
    event: dict[str, object] = {
        "type": kind,
        "x": x,
        "y": y,
        "button": button,
        "buttons": buttons,
        "clickCount": count,
        "modifiers": modifiers,
    }
    if delta is not None:
        event["deltaX"], event["deltaY"] = delta
    await send(page.session, "Input.dispatchMouseEvent", event, deadline_s=DISPATCH_S)


async def _press_mouse(page: Page, target: Aim, button: Button, count: int, modifiers: int) -> None:
    bit = _BUTTON_BITS[button]
    calls = [dispatch_mouse(page, "mouseMoved", target.x, target.y, modifiers=modifiers)]
    for nth in range(1, count + 1):
        calls.append(
            dispatch_mouse(
                page, "mousePressed", target.x, target.y, button=button, buttons=bit, count=nth, modifiers=modifiers
            )
        )
        calls.append(
            dispatch_mouse(page, "mouseReleased", target.x, target.y, button=button, count=nth, modifiers=modifiers)
        )
    await asyncio.gather(*calls)


async def _everywhere(page: Page, world: World, function: str, *arguments: object) -> list[Verdict]:
    """Call a function in every other frame, so that the press can land in none of them; what is gone is left out."""

    async def one(other: World) -> Verdict:
        with suppress(ContextGoneError, UnresponsiveError):
            if function == "verdict":
                return await other.call(function, *arguments, shape=Verdict)
            await other.run(function, *arguments)
        return Verdict()

    others = page.frames.others(world)
    return list(await asyncio.gather(*(one(other) for other in others))) if others else []


async def lower(target: Aim) -> None:
    """Take the guard down after it swallowed an action, so that it swallows nothing of what a person does next."""
    with suppress(ContextGoneError, PageEndedError, UnresponsiveError):
        await target.world.run("disarm")


async def told(page: Page, target: Aim) -> Verdict | None:
    """What the guard saw of input that was acknowledged; None where the page can't be asked any more.

    Where the target's own document saw nothing, what another one blocked counts.
    """
    if page.activity.interrupted():
        return None
    attempt = await page.unless_blocked(target.world.call("verdict", shape=Verdict), DISPATCH_S)
    if not attempt.done:
        return None
    try:
        verdict = attempt.result()
        others = [] if verdict.seen or verdict.blocked else await _everywhere(page, target.world, "verdict")
        await _everywhere(page, target.world, "disarm")
    except (ContextGoneError, PageEndedError):
        return None
    blocked = next((other.blocked for other in others if other.blocked), None)
    return verdict if blocked is None else Verdict(blocked=blocked, elsewhere=True)


async def delivered(page: Page, target: Aim, ref: str) -> Delivery:
    """What became of a press.

    Raises:
        InterceptedError: our guard swallowed it.
        NotDeliveredError: it was acknowledged, and no document saw it.
    """
    verdict = await told(page, target)
    if verdict is None:
        return Delivery(None)
    if verdict.blocked is not None:
        cover, by = verdict.blocked, None
        if not verdict.elsewhere and cover.ref:
            by = f"{target.frame}-e{cover.ref}"
        raise InterceptedError("covered", ref=ref, cover_role=cover.role, cover_name=cover.name, cover_ref=by)
    if verdict.downloads:
        page.activity.foretell_download()
    if not verdict.seen:
        raise NotDeliveredError("not_delivered", ref=ref)
    missed = verdict.missed
    return Delivery(seen=bool(verdict.seen), released_on=f"{missed.role} {quoted(missed.name, 60)}" if missed else None)


async def _strike(
    page: Page, ref: str, target: Aim, again: Callable[[], Awaitable[Aim]], button: Button, count: int, modifiers: int
) -> Delivery:
    """Press at the target. A press that our guard swallowed whole reached nothing: it is aimed anew.

    Raises InterceptedError or what `again` raises when the target can't be hit; either proves that nothing happened.
    Raises UnresponsiveError when the engine did not acknowledge the press, NotDeliveredError when no document saw it.
    """
    left = _AIMS
    while True:
        left -= 1
        attempt = await page.unless_blocked(_press_mouse(page, target, button, count, modifiers), DISPATCH_S)
        page.outcome(attempt, "click")
        try:
            return await delivered(page, target, ref)
        except InterceptedError:
            await lower(target)
            if not left:
                raise
        target = await again()


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
        StaleRefError, StaleSnapshotError, RefusedError, BlockedError, PageEndedError: before any effect.
        InterceptedError, RefusedError, StaleRefError: inside the effect, and proven to be without one: the target moved
            or was covered in the last instant, our guard swallowed the press, and it could not be aimed anew.
        UnresponsiveError, NotDeliveredError: inside the effect; the outcome is unknown.
    """
    async with page.turn:
        page.require_free()
        again = partial(aim, page, ref, None, "click", position=position, arm="pointer")
        target = await aim(page, ref, snapshot_id, "click", position=position, arm="pointer")
        async with effect or nullcontext():
            start = start_of(page, target)
            delivery = await _strike(page, ref, target, again, button, count, _bits(modifiers))
        observation = await observe(page, start, settle_s)
    return Acted(ref, page.navigation_id, observation, delivered=delivery.seen, released_on=delivery.released_on)


async def fill(
    page: Page,
    ref: str,
    text: str,
    *,
    snapshot_id: str | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Replace the text of a field with trusted input, or choose a select's option by label or value.

    Raises:
        StaleRefError, StaleSnapshotError, RefusedError, BlockedError, PageEndedError: before any effect.
        RefusedError: ``not_focused``: inside the effect, and proven to be without one: the page took the focus away in
            the last instant, and our guard swallowed the text.
        NotDeliveredError: the field does not hold the text afterwards.
    """
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "fill", text=text, arm="keys")
        how = target.prepared.how
        async with effect or nullcontext():
            start = start_of(page, target)
            attempt = await page.unless_blocked(_type(page, target, text, how, ref), DISPATCH_S)
            filled = page.outcome(attempt, "fill") or _Filled()
            if filled.equal is False and how == "type":
                raise NotDeliveredError("not_delivered", ref=ref, wanted_length=len(text), length=filled.length)
        observation = await observe(page, start, settle_s, one_frame=True)
    mode: Literal["trusted", "scripted"] = "trusted" if how == "type" else "scripted"
    return Acted(
        ref, page.navigation_id, observation, input_mode=mode, delivered=filled.equal, value_length=filled.length
    )


async def _type(page: Page, target: Aim, text: str, how: str, ref: str) -> _Filled:
    world, number = target.world, target.number
    if how != "type":
        raise_refusal(await world.call("put", number, text, shape=Refusal), ref)
        return await world.call("filled", number, text, shape=_Filled)
    raise_refusal(await world.call("aim", number, "replace", shape=Refusal), ref)
    if text:
        await send(page.session, "Input.insertText", {"text": text}, deadline_s=DISPATCH_S)
    else:
        await page.keyboard.press("Delete")
    try:
        filled = await world.call("filled", number, text, shape=_Filled)
    except ContextGoneError:
        return _Filled()
    if not filled.equal:
        await require_on_target(page, target, ref)
    return filled


async def require_on_target(page: Page, target: Aim, ref: str) -> None:
    """Raises RefusedError (``not_focused``) where keys or text went to another node and our guard swallowed them."""
    verdict = await told(page, target)
    if verdict is not None and verdict.blocked is not None:
        await lower(target)
        raise RefusedError("not_focused", ref=ref)


async def check(
    page: Page,
    ref: str,
    *,
    on: bool = True,
    snapshot_id: str | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Acted:
    """Bring a checkbox, radio button or switch into a state; no click when it is there already. Raises as `click`."""
    async with page.turn:
        page.require_free()
        target = await aim(page, ref, snapshot_id, "click", arm="pointer")
        if target.prepared.checked is None:
            raise RefusedError("not_checkable", ref=ref)
        delivery = Delivery(seen=True)
        async with effect or nullcontext():
            start = start_of(page, target)
            if target.prepared.checked is not on:
                again = partial(aim, page, ref, None, "click", arm="pointer")
                delivery = await _strike(page, ref, target, again, "left", 1, 0)
        observation = await observe(page, start, settle_s)
        state = _State()
        if not page.activity.interrupted():
            with suppress(ContextGoneError):  # the click may have led to another document
                state = await target.world.call("checkedNow", target.number, shape=_State)
    return Acted(
        ref,
        page.navigation_id,
        observation,
        delivered=delivery.seen,
        checked=checked_word(state.checked),
        released_on=delivery.released_on,
    )
