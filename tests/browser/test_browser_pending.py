"""Dialogs, choosers, popups and downloads: things with an id and a deadline that block nobody else."""

import asyncio
from pathlib import Path

import pytest
from browser_files import serving_files
from browser_probe import Probe
from browser_site import Answer, Site, html
from browser_steps import LONG_S, node, text, visit

from browser import actions, capture, navigate, pending
from browser.engine import Engine, running
from browser.errors import BlockedError, NoSuchThingError
from browser.inspector.chromium import DownloadFile
from browser.page import Page
from browser.pending import Pending

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_dialog_is_an_observation_and_blocks_only_its_page(site: Site, page: Page, engine: Engine) -> None:
    """A click that opens an alert answers at once; other pages go on; the answer lets the click finish."""
    site.show("<h1>Other</h1>", "/other")
    snapshot = await visit(
        page, site.show("<button onclick=\"out.textContent = confirm('Sure?')\">Ask</button><p id=out></p>")
    )
    other = await engine.open()
    await navigate.navigate(other, site.url + "/other")
    acted = await actions.click(page, node(snapshot, "button").ref)
    dialog = acted.observation.dialog
    assert dialog is not None
    assert page.pending.dialogs[dialog].message == "Sure?"
    assert page.pending.dialogs[dialog].kind == "confirm"
    async with asyncio.timeout(20):
        assert (await capture.capture(other)).width == 1280
    for call in (actions.click(page, node(snapshot, "button").ref), page.snapshot(), capture.capture(page)):
        with pytest.raises(BlockedError):
            await call
    answered = await page.pending.answer(dialog, accept=True)
    assert [n.name for n in answered.observation.diff.added] == ["true"]
    assert await text(page) == "true"
    with pytest.raises(NoSuchThingError):
        await page.pending.answer(dialog, accept=True)
    await navigate.close(other)


async def test_prompt_text_and_chained_dialogs(site: Site, page: Page) -> None:
    """A prompt takes text; the dialog after it is another object."""
    body = (
        "<button onclick=\"const a = prompt('Name?', 'x'); alert('Hi ' + a); out.textContent = a\">Ask</button>"
        "<p id=out></p>"
    )
    snapshot = await visit(page, site.show(body))
    first = (await actions.click(page, node(snapshot, "button").ref)).observation.dialog
    assert first is not None
    second = (await page.pending.answer(first, accept=True, text="Zoë")).observation.dialog
    assert second is not None
    assert second != first
    assert page.pending.dialogs[second].message == "Hi Zoë"
    await page.pending.answer(second, accept=True)
    assert await text(page) == "Zoë"


async def test_nobody_answers_a_dialog(site: Site, page: Page) -> None:
    """At its deadline a dialog gets the default answer and the page lives on."""
    snapshot = await visit(
        page, site.show("<button onclick=\"out.textContent = confirm('Sure?')\">Ask</button><p id=out></p>")
    )
    page.pending._seconds = (0.1, 0.1, 0.1)
    await actions.click(page, node(snapshot, "button").ref, settle_s=0.05)
    await Probe(page).until("() => out.textContent === 'false'")
    assert page.pending.dialogs == {}
    page.pending._seconds = (60, 60, 60)
    await actions.click(page, node(await page.snapshot(), "button").ref, settle_s=0.05)
    page.pending.abandon()
    while page.pending.dialogs:
        assert await page.activity.wait(5)
    assert (await page.snapshot()).nodes


async def test_beforeunload_is_a_dialog_too(site: Site, page: Page) -> None:
    """A page that asks to stay stays until the question is answered."""
    site.show("<h1>Next</h1>", "/next")
    body = (
        "<button>Touch</button><script>addEventListener('beforeunload', (e) => { e.preventDefault(); "
        "e.returnValue = 'x' })</script>"
    )
    snapshot = await visit(page, site.show(body))
    await actions.click(page, node(snapshot, "button").ref)
    going = await navigate.navigate(page, site.url + "/next")
    assert not going.committed
    dialog = going.observation.dialog
    assert dialog is not None
    assert page.pending.dialogs[dialog].kind == "beforeunload"
    await page.pending.answer(dialog, accept=False)
    assert page.url == site.url + "/"
    again = await navigate.navigate(page, site.url + "/next")
    assert again.observation.dialog is not None
    left = await page.pending.answer(again.observation.dialog, accept=True)
    assert page.url == site.url + "/next"
    assert left.observation.navigation is not None


