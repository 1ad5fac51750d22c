"""What is all on display is pictured as it stands there, the rest is drawn anew; no picture is older than its call."""

import asyncio
from collections.abc import Mapping
from io import BytesIO

import msgspec
import pytest
from browser_probe import Probe
from browser_site import Site
from browser_steps import visit
from PIL import Image, ImageChops

from browser import capture, navigate
from browser.engine import Engine
from browser.inspector.connection import Received, _Message
from browser.page import Page
from browser.values import Viewport

pytestmark = pytest.mark.asyncio(loop_scope="module")

REST_S = 0.35  # after this long a page that does nothing is pictured by its display
GREEN, RED = (0, 160, 0), (200, 0, 0)

_STYLE = (
    "body{margin:0;background:#fff}#a,canvas,iframe,input{display:block;border:0;padding:0;width:300px;height:200px}"
    "#a{background:#c80000}"
)
_BLURRED = "".join("<b style='float:left;width:420px;height:300px;background:red'>blurred</b>" for _ in range(30))
# What is drawn red, and the script that makes it green: through the document's nodes, and past them.
CHANGES = {
    "an attribute": ("<div id=a></div>", "a.style.background = '#00a000'"),
    "a class": ("<style>.g{background:#00a000!important}</style><div id=a></div>", "a.className = 'g'"),
    "a rule of a style sheet": (
        "<style id=s></style><div id=a></div>",
        "s.sheet.insertRule('#a{background:#00a000!important}')",
    ),
    "a style sheet of script's": (
        "<div id=a></div>",
        "{ const s = new CSSStyleSheet(); s.replaceSync('#a{background:#00a000}'); document.adoptedStyleSheets = [s] }",
    ),
    "a closed shadow root": (
        """<div id=a></div><script>inner = a.attachShadow({mode: 'closed'});
        inner.innerHTML = '<p style="margin:0;height:200px;background:#c80000"></p>'</script>""",
        "inner.firstChild.style.background = '#00a000'",
    ),
    "a canvas": (
        """<canvas id=c></canvas><script>g = c.getContext('2d');
        g.fillStyle = '#c80000'; g.fillRect(0, 0, 999, 999)</script>""",
        "g.fillStyle = '#00a000', g.fillRect(0, 0, 999, 999)",
    ),
    "a frame": (
        "<iframe id=f srcdoc='<body style=\"background:#c80000\">'></iframe>",
        "f.contentDocument.body.style.background = '#00a000'",
    ),
    "a scroll": (
        "<div id=a style='height:720px'></div><div style='height:2000px;background:#00a000'></div>",
        "scrollTo(0, 900)",
    ),
    "a property of a field": (
        """<style>input{appearance:none;margin:0;background:#c80000}input:checked{background:#00a000}</style>
        <input id=i type=checkbox>""",
        "i.checked = true",
    ),
    "the focus": ("<style>#a:focus{background:#00a000;outline:0}</style><div id=a tabindex=0></div>", "a.focus()"),
    "the first frame of a transition": (
        "<style>#a{transition:transform 9s}</style><div id=a></div>",
        "a.style.transform = 'translateX(1px)', a.style.background = '#00a000'",
    ),
    "what takes long to be laid out": (
        "<div id=a></div><div id=rows></div>",
        """rows.innerHTML = [...Array(5000).keys()].map((n) => `<p>row ${n}`).join(''),
        a.style.background = '#00a000'""",
    ),
    "what takes long to be drawn": (
        f"<div id=a></div>{_BLURRED}",
        """a.style.background = '#00a000', document.querySelectorAll('b').forEach((b) => {
            b.style.filter = 'blur(25px) drop-shadow(9px 9px 9px red)' })""",
    ),
    "a large image that may be decoded later": (
        """<div id=a></div><script>{ const c = document.createElement('canvas'); c.width = 3000; c.height = 2000
        const g = c.getContext('2d'); g.fillStyle = '#00a000'; g.fillRect(0, 0, 3000, 2000); i = new Image()
        i.decoding = 'async', i.src = c.toDataURL(), i.onload = () => document.title = 'loaded' }</script>""",
        "a.replaceWith(i)",
    ),
    "a frame in a process of its own": (
        "<div id=a></div><iframe src='{other}/frame'></iframe>",
        "a.style.background = '#00a000'",
    ),
    "a page that has a spinner": (
        """<style>@keyframes s{to{transform:rotate(1turn)}}
        u{position:fixed;right:0;width:20px;height:20px;background:blue;animation:s 1s infinite linear}</style>
        <u></u><div id=a></div>""",
        "a.style.background = '#00a000'",
    ),
}


