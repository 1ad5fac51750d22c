"""Files into and out of a page, byte for byte."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from browser_probe import Probe
from browser_site import Answer, Request, Site
from browser_steps import LONG_S, Effects, node, text, visit

from browser import transfers
from browser.errors import BlockedError, NoSuchThingError, RefusedError, StaleRefError, TransferFailedError
from browser.page import Page
from browser.trace import _Recording

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORM = """<form id=f><label>Attachment <input type=file id=i multiple></label></form>
    <input type=file aria-label=single style="opacity:0"><p id=out></p><script>
i.onchange = async () => { for (const file of i.files) { const body = await file.arrayBuffer();
  const hash = await crypto.subtle.digest('SHA-256', body);
  out.textContent += file.name + ' ' + file.size + ' ';
  const hex = Array.from(new Uint8Array(hash), b => b.toString(16).padStart(2, '0')).join('');
  out.textContent += hex + ' ' } }</script>"""


async def test_upload_by_path_is_equal_by_hash(site: Site, page: Page, tmp_path: Path) -> None:
    """Large and empty files arrive whole under the names asked for."""
    big, empty = tmp_path / "artifact1", tmp_path / "artifact2"
    big.write_bytes(bytes(range(256)) * (60 << 12))  # 60 MiB: over what a peer can take
    empty.write_bytes(b"")
    snapshot = await visit(page, site.show(FORM))
    ref = node(snapshot, "file_input", "Attachment").ref
    target = await transfers.upload_target(page, ref)
    assert (target.label, target.origin, target.frame) == ("Attachment", site.url, "main")
    digest = hashlib.sha256(big.read_bytes()).hexdigest()
    files = (transfers.UploadFile(big, "räport.bin", digest), transfers.UploadFile(empty, "none.txt"))
    done = await transfers.upload(page, ref, files, decided=target, snapshot_id=snapshot.snapshot_id)
    assert done.target == target
    await Probe(page).until("() => out.textContent.includes('none.txt')")
    told = (await text(page)).split()
    assert told == ["räport.bin", str(60 << 20), digest, "none.txt", "0", hashlib.sha256(b"").hexdigest()]


async def test_an_upload_is_refused_before_any_effect(site: Site, page: Page, tmp_path: Path) -> None:
    """Wrong hash, name, target, count or node: refused, and nothing attached."""
    file = tmp_path / "a"
    file.write_bytes(b"x")
    snapshot = await visit(page, site.show(FORM + "<button>b</button>"))
    ref = node(snapshot, "file_input", "single").ref
    good = transfers.UploadFile(file, "a.txt")
    target = await transfers.upload_target(page, ref)
    other = await transfers.upload_target(page, node(snapshot, "file_input", "Attachment").ref)
    effects = Effects()
    for files, reason in (
        ((transfers.UploadFile(file, "a.txt", "0" * 64),), "hash_mismatch"),
        ((transfers.UploadFile(file, "../a"),), "bad_file_name"),
        ((transfers.UploadFile(file, ".."),), "bad_file_name"),
        ((transfers.UploadFile(file, "a\nb"),), "bad_file_name"),
        ((transfers.UploadFile(tmp_path / "none", "a"),), "no_such_file"),
        ((good, good), "one_file_only"),
    ):
        with pytest.raises(TransferFailedError) as caught:
            await transfers.upload(page, ref, files, decided=target, effect=effects.effect())
        assert caught.value.reason == reason
    with pytest.raises(StaleRefError):
        await transfers.upload(page, ref, (good,), decided=other, effect=effects.effect())
    with pytest.raises(RefusedError):
        await transfers.upload(page, node(snapshot, "button").ref, (good,), effect=effects.effect())
    assert effects.entered == 0
    assert await Probe(page).evaluate("document.querySelectorAll('input')[1].files.length") == 0


async def test_download_uses_the_pages_session(site: Site, page: Page) -> None:
    """The bytes come with the page's cookies and are equal by hash."""
    content = bytes(range(256)) * 8192
    site.pages["/file"] = lambda request: Answer(
        content if "a=1" in request.headers.get("cookie", "") else b"", headers={"set-cookie": "a=1"}
    )
    site.pages["/empty"] = Answer(status=204)
    await visit(page, site.show("<h1>x</h1>"))
    await Probe(page).evaluate("document.cookie = 'a=1'")
    fetched = await transfers.download(page, site.url + "/file")
    assert fetched.content == content
    assert fetched.sha256 == hashlib.sha256(content).hexdigest()
    assert (await transfers.download(page, site.url + "/empty")).content == b""