async def test_a_refused_chooser_blocks_nothing(site: Site, page: Page, tmp_path: Path) -> None:
    """A file chooser is an object: dropped, the page works on; answered, the file is there."""
    body = (
        "<input type=file id=f style='display:none' onchange=\"out.textContent = f.files[0].name\">"
        "<button onclick='f.click()'>Pick</button><p id=out></p>"
    )
    snapshot = await visit(page, site.show(body))
    ref = node(snapshot, "button").ref
    chooser = (await actions.click(page, ref)).observation.choosers
    assert len(chooser) == 1
    page.pending.dismiss_chooser(chooser[0])
    assert (await page.snapshot()).nodes
    assert await Probe(page).evaluate("1 + 1") == 2
    again = (await actions.click(page, ref)).observation.choosers
    file = tmp_path / "note.txt"
    file.write_text("hello")
    await page.pending.choose(again[0], [file])
    assert await text(page) == "note.txt"
    with pytest.raises(NoSuchThingError):
        await page.pending.choose(again[0], [file])


async def test_popups_become_pages_of_their_own(site: Site, page: Page, engine: Engine) -> None:
    """A popup has its own generation, shares its opener's context, and outlives the opener."""
    site.show("<h1>Child</h1><script>document.title = document.cookie</script>", "/child")
    site.pages["/"] = html("<a href=/child target=_blank>Open</a>", set_cookie="seen=yes")
    snapshot = await visit(page, site.url + "/")
    opened = (await actions.click(page, node(snapshot, "link").ref, settle_s=LONG_S)).observation.opened
    assert len(opened) == 1
    child = engine.pages[opened[0]]
    assert child.generation != page.generation
    await Probe(child).until("() => document.readyState === 'complete'")
    seen = await child.snapshot()
    assert seen.title == "seen=yes"
    await navigate.close(page)
    assert (await child.snapshot()).title == "seen=yes"
    context = child.profile
    await navigate.close(child)
    assert context.pages == {}


async def test_popups_over_the_bound_are_closed(site: Site, page: Page, engine: Engine) -> None:
    """A page that opens windows without end gets as many as there is room for."""
    body = "<button onclick='for (let i = 0; i < 20; i++) window.open(`/p${i}`, `w${i}`)'>Spam</button>"
    snapshot = await visit(page, site.show(body))
    before = len(engine.pages)
    await actions.click(page, node(snapshot, "button").ref, settle_s=5)
    assert len(engine.pages) <= engine.settings.most_pages
    assert len(engine.pages) > before
    assert engine._admitted == len(engine.pages)


async def test_downloads_are_kept_with_their_bytes(site: Site, page: Page) -> None:
    """A download is an object with state, name and a private file."""
    content = bytes(range(256)) * 64
    site.pages["/file"] = Answer(
        content,
        headers={
            "content-disposition": 'attachment; filename="../../e vil.bin"',
            "content-type": "application/octet-stream",
        },
    )
    snapshot = await visit(page, site.show("<a href=/file>Get</a>"))
    acted = await actions.click(page, node(snapshot, "link").ref, settle_s=LONG_S)
    assert len(acted.observation.downloads) == 1
    assert acted.observation.navigation is None
    done = await page.pending.downloaded(acted.observation.downloads[0], 20)
    assert done.state == "done"
    assert done.byte_length == len(content)
    assert "/" not in done.file_name
    assert done.path is not None
    assert done.path.read_bytes() == content
    with pytest.raises(NoSuchThingError):
        await page.pending.downloaded("x99", 1)


