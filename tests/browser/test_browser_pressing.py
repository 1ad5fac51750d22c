"""A press and its release are one click on one node, however late the release comes; what is lost is said to be."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from browser_probe import Probe
from browser_site import Answer, Site
from browser_steps import LONG_S, Effects, node, text, visit

from browser import actions, frames, gestures, navigate
from browser.engine import Engine
from browser.errors import InterceptedError, NotDeliveredError, RefusedError, UnresponsiveError
from browser.page import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESTLESS = """<style>body { margin: 0 } #pad { height: 0 }</style><div id=pad></div><button id=b>Press</button>
<p id=out>0</p><script>
b.onclick = (event) => { if (event.isTrusted) out.textContent++ };
addEventListener('pointerdown', () => setInterval(() => { pad.style.height = '80px' }, 1), true);
</script>"""


def late_release(monkeypatch: pytest.MonkeyPatch, until: Callable[[], Awaitable[None]]) -> None:
    """Let each release reach the engine that late after its press, as on a machine that is busy elsewhere."""
    dispatch = actions.dispatch_mouse

    async def held(page: Page, kind: str, x: float, y: float, **more: Any) -> None:
        if kind == "mouseReleased":
            await until()
        await dispatch(page, kind, x, y, **more)

    monkeypatch.setattr(actions, "dispatch_mouse", held)


async def test_a_shift_between_press_and_release_loses_no_click(
    site: Site, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page moves its button every millisecond once it is pressed: the click is there all the same, once."""
    # A machine that stands still for the 400 ms that a press waits at most would make the release too late.
    patient = frames.SOURCE.replace("performance.now() + 400", "performance.now() + 4000")
    assert patient != frames.SOURCE
    monkeypatch.setattr(frames, "SOURCE", patient)
    page = await engine.open()
    snapshot = await visit(page, site.show(RESTLESS))
    late_release(monkeypatch, lambda: asyncio.sleep(0.1))
    acted = await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "1"
    assert acted.delivered
    assert acted.released_on is None
    await navigate.close(page)


async def test_a_release_that_comes_too_late_is_said_to_have_missed(
    site: Site, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the release lands on something else, the answer says so and on what: no click is claimed."""
    snapshot = await visit(page, site.show(RESTLESS))
    late_release(monkeypatch, lambda: Probe(page).until("() => pad.style.height === '80px'"))
    acted = await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "0"
    assert acted.released_on is not None


async def test_a_press_that_is_not_acknowledged_is_unknown(
    site: Site, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that hangs in its own handler: the outcome is unknown, never a click that was dispatched."""
    body = """<button onpointerdown="const held = new XMLHttpRequest(); held.open('GET', '/held', false); held.send()">
    Press</button><p id=out></p>"""
    answer = site.pages["/held"] = Answer(b"", hold=asyncio.Event())
    assert answer.hold is not None
    snapshot = await visit(page, site.show(body))
    effects = Effects()
    monkeypatch.setattr(actions, "DISPATCH_S", 0.3)
    with pytest.raises(UnresponsiveError) as caught:
        await actions.click(page, node(snapshot, "button").ref, effect=effects.effect())
    answer.hold.set()
    assert not caught.value.proves_no_effect
    assert effects.errors == ["UnresponsiveError"]


async def test_a_press_that_no_document_saw_is_not_called_delivered(
    site: Site, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine acknowledges input that reaches nothing: not a success."""
    snapshot = await visit(page, site.show("<button onclick='out.textContent++'>Press</button><p id=out>0</p>"))

    async def swallowed(*_given: Any, **_more: Any) -> None:
        """Say that it was sent."""

    monkeypatch.setattr(actions, "dispatch_mouse", swallowed)
    with pytest.raises(NotDeliveredError):
        await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "0"


async def test_a_link_that_downloads_is_waited_for(site: Site, page: Page) -> None:
    """A server that answers late: the observation still has the download that the click began."""
    answer = site.pages["/file"] = Answer(b"content", headers={"content-type": "application/octet-stream"})
    answer.hold = asyncio.Event()
    snapshot = await visit(page, site.show("<a href=/file download>Get</a>"))
    asyncio.get_running_loop().call_later(0.4, answer.hold.set)
    acted = await actions.click(page, node(snapshot, "link").ref, settle_s=LONG_S)
    assert len(acted.observation.downloads) == 1
    assert acted.observation.settled


async def test_a_key_never_goes_to_a_field_that_took_the_focus(site: Site, page: Page) -> None:
    """A page that moves the focus away in the last instant: refused, and no field has the key or the text."""
    body = """<input aria-label=Wanted><input aria-label=Thief id=thief><p id=out></p><script>
    document.querySelector('input').addEventListener('focus', () => Promise.resolve().then(() => thief.focus()));
    addEventListener('keydown', (event) => { out.textContent += event.key });</script>"""
    snapshot = await visit(page, site.show(body))
    ref, effects = node(snapshot, "textbox", "Wanted").ref, Effects()
    with pytest.raises(RefusedError) as caught:
        await gestures.key(page, "a", ref=ref, effect=effects.effect())
    assert caught.value.reason == "not_focused"
    with pytest.raises(RefusedError) as typed:
        await actions.fill(page, ref, "secret", effect=effects.effect())
    assert typed.value.reason == "not_focused"
    assert await text(page) == ""
    assert await Probe(page).value("#thief") == ""
    await page.human.mouse("down", 5, 5, button="left")
    await page.human.key("press", "z")
    assert await text(page) == "z"


async def test_a_key_goes_where_the_page_sends_it_once_it_has_arrived(site: Site, page: Page) -> None:
    """Fields that hand the focus on at each key, and Tab itself: only the first key must find its target."""
    body = """<input id=a aria-label=First oninput="b.focus()"><input id=b aria-label=Second>"""
    snapshot = await visit(page, site.show(body))
    await gestures.key(page, "7", ref=node(snapshot, "textbox", "First").ref, count=2)
    assert (await Probe(page).value("#a"), await Probe(page).value("#b")) == ("7", "7")


async def test_a_drag_never_takes_up_another_node(site: Site, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """What moves away before the press is not dragged: refused, and nothing else was pressed; positions are kept."""
    body = """<style>body { margin: 0 } div { width: 100px; height: 100px }</style><div id=pad style="height:0"></div>
    <div id=s tabindex=0>Source</div><div id=g tabindex=0>Goal</div><p id=out></p><script>
    for (const kind of ['mousedown', 'mouseup']) addEventListener(kind, (event) => {
      out.textContent += [kind, event.target.id, event.offsetX, event.offsetY].join(',') + ' ' });</script>"""
    snapshot = await visit(page, site.show(body))
    source, goal = (node(snapshot, "clickable", name).ref for name in ("Source", "Goal"))
    await gestures.drag(page, source, goal, position=(10, 20), to_position=(30, 40))
    assert (await text(page)).split() == ["mousedown,s,10,20", "mouseup,g,30,40"]
    effects = Effects()

    @asynccontextmanager
    async def shifting() -> AsyncIterator[None]:
        await Probe(page).evaluate("pad.style.height = '300px'")
        async with effects.effect():
            yield

    with pytest.raises(InterceptedError):
        await gestures.drag(page, source, goal, effect=shifting())
    assert effects.errors == ["InterceptedError"]
    assert (await text(page)).split() == ["mousedown,s,10,20", "mouseup,g,30,40"]