async def test_downloads_that_are_refused(site: Site, page: Page) -> None:
    """Redirects, other origins, other statuses, too large and too slow are told apart."""
    import asyncio

    never = asyncio.Event()
    site.pages["/moved"] = Answer(status=302, headers={"location": "/file"})
    site.pages["/file"] = Answer(bytes(1 << 20))
    site.pages["/slow"] = Answer(b"x", hold=never)
    await visit(page, site.show("<h1>x</h1>"))
    for url, options, reason in (
        (site.url + "/moved", {}, "redirect_refused"),
        (site.other_url + "/file", {}, "cross_origin"),
        ("file:///etc/passwd", {}, "cross_origin"),
        (site.url + "/none", {}, "status_refused"),
        (site.url + "/file", {"most": 1000}, "too_large"),
        (site.url + "/slow", {"seconds": 0.3}, "too_slow"),
    ):
        with pytest.raises(TransferFailedError) as caught:
            await transfers.download(page, url, **options)  # type: ignore[arg-type]
        assert caught.value.reason == reason
    never.set()
    assert len(site.seen("/moved")) == 1


async def test_the_site_sees_one_submit_with_the_exact_text(site: Site, page: Page) -> None:
    """Fill and submit a form: the server counts one request with the exact Unicode text."""
    from browser import actions

    bodies: list[bytes] = []

    def receive(request: Request) -> Answer:
        bodies.append(request.body)
        return Answer(b"<h1>Thanks</h1>", headers={"content-type": "text/html"})

    site.pages["/submit"] = receive
    snapshot = await visit(
        page,
        site.show(
            "<meta charset=utf-8><form method=post action=/submit enctype=text/plain>"
            "<input name=t aria-label=t><button>Send</button></form>"
        ),
    )
    await actions.fill(page, node(snapshot, "textbox").ref, "Grüße 世界 🙂")
    acted = await actions.click(page, node(snapshot, "button").ref, settle_s=LONG_S)
    assert acted.observation.page is not None
    assert node(acted.observation.page, "heading").name == "Thanks"
    assert bodies == ["t=Grüße 世界 🙂\r\n".encode()]


async def test_a_trace_is_a_file_on_request(site: Site, page: Page, tmp_path: Path) -> None:
    """A trace runs between start and stop, once at a time."""
    trace = page.profile.trace
    with pytest.raises(NoSuchThingError):
        await trace.stop(tmp_path / "t.zip")
    await trace.start()
    with pytest.raises(BlockedError):
        await trace.start()
    await visit(page, site.show("<h1>x</h1><script>console.log('said')</script>"))
    assert await trace.stop(tmp_path / "t.zip") > 1000
    with zipfile.ZipFile(tmp_path / "t.zip") as file:
        lines = [json.loads(line) for line in file.read("trace.trace").splitlines()]
        asked = [json.loads(line)["snapshot"]["request"]["url"] for line in file.read("trace.network").splitlines()]
        pictures = {name.removeprefix("resources/") for name in file.namelist() if name.startswith("resources/")}
    kinds = [line["type"] for line in lines]
    said = next(line for line in lines if line["type"] == "console")
    assert (said["text"], said["location"]["lineNumber"]) == ("said", 0)
    assert kinds[0] == "context-options"
    assert "event" in kinds
    assert site.url + "/" in asked
    assert pictures == {line["sha1"] for line in lines if line["type"] == "screencast-frame"} != set()


async def test_a_stopped_trace_leaves_nothing_in_memory(site: Site, page: Page, tmp_path: Path) -> None:
    """Neither a written nor a dropped trace keeps its pictures with the page."""
    trace = page.profile.trace
    await visit(page, site.show("<h1>x</h1>"))
    await trace.start()
    await trace.stop(tmp_path / "t.zip")
    await trace.start()
    watching = trace._recordings[0].done
    trace.drop()
    await watching.wait()
    assert page.activity.ended is None
    kept = [*page.on_navigation, *page.on_ended]
    assert not [told for told in kept if isinstance(getattr(told, "__self__", None), _Recording)]
    await visit(page, site.url + "/")