async def test_a_download_without_end_is_stopped_at_its_bound(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never stops sending fills no disk: stopped while it runs, said to be too large, nothing kept."""
    monkeypatch.setattr(pending, "MOST_DOWNLOAD_BYTES", 4 << 20)
    with serving_files() as files:
        files.pages["/"] = f"<a href='/attached?size={1 << 40}'>Get</a>"
        snapshot = await visit(page, files.origin + "/")
        acted = await actions.click(page, node(snapshot, "link").ref, settle_s=LONG_S)
        done = await page.pending.downloaded(acted.observation.downloads[0], 20)
    assert (done.state, done.reason, done.path) == ("failed", "too_large", None)


async def test_a_download_dropped_as_it_completes_ends_nothing_else(site: Site, page: Page, engine: Engine) -> None:
    """Its file goes while its size is asked for: nothing of it is left, and every page of the engine goes on."""
    site.pages["/file"] = Answer(b"x" * 10, headers={"content-disposition": "attachment", "content-type": "text/odd"})
    snapshot = await visit(page, site.show("<a href=/file>Get</a>"))
    over, shelf = asyncio.Event(), page.pending._kept_downloads
    files: list[Path] = []

    def begun(download: object) -> None:
        assert isinstance(download, pending.Download)
        handle, _ = shelf._held[download.id]
        complete = handle.end

        def dropped_first(state: str) -> None:
            shelf.lapse(download.id)
            handle.path.unlink()
            complete(state)
            over.set()

        handle.end = dropped_first  # type: ignore[method-assign]
        files.append(handle.path)

    page.pending.on_change.append(begun)
    acted = await actions.click(page, node(snapshot, "link").ref, settle_s=LONG_S)
    await over.wait()
    with pytest.raises(NoSuchThingError):
        await page.pending.downloaded(acted.observation.downloads[0], 5)
    other = await engine.open()
    assert (await visit(other, site.url + "/")).nodes
    await navigate.close(other)
    assert not files[0].exists()


@pytest.mark.parametrize("size", [10, 1 << 40])
async def test_a_download_that_is_of_no_page_is_dropped(page: Page, size: int) -> None:
    """Its frame went as it began, so nobody could ask for it or end it: stopped, and nothing of it is left on disk."""
    chromium, over = page.context.chromium, asyncio.Event()
    stray = chromium.on_stray

    def told(file: DownloadFile) -> None:
        delete = file.delete

        async def deleted() -> None:
            await delete()
            over.set()

        file.delete = deleted  # type: ignore[method-assign]
        stray(file)

    chromium.on_stray = told
    page.context.on_download = lambda _file: False
    try:
        with serving_files() as files:
            files.pages["/"] = f"<a href='/attached?size={size}'>Get</a>"
            snapshot = await visit(page, files.origin + "/")
            acted = await actions.click(page, node(snapshot, "link").ref, settle_s=0.3)
            async with asyncio.timeout(10):
                await over.wait()
    finally:
        chromium.on_stray = stray
    assert acted.observation.downloads == ()
    assert list(page.context.downloads.iterdir()) == []
    assert chromium._downloads == {}


@pytest.mark.parametrize("size", [10, 1 << 40])
async def test_a_download_that_the_engine_does_not_tell_of_is_swept(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """As of a link in a frame that goes at once: the file is stopped and removed, and no other is."""
    monkeypatch.setattr("browser.engine.SWEEP_S", 0.2)
    async with running() as apart:
        page = await apart.open()
        with serving_files() as files:
            files.pages["/"] = f"<a href='/attached?size=7'>Known</a><a href='/attached?size={size}'>Untold</a>"
            snapshot = await visit(page, files.origin + "/")
            clicked = await actions.click(page, node(snapshot, "link", "Known").ref, settle_s=LONG_S)
            kept = await page.pending.downloaded(clicked.observation.downloads[0], 20)
            assert kept.path is not None
            swept, cancel = asyncio.Event(), page.context.cancel
            monkeypatch.setattr(page.context, "cancel", lambda guid: (cancel(guid), swept.set()))
            monkeypatch.setattr(page.context, "tell", lambda _file: False)
            monkeypatch.setattr(page.context.chromium, "on_stray", lambda _file: None)
            acted = await actions.click(page, node(snapshot, "link", "Untold").ref, settle_s=0.3)
            async with asyncio.timeout(10):
                await swept.wait()
                while await asyncio.to_thread(_names, page.context.downloads) != [kept.path.name]:
                    await page.context.sweep()
        assert acted.observation.downloads == ()
        assert kept.path.read_bytes()


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def test_an_ended_page_forgets_what_was_pending(site: Site, page: Page) -> None:
    """A page that closes with a dialog open leaves no timer and no dialog."""
    snapshot = await visit(page, site.show("<button onclick=\"alert('x')\">Ask</button>"))
    await actions.click(page, node(snapshot, "button").ref)
    pending: Pending = page.pending
    assert pending.dialogs
    await navigate.close(page)
    assert pending.dialogs == {}
    assert page.activity.ended == "closed"
