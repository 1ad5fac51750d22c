"""Waiting for a condition: matched, absent with the picture that proves it, or no observation at all."""

import asyncio
from typing import Literal

import msgspec

from browser.errors import BlockedError, ContextGoneError, PageEndedError, UnresponsiveError
from browser.page import Attempt, Page
from browser.values import Snapshot


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Some visible text anywhere in the page."""

    text: str


class Element(msgspec.Struct, frozen=True, tag="element"):
    """A node of this role whose name is `name`, or holds it when `exact` is off."""

    role: str
    name: str = ""
    exact: bool = True


class Url(msgspec.Struct, frozen=True, tag="url"):
    """The address of the main document, exactly."""

    url: str


class Load(msgspec.Struct, frozen=True, tag="load"):
    """The main document has loaded."""


Condition = Text | Element | Url | Load


class Waited(msgspec.Struct, frozen=True):
    """Outcome of a wait. `absent` is only said with a snapshot taken after the time was up."""

    outcome: Literal["matched", "absent", "no_observation"]
    elapsed_ms: float
    snapshot: Snapshot | None = None


class _Ready(msgspec.Struct):
    ready: str = ""


async def wait(page: Page, condition: Condition, *, timeout_s: float = 5.0, most: int = 200) -> Waited:
    """Wait until the condition holds or the time is up. Never holds up actions.

    Raises:
        PageEndedError: the generation is over.
    """
    began = page.clock()
    deadline = began + timeout_s
    matched = False
    while not matched and (left := deadline - page.clock()) > 0:
        page.require_live()
        if page.activity.dialog is not None:
            await page.activity.wait(left)
            continue
        try:
            matched = await _once(page, condition, left)
        except (ContextGoneError, BlockedError):
            continue
        except UnresponsiveError:
            break
    page.require_live()
    try:
        snapshot = await page.snapshot(most=most)
    except (BlockedError, UnresponsiveError, ContextGoneError):
        return Waited("matched" if matched else "no_observation", (page.clock() - began) * 1000)
    return Waited("matched" if matched else "absent", (page.clock() - began) * 1000, snapshot)


async def _once(page: Page, condition: Condition, left: float) -> bool:
    """One round: True when it holds, False when something happened or time is up; then it is asked again."""
    if isinstance(condition, Url):
        if page.url == condition.url:
            return True
        await page.activity.wait(left)
        return page.url == condition.url
    if isinstance(condition, Load):
        world = await page.main_world(left)
        if (await world.call("whereNow", shape=_Ready)).ready == "complete":
            return True
        await page.activity.wait(min(left, 1.0))
        return False
    asked: dict[str, object] = (
        {"text": condition.text}
        if isinstance(condition, Text)
        else {
            "role": condition.role,
            "text": condition.name,
            "exact": condition.exact and bool(condition.name),
        }
    )
    return await _in_any_frame(page, asked, left)


async def _in_any_frame(page: Page, asked: dict[str, object], left: float) -> bool:
    await page.main_world(left)
    await page.frames.adopt_separate()
    listed, _ = page.frames.listed()
    worlds = [world for frame in listed if (world := page.frames.world(frame)) is not None]
    cap = min(left, 2.0)  # frames may come and go: look for them again now and then
    attempts: list[Attempt[bool]] = [
        page.background(world.call("until", asked, cap * 1000, shape=bool, deadline_s=cap + 3)) for world in worlds
    ]
    deadline = page.clock() + cap + 3
    while page.activity.ended is None and page.activity.dialog is None:
        done = [attempt for attempt in attempts if attempt.done]
        for attempt in done:
            try:
                if attempt.result():
                    return True
            except (ContextGoneError, PageEndedError):
                return False
        if len(done) == len(attempts) or not await page.activity.wait(deadline - page.clock()):
            return False
    await asyncio.sleep(0)
    return False
