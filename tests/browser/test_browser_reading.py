"""Reads that change nothing: pictures, logs, requests, waits, live frames; and what a person does."""

import asyncio
from io import BytesIO

import pytest
from browser_probe import Probe
from browser_site import Answer, Site, html
from browser_steps import LONG_S, node, text, visit
from PIL import Image

from browser import actions, capture, navigate
from browser.errors import CaptureFailedError, CursorExpiredError, OriginDeniedError, PageEndedError, RefusedError
from browser.page import Page
from browser.png import png_size
from browser.screencast import Frame
from browser.wait import Element, Load, Text, Url, wait

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_viewport_element_and_full_page_pictures(site: Site, page: Page) -> None:
    """Each picture shows its clip, says its scale, and nothing on the page moves for it."""
    body = """<style>body{margin:0}</style><div id=a tabindex=0 style="width:100px;height:50px;background:#f00"></div>
    <div style="height:3000px"></div>
    <div tabindex=0 aria-label=green style="width:40px;height:30px;background:#0f0"></div><p>end</p>"""
    snapshot = await visit(page, site.show(body))
    view = await capture.capture(page)
    assert (view.width, view.height, view.pixels_per_css) == (1280, 720, 1.0)
    assert not view.scaled
    with Image.open(BytesIO(view.png)) as picture:
        assert picture.convert("RGB").getpixel((50, 25)) == (255, 0, 0)
    green = await capture.capture(page, ref=node(snapshot, "clickable", "green").ref)
    with Image.open(BytesIO(green.png)) as picture:
        assert picture.size == (40, 30)
        assert picture.convert("RGB").getcolors() == [(1200, (0, 255, 0))]
    assert green.uniform
    full = await capture.capture(page, full_page=True)
    assert full.original_height > 3000
    assert await Probe(page).evaluate("scrollY") == 0


async def test_a_picture_says_where_the_window_stands_however_it_came_there(site: Site, page: Page) -> None:
    """Though the page keeps its scrolls to itself, and though it was opened anew meanwhile."""
    deaf = "for (const at of [window, document]) at.addEventListener('scroll', e => e.stopImmediatePropagation(), true)"
    long = "<div style='height:3000px'></div><p>end</p>"
    await visit(page, site.show(f"<script>{deaf}</script>{long}"))
    probe = Probe(page)

    async def at() -> tuple[float, float]:
        return (await capture.capture(page)).clip[:2]

    assert await at() == (0, 0)
    for y in (300, 700):
        await probe.evaluate(f"scrollTo(0, {y})")
        assert await at() == (0, y)
        assert await at() == (0, y)
    await probe.evaluate(f"document.open(), document.write(`{long}`), document.close(), scrollTo(0, 40), 0")
    assert await at() == (0, 40)
    await probe.evaluate(f"{deaf}; scrollTo(0, 90)")
    assert await at() == (0, 90)
    await visit(page, site.show(long))
    assert await at() == (0, 0)


async def test_pictures_are_bounded_and_the_original_is_whole(site: Site, page: Page) -> None:
    """A 25,000 pixel page of noise comes back under 300,000 bytes and 8,000 pixels; its original has full size."""
    body = """<style>body{margin:0}canvas{display:block}</style><canvas id=c width=1280 height=1500></canvas>
    <div style="height:23500px"></div><script>
    const g = c.getContext('2d'), d = g.createImageData(1280, 1500); let s = 1;
    for (let i = 0; i < d.data.length; i++) d.data[i] = i % 4 == 3 ? 255 : (s = (s * 16807) % 2147483647) & 255;
    g.putImageData(d, 0, 0)</script>"""
    await visit(page, site.show(body))
    full = await capture.capture(page, full_page=True)
    assert len(full.png) <= 300_000
    assert max(full.width, full.height) <= 8_000
    assert (full.original_width, full.original_height) == (1280, 25_000)
    assert full.scaled
    assert full.pixels_per_css == full.width / 1280
    small = await capture.capture(page, most_width=320)
    assert small.width == 320
    assert small.height == 180