class _Wire:
    """What goes to the engine for one page, and a way to keep frames of its display from us."""

    def __init__(self, page: Page) -> None:
        self.sent: list[str] = []
        self.dropped = 0
        self._page = page
        self._call = page.session.call
        self._receive = page.session.receive
        page.session.call = self._sending  # type: ignore[method-assign]

    def drop_frames(self) -> None:
        self._page.session.receive = self._receiving  # type: ignore[method-assign]

    async def _sending(
        self, method: str, params: Mapping[str, object] | None = None, *, received: Received | None = None
    ) -> msgspec.Raw:
        self.sent.append(method)
        return await self._call(method, params, received=received)

    def _receiving(self, message: _Message) -> None:
        if message.method == "Page.screencastFrame":
            self.dropped += 1
        else:
            self._receive(message)

    @property
    def drawn(self) -> int:
        return self.sent.count("Page.captureScreenshot")


def _shown(taken: capture.Capture) -> Image.Image:
    with Image.open(BytesIO(taken.original)) as picture:
        return picture.convert("RGB")


async def _colour(page: Page) -> object:
    return _shown(await capture.capture(page)).getpixel((150, 100))


async def _from_display(page: Page) -> capture.Capture:
    """A picture that is the frame on display. A busy machine draws late: then the page is not held to be all shown."""
    wire = _Wire(page)
    async with asyncio.timeout(90):
        while True:
            await asyncio.sleep(REST_S)
            drawn = wire.drawn
            taken = await capture.capture(page)
            if wire.drawn == drawn:
                return taken


async def _given_up(page: Page, seconds: float) -> None:
    """A picture that is cancelled after a while, if it is not there by then."""
    async with asyncio.timeout(seconds):
        await capture.capture(page)
        await asyncio.Event().wait()


@pytest.mark.parametrize("kind", CHANGES)
async def test_what_was_done_right_before_a_picture_is_in_it(site: Site, page: Page, kind: str) -> None:
    """However a page at rest is changed: the picture that is asked for next shows it."""
    body, change = CHANGES[kind]
    site.show("<p>a frame</p>", "/frame")
    body = body.replace("{other}", site.other_url)
    for rest in (REST_S, 0.1, 0.0):
        await visit(page, site.show(f"<style>{_STYLE}</style>{body}"))
        await asyncio.sleep(rest)
        assert await _colour(page) == RED
        await asyncio.sleep(rest)
        await Probe(page).evaluate(f"{change}; 0")
        assert await _colour(page) == GREEN
        await asyncio.sleep(rest)
        assert await _colour(page) == GREEN


async def test_the_frame_on_display_is_the_picture_that_would_be_drawn(site: Site, page: Page) -> None:
    """Equal in every pixel, scrolled and focused too."""
    lines = "".join(f"<p>Line {at} of text <a href=#>a link</a> <input value={at}></p>" for at in range(90))
    body = """<style>body{margin:0;background:linear-gradient(#fff,#88f)}p{font:17px serif;box-shadow:3px 3px 9px #0008}
    header{position:fixed;top:0;background:#ff8}</style><header>fixed</header>"""
    await visit(page, site.show(body + lines))
    await Probe(page).evaluate("document.links[44].focus(), scrollTo(0, 333), 0")
    on_display = await _from_display(page)
    page.display.pause()
    wire = _Wire(page)
    drawn = await capture.capture(page)
    assert wire.drawn == 1
    assert on_display.clip == drawn.clip
    assert on_display.clip[1] == 333
    assert ImageChops.difference(_shown(on_display), _shown(drawn)).getbbox() is None


async def test_a_finer_screen_is_drawn_with_all_its_pixels(site: Site, engine: Engine) -> None:
    """Its frames have one for each of CSS."""
    page = await engine.open(viewport=Viewport(801, 601, scale=2.0))
    await visit(page, site.show("<body style='background:#c80000'>"))
    wire = _Wire(page)
    for _ in range(2):
        await asyncio.sleep(REST_S)
        taken = await capture.capture(page)
        assert (taken.original_width, taken.original_height, taken.original_pixels_per_css) == (1602, 1202, 2.0)
    assert wire.drawn == 2
    await navigate.close(page)


async def test_a_page_that_draws_each_frame_is_drawn_anew(site: Site, page: Page) -> None:
    """Its display is a frame behind at any time; the document that comes next is not held to have its ways."""
    wire = _Wire(page)
    await visit(page, site.show("<p id=n></p><script>(function f() { requestAnimationFrame(f) })()</script>"))
    for _ in range(3):
        await asyncio.sleep(REST_S)
        await capture.capture(page)
    assert wire.drawn == 3
    assert "Page.startScreencast" not in wire.sent
    await visit(page, site.show("<p>still</p>"))
    await _from_display(page)


