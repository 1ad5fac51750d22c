"""The report page, opened in real Chromium."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from demo import demo_runs
from harness.chromium import plain_chromium
from playwright.async_api import Browser, Page

from lomi.demo.report import report

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[Browser]:
    async with plain_chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def page(engine: Browser) -> AsyncIterator[Page]:
    context = await engine.new_context()
    try:
        yield await context.new_page()
    finally:
        await context.close()


async def opened(page: Page, folder: Path, text: str) -> list[str]:
    """Write and open a report; the addresses that it asked for beside its own."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    await page.goto(file.as_uri())
    return [url for url in asked if url != file.as_uri() and not url.startswith("data:")]


async def test_hostile_text_stays_text_and_nothing_is_fetched(page: Page, tmp_path: Path) -> None:
    """Names, logs and answers that hold markup are shown as characters, unseen ones by number."""
    asked = await opened(page, tmp_path, report(demo_runs.run(demo_runs.HOSTILE)))
    shown = await page.inner_text("main")
    assert asked == []
    assert await page.title() == "Lomi demo: good"
    assert await page.locator("script, [onerror]").count() == 0
    assert "<script>document.title='owned'</script>" in shown
    assert "\\u202eevil\\u001b[31m" in shown


async def test_the_page_forbids_scripts_even_if_one_got_in(page: Page, tmp_path: Path) -> None:
    """The page's own policy stops a script that is put into its text."""
    text = report(demo_runs.run()).replace("<footer>", "<script>document.title='owned'</script><footer>")
    await opened(page, tmp_path, text)
    assert await page.locator("script").count() == 1
    assert await page.title() == "Lomi demo: good"


async def test_every_picture_is_inside_and_decodes(page: Page, tmp_path: Path) -> None:
    """Each step shows phone and page side by side, from bytes in the page itself."""
    made = demo_runs.run()
    await opened(page, tmp_path, report(made))
    decode = "async i => { i.loading = 'eager'; await i.decode(); return i.naturalWidth }"
    widths = await page.evaluate(f"Promise.all([...document.images].map({decode}))")
    assert widths == [8] * (2 * len(made.steps) + 2)
    boxes = [await page.locator(f"#step-1 figure.{side}").bounding_box() for side in ("phone", "page")]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]


@pytest.mark.parametrize("width", [320, 390, 1280])
async def test_the_page_never_scrolls_sideways(page: Page, tmp_path: Path, width: int) -> None:
    """It fits a phone's width, also with every call opened and long words in it."""
    await page.set_viewport_size({"width": width, "height": 800})
    await opened(page, tmp_path, report(demo_runs.run("x" * 500)))
    await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_it_is_dark_where_the_reader_wants_it(page: Page, tmp_path: Path) -> None:
    """The two schemes differ, and text stands out in both."""
    await opened(page, tmp_path, report(demo_runs.run()))
    colours = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        colours.append(await page.evaluate("[...'01'].map(i => getComputedStyle(document.documentElement)"
                                           "[+i ? 'color' : 'backgroundColor'])"))  # fmt: skip
    assert len({colour for pair in colours for colour in pair}) == 4


async def test_a_failed_run_says_where(page: Page, tmp_path: Path) -> None:
    """The verdict, the step's problem, what was expected, and how many steps were reached."""
    made = demo_runs.run(problem="the phone did not show Submitted", steps=4, good=False)
    await opened(page, tmp_path, report(made))
    shown = await page.inner_text("main")
    assert "Something failed" in shown
    assert "the phone did not show Submitted" in shown
    assert "expected: fine" in shown
    assert "3 of 14 steps" in shown