@pytest.mark.parametrize("png", [b"", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n" + bytes(100)])
async def test_empty_and_truncated_pictures_are_errors(png: bytes) -> None:
    """No picture is never a success."""
    with pytest.raises(CaptureFailedError):
        png_size(png)
    buffer = BytesIO()
    Image.new("RGB", (200, 200), "red").save(buffer, "PNG")
    with pytest.raises(CaptureFailedError):
        png_size(buffer.getvalue()[:-5])


async def test_logs_are_rings_with_cursors(site: Site, page: Page) -> None:
    """Console, errors and rejections are kept apart; overflow is counted; a new document expires cursors."""
    body = """<script>console.log('a', 1, true, null, undefined, {x: 1}, 'b'); console.error('bad'); console.warn('hm');
    setTimeout(() => { throw new Error('boom') }); Promise.reject(new TypeError('nope'))</script>
    <button onclick="for (let i = 0; i < 100; i++) console.info('line ' + i)">Flood</button>"""
    snapshot = await visit(page, site.show(body))
    console = page.logs.read("console")
    assert [(e.level, e.message) for e in console.entries] == [
        ("log", "a 1 true null undefined [object omitted] b"),
        ("error", "bad"),
        ("warn", "hm"),
    ]
    assert [e.message for e in page.logs.read("javascript_error").entries] == ["Error: boom"]
    assert [e.message for e in page.logs.read("promise_rejection").entries] == ["TypeError: nope"]
    await actions.click(page, node(snapshot, "button").ref)
    flooded = page.logs.read("console", cursor=console.next_cursor, limit=10)
    assert flooded.dropped == 100 - 64
    assert flooded.has_more
    assert flooded.entries[0].message == f"line {100 - 64}"
    rest = page.logs.read("console", cursor=flooded.next_cursor, limit=64)
    assert rest.entries[-1].message == "line 99"
    assert not rest.has_more
    assert page.logs.read("console", cursor=rest.next_cursor).entries == ()
    for wrong in (
        "",
        "b999:1:console:1",
        rest.next_cursor.replace("console:", ""),
        rest.next_cursor + "0",
        rest.next_cursor[:-1] + "x",
    ):
        with pytest.raises(CursorExpiredError):
            page.logs.read("console", cursor=wrong)
    await navigate.navigate(page, site.url + "/")
    with pytest.raises(CursorExpiredError):
        page.logs.read("console", cursor=rest.next_cursor)


async def test_errors_of_an_action_are_in_its_observation(site: Site, page: Page) -> None:
    """An exception thrown by a click handler is reported with the click, an older one is not."""
    snapshot = await visit(
        page, site.show("<script>console.error('old')</script><button onclick='missing()'>Break</button>")
    )
    acted = await actions.click(page, node(snapshot, "button").ref)
    assert acted.observation.console_errors == ("ReferenceError: missing is not defined",)


async def test_the_network_list_has_no_credentials(site: Site, page: Page) -> None:
    """Requests are listed with status and timing and without secret query values; bodies come on request."""
    site.pages["/api"] = Answer(b'{"ok":1}', headers={"content-type": "application/json"})
    body = (
        "<button onclick=\"fetch('/api?token=hunter2&page=3').then(() => fetch('/none')).then(() => "
        "out.textContent='done')\">Load</button><p id=out></p>"
    )
    snapshot = await visit(page, site.show(body))
    acted = await actions.click(page, node(snapshot, "button").ref, settle_s=LONG_S)
    assert acted.observation.settled
    assert await text(page) == "done"
    listed = page.network.read()
    by_path = {e.url.removeprefix(site.url): e for e in listed.entries}
    assert by_path["/api?token=...&page=3"].status == 200
    assert by_path["/none"].status == 404
    assert by_path["/"].type == "Document"
    assert all((e.duration_ms or 0) > 0 for e in listed.entries)
    assert "hunter2" not in repr(listed)
    assert await page.network.body(by_path["/api?token=...&page=3"].sequence) == b'{"ok":1}'
    assert page.network.read(cursor=listed.next_cursor).entries == ()
    with pytest.raises(CursorExpiredError):
        page.network.read(cursor="b0:network:1")


async def test_waits_match_as_soon_as_it_happens(site: Site, page: Page) -> None:
    """Text, element, address and load conditions end the moment they hold, in frames too."""
    site.pages["/frame"] = html("<script>setTimeout(() => document.body.append('late words'), 150)</script>")
    body = """<iframe src=/frame></iframe>
    <script>setTimeout(() => { const b = document.createElement('button'); b.textContent = 'Ready';
    document.body.append(b); }, 200); setTimeout(() => history.pushState(0, '', '/moved'), 300)</script>"""
    await navigate.navigate(page, site.show(body), wait_until="commit", settle_s=0.05)
    for condition in (Text("late words"), Element("button", "Ready"), Url(site.url + "/moved"), Load()):
        waited = await wait(page, condition, timeout_s=25)
        assert waited.outcome == "matched", condition
        assert waited.elapsed_ms < 15_000
        assert waited.snapshot is not None


async def test_absent_is_proved_and_no_observation_is_not_absence(site: Site, page: Page) -> None:
    """Time up with a picture is absent; a page that can't be looked at gives no observation."""
    snapshot = await visit(page, site.show("<button onclick=\"alert('x')\">Ask</button>"))
    absent = await wait(page, Text("never"), timeout_s=0.2)
    assert absent.outcome == "absent"
    assert absent.snapshot is not None
    await actions.click(page, node(snapshot, "button").ref)
    unseen = await wait(page, Text("never"), timeout_s=0.2)
    assert unseen.outcome == "no_observation"
    assert unseen.snapshot is None
    await navigate.close(page)
    with pytest.raises(PageEndedError):
        await wait(page, Text("never"), timeout_s=0.2)


async def test_wait_goes_on_over_a_navigation(site: Site, page: Page) -> None:
    """The document may be replaced while waiting."""
    site.show("<p>second document</p>", "/second")
    await navigate.navigate(
        page, site.show("<script>setTimeout(() => location = '/second', 200)</script>"), settle_s=0.05
    )
    assert (await wait(page, Text("second document"))).outcome == "matched"


async def test_live_frames_come_when_the_picture_changes(site: Site, page: Page) -> None:
    """Watchers see changes; one who joins late gets the last frame at once."""
    await visit(page, site.show("<style>body{margin:0;background:#fff}</style><p id=p>one</p>"))
    frames = page.screencast.frames()
    async with asyncio.timeout(10):
        first = await anext(frames)
        await Probe(page).evaluate("document.body.style.background = '#00f'")
        last = first
        while not _blue(last):
            last = await anext(frames)
        late = page.screencast.frames()
        assert (await anext(late)).number >= last.number
    await late.aclose()
    await frames.aclose()


def _blue(frame: Frame) -> bool:
    with Image.open(BytesIO(frame.jpeg)) as picture:
        red, _, blue = picture.convert("RGB").getpixel((picture.width - 5, picture.height - 5))  # type: ignore[misc]
    return bool(blue > 200 and red < 60)


async def test_the_persons_hand_takes_over_before_the_first_byte(site: Site, page: Page) -> None:
    """The hook fires first, also while an action of the agent is under way, and the input arrives trusted."""
    body = (
        "<input id=i autofocus><button id=b onclick=\"out.textContent += event.isTrusted + ' '\">Press</button>"
        "<p id=out></p>"
    )
    await visit(page, site.show(body))
    order: list[str] = []
    page.human.on_takeover.append(lambda: order.append("taken"))
    box = await Probe(page).evaluate("b.getBoundingClientRect().toJSON()")
    assert box is not None
    await page.human.mouse("move", 5, 5)
    assert order == []
    async with page.turn:  # the agent is in the middle of something
        await page.human.mouse("down", box["x"] + 5, box["y"] + 5, button="left")
        await page.human.mouse("up", box["x"] + 5, box["y"] + 5, button="left")
    assert order == ["taken", "taken"]
    await Probe(page).until("() => out.textContent === 'true '")
    await Probe(page).evaluate("i.focus()")
    await page.human.text("héy")
    await page.human.key("press", "Backspace")
    assert await Probe(page).value("#i") == "hé"
    with pytest.raises(RefusedError):
        await page.human.key("press", "NoSuchKey")
    with pytest.raises((OriginDeniedError, navigate.NavigationFailedError)):
        await page.human.go("javascript:alert(1)")