async def test_pictures_of_one_page_at_once_and_beside_a_live_view(site: Site, page: Page) -> None:
    """Each call has a picture of its own, and who watches the page goes on watching."""
    await visit(page, site.show("<body style='background:#c80000'>"))
    frames = page.screencast.frames()
    first = await anext(frames)
    await asyncio.sleep(REST_S)
    assert await asyncio.gather(*(_colour(page) for _ in range(5))) == [RED] * 5
    await Probe(page).evaluate("document.body.style.background = '#00a000'; 0")
    async with asyncio.timeout(10):
        assert (await anext(frames)).number > first.number
    await frames.aclose()


async def test_an_opener_behind_its_popup_is_pictured_all_the_same(site: Site, page: Page) -> None:
    """Each window has a display of its own."""
    popup = site.show("<body style='background:#00a000'>", "/popup")
    await visit(page, site.show(f"<body style='background:#c80000'><script>open('{popup}')</script>"))
    assert _shown(await _from_display(page)).getpixel((150, 100)) == RED


async def test_a_document_that_comes_meanwhile_costs_no_picture(site: Site, page: Page) -> None:
    """Between the look and the frame, or before: the picture is of one of the two."""
    one, other = (
        site.show("<body style='background:#c80000'>"),
        site.show("<body style='background:#00a000'>", "/other"),
    )
    for at in range(12):
        await visit(page, one)
        await asyncio.sleep(0.12)
        async with asyncio.TaskGroup() as tasks:
            colour = tasks.create_task(_colour(page))
            await asyncio.sleep(0.002 * at)
            await navigate.navigate(page, other)
        assert colour.result() in (RED, GREEN, (255, 255, 255))


async def test_a_picture_that_is_given_up_leaves_the_next_one_whole(site: Site, page: Page) -> None:
    """Cancelled at any moment: the frame that was on its way is nobody else's."""
    await visit(page, site.show("<body style='background:#c80000'>"))
    for at in range(12):
        await asyncio.sleep(0.12)
        with pytest.raises(TimeoutError):
            await _given_up(page, 0.002 * at)
        colour = GREEN if at % 2 else RED
        await Probe(page).evaluate(f"document.body.style.background = 'rgb{colour}'; 0")
        await asyncio.sleep(0.12)
        assert await _colour(page) == colour


async def test_a_frame_of_a_look_that_was_given_up_is_nobodys(site: Site, page: Page) -> None:
    """A large one is still being encoded when the next look begins, and comes under that one's number."""
    noise = """<body style="margin:0;background:#c80000">
    <canvas id=c width=1280 height=620 style="margin-top:100px"></canvas>
    <script>{ const g = c.getContext('2d'), d = g.createImageData(1280, 620);
    for (let i = 0; i < d.data.length; i++) d.data[i] = i % 4 == 3 ? 255 : Math.random() * 256;
    g.putImageData(d, 0, 0) }</script>"""
    await visit(page, site.show(noise))
    given_up, seen = 0, 0
    for at in range(15):
        await asyncio.sleep(REST_S)
        try:
            async with asyncio.timeout(0.03 + 0.01 * at):
                await page.display.look(await page.main_world())
        except TimeoutError:
            given_up += 1
        colour = GREEN if at % 2 else RED
        await Probe(page).evaluate(f"document.body.style.background = 'rgb{colour}'; 0")
        look = await page.display.look(await page.main_world())
        if look is not None:
            seen += 1
            with Image.open(BytesIO(look[0])) as picture:
                assert picture.convert("RGB").getpixel((20, 20)) == colour
    assert given_up
    async with asyncio.timeout(90):
        while not seen:
            await asyncio.sleep(REST_S)
            seen += await page.display.look(await page.main_world()) is not None


async def test_a_display_that_gives_no_frame_costs_no_picture(site: Site, page: Page) -> None:
    """Half a second once, and then it is not asked again for a while."""
    await visit(page, site.show("<body style='background:#c80000'>"))
    wire = _Wire(page)
    wire.drop_frames()
    async with asyncio.timeout(30):
        while not wire.dropped:
            await asyncio.sleep(REST_S)
            assert await _colour(page) == RED
    for _ in range(4):
        page.display.pause()  # as after four such looks: longer than any machine takes for one picture
    looks = wire.sent.count("Page.startScreencast")
    assert await _colour(page) == RED
    assert wire.sent.count("Page.startScreencast") == looks
    assert wire.drawn >= 2
