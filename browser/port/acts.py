"""One action of the contract as one call of the library."""

from contextlib import AbstractAsyncContextManager

from browser import actions, gestures
from browser.page import Page
from browser.values import Acted
from lomi.contract.browser import (
    BrowserClickInput,
    BrowserFillInput,
    BrowserInteraction,
    BrowserKeyInput,
    BrowserScrollInput,
    Offset,
    PageAction,
    ScrollPosition,
)

Effect = AbstractAsyncContextManager[None]


async def act(page: Page, given: PageAction, effect: Effect) -> Acted:
    """Make the action happen once, as trusted input.

    Raises:
        BrowserError: what the library refuses or loses.
    """
    match given:
        case BrowserClickInput():
            return await _click(page, given, effect)
        case BrowserFillInput(also_select=()):
            return await actions.fill(page, given.element_ref, given.text, snapshot_id=given.snapshot_id, effect=effect)
        case BrowserFillInput():
            options = (given.text, *given.also_select)
            return await gestures.select(page, given.element_ref, options, snapshot_id=given.snapshot_id, effect=effect)
        case BrowserKeyInput():
            return await gestures.key(
                page,
                "+".join((*given.modifiers, given.key)),
                ref=given.element_ref,
                snapshot_id=given.snapshot_id,
                count=given.count,
                must_be_focused=True,
                effect=effect,
            )
        case BrowserScrollInput():
            return await gestures.scroll(
                page,
                given.delta_x,
                given.delta_y,
                ref=given.element_ref,
                frame=given.viewport_ref.removesuffix("viewport").rstrip("-") or "main",
                snapshot_id=given.snapshot_id,
                effect=effect,
            )
        case _:
            raise AssertionError(f"no action for {type(given).__name__}")


def _point(offset: Offset | None) -> tuple[float, float] | None:
    return None if offset is None else (offset.x, offset.y)


async def _click(page: Page, given: BrowserClickInput, effect: Effect) -> Acted:
    ref, snapshot = given.element_ref, given.snapshot_id
    if given.checked is not None:
        return await actions.check(page, ref, on=given.checked, snapshot_id=snapshot, effect=effect)
    if given.hover:
        return await gestures.hover(page, ref, snapshot_id=snapshot, effect=effect)
    if given.drag_to is not None:
        return await gestures.drag(
            page,
            ref,
            given.drag_to.element_ref,
            snapshot_id=snapshot,
            position=_point(given.position),
            to_position=_point(given.drag_to.position),
            effect=effect,
        )
    return await actions.click(
        page,
        ref,
        snapshot_id=snapshot,
        button=given.button,
        count=given.count,
        modifiers=given.modifiers,
        position=_point(given.position),
        effect=effect,
    )


def interaction(page: Page, given: PageAction, acted: Acted) -> BrowserInteraction:
    """What is certain of an action."""
    named = getattr(given, "element_ref", None) or getattr(given, "viewport_ref", None)
    ref = str(named or "viewport")
    return BrowserInteraction(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        browser_generation=page.generation,
        navigation_id=acted.navigation_id,
        snapshot_id=given.snapshot_id,
        element_ref=ref,
        dispatched=True,
        default_action=True if isinstance(given, BrowserKeyInput) else None,
        scroll_position=ScrollPosition(x=acted.scroll[0], y=acted.scroll[1]) if acted.scroll else None,
        value_length=acted.value_length,
    )
