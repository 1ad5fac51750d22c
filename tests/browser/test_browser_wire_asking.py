"""What pages ask for, over the wire: dialogs, choosers, downloads and popups have ids, and block nobody else."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from browser_files import FileSite, serving_files, sha256
from browser_wire import WirePage
from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, opened_world, owner, policy_text, until
from harness.agent import Answered

TOKEN = "asking-token"
DIALOGS = """<!doctype html><title>Dialogs</title>
<button onclick="out.textContent = 'confirmed ' + confirm('Sure?')">Ask</button>
<button onclick="fetch('/told?' + confirm('Still there?'))">Report</button>
<button onclick="out.textContent = 'named ' + prompt('Name?', 'x')">Name</button><p id=out></p>"""
LOUD = "<!doctype html><title>Loud</title><h1>Loud</h1><script>alert('Welcome')</script>"
OPENER = "<!doctype html><title>Opener</title><a href=/popup target=_blank>Open</a>"
POPUP = "<!doctype html><title>Popup</title><button onclick=\"out.textContent = 'hit'\">Inside</button><p id=out></p>"
STAYING = """<!doctype html><title>Staying</title><button>Touch</button><script>
addEventListener('beforeunload', event => { event.preventDefault(); event.returnValue = 'x' })</script>"""


@pytest.fixture(scope="module")
def site() -> Iterator[FileSite]:
    """Pages that ask."""
    with serving_files() as made:
        made.pages |= {"/dialogs": DIALOGS, "/loud": LOUD, "/opener": OPENER, "/popup": POPUP, "/staying": STAYING}
        yield made


@pytest.fixture(scope="module")
def world(site: FileSite) -> Iterator[World]:
    """A broker whose policy decides on uploads."""
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    client = ClientEntry(
        label="qa", scopes=ALL_SCOPES, origins=(site.origin,), token_sha256=token, decide=("lomi_browser_upload",)
    )
    with opened_world(policy_text(client)) as made:
        yield made


@pytest_asyncio.fixture
async def qa(world: World) -> AsyncIterator[Agent]:
    """A client."""
    async with agent(world, token=TOKEN) as made:
        yield made


def lines(said: Answered) -> list[str]:
    """What was seen after an act that succeeded."""
    assert said.short == "receipt succeeded/complete", said.raw
    return list(said.data["observation"]["lines"])


def named(said: Answered, head: str) -> str:
    """The id in the one line of an observation that begins so."""
    (line,) = [line for line in lines(said) if line.startswith(head)]
    return line[len(head) :].split()[0].rstrip(":")


def pending(held: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The one thing of this kind in an observation or a snapshot, without the time left, which is within its bound."""
    (found,) = [dict(one) for one in held["pending"] if one["kind"] == kind]
    most = {"dialog": 60_000, "chooser": 120_000, "download": 600_000}.get(kind)
    assert most is None or most - 30_000 < found.pop("expiresInMs") <= most
    return found


def answering(said: Answered, page: WirePage, ref: str) -> dict[str, str]:
    """The fields of an act on what an observation listed."""
    seen = said.data["observation"]
    document = seen.get("navigationId") or page.named["navigationId"]
    return {"navigationId": document, "snapshotId": seen["snapshotId"], "elementRef": ref}


async def test_a_dialog_blocks_only_its_page_and_is_answered_by_its_id(qa: Agent, site: FileSite) -> None:
    """A confirm is in the observation; acts and looks say what to do; another page's picture takes under a second."""
    page = await WirePage.open(qa, site.origin + "/dialogs")
    other = await WirePage.open(qa, site.origin + "/popup")
    ask = await page.element("Ask")
    asked = await page.act("click", **ask)
    dialog = named(asked, "dialog ")
    assert any('confirm "Sure?"' in line and f"click {dialog}-accept" in line for line in lines(asked))
    one = {"kind": "dialog", "id": dialog, "type": "confirm", "text": "Sure?"}
    assert pending(asked.data["observation"], "dialog") == one
    for refused in (
        await page.act("click", **ask),
        await qa.call("lomi_browser_snapshot", page.target()),
        await page.act("fill", **answering(asked, page, dialog + "-accept"), text="x"),
    ):
        failure = refused.error or refused.result
        if refused.code or failure["reason"] == "dialog_open":
            assert (failure["reason"], failure["details"]["current"]) == ("dialog_open", dialog)
        else:
            assert refused.short == "receipt failed/none UNSUPPORTED_CAPABILITY (not_answerable)"

    async def pictured_at_once() -> bool:
        began = time.monotonic()
        await qa.ask("lomi_browser_screenshot", **other.target("navigationId"))
        return time.monotonic() - began < 1

    await until(pictured_at_once)
    answered = await page.act("click", **answering(asked, page, dialog + "-accept"))
    assert any('"confirmed true"' in line for line in lines(answered))
    assert "pending" not in answered.data["observation"]
    assert "pending" not in await page.snapshot()
    gone = await page.act("click", **answering(asked, page, dialog + "-accept"))
    assert gone.short == "TARGET_NOT_FOUND (no_such_dialog)"


async def test_prompts_take_text_and_keys_answer_too(qa: Agent, site: FileSite) -> None:
    """Fill gives a prompt its text, Escape dismisses it."""
    page = await WirePage.open(qa, site.origin + "/dialogs")
    asked = await page.click("Name")
    filled = await page.act("fill", **answering(asked, page, named(asked, "dialog ")), text="Zoë")
    assert any('"named Zoë"' in line for line in lines(filled))
    again = await page.click("Name")
    escaped = await page.act("key", **answering(again, page, named(again, "dialog ")), key="Escape")
    assert any('"named null"' in line for line in lines(escaped))


async def test_a_dialog_of_a_document_that_still_loads_can_be_answered(qa: Agent, site: FileSite) -> None:
    """A page that opens with an alert is open; its observation names all that the answer needs."""
    page = await WirePage.open(qa, site.origin + "/loud")
    (line,) = [line for line in page.opened["lines"] if line.startswith("dialog ")]
    dialog = line.split()[1]
    said = await page.act(
        "click",
        navigationId=page.named["navigationId"],
        snapshotId=page.opened["snapshotId"],
        elementRef=f"{dialog}-accept",
    )
    assert said.short == "receipt succeeded/complete", said.raw
    assert (await page.element("Loud", "heading"))["elementRef"]


async def test_a_page_that_asks_to_stay_is_answered(qa: Agent, site: FileSite) -> None:
    """A question before leaving: the navigation waits for its answer, and is made when it is yes."""
    page = await WirePage.open(qa, site.origin + "/staying")
    await page.click("Touch")
    went = {**await qa.keyed(), **page.target("leaseId"), "url": site.origin + "/popup", "waitMs": 15000}
    asked = await qa.call("lomi_browser_navigate", went)
    assert not asked.result["committed"]
    stayed = await page.act("click", **answering(asked, page, named(asked, "dialog ") + "-dismiss"))
    assert stayed.short == "receipt succeeded/complete"
    assert (await page.snapshot())["url"] == site.origin + "/staying"
    again = await qa.call("lomi_browser_navigate", {**went, "requestKey": "again"})
    left = await page.act("click", **answering(again, page, named(again, "dialog ") + "-accept"))
    assert left.data["observation"]["navigationId"] != page.named["navigationId"]
    assert (await page.snapshot())["url"] == site.origin + "/popup"


async def test_a_dialog_whose_holder_is_gone_gets_its_default(qa: Agent, world: World, site: FileSite) -> None:
    """A person takes the page: the open question is declined at once, long before its deadline."""
    page = await WirePage.open(qa, site.origin + "/dialogs")
    named(await page.click("Report"), "dialog ")
    await owner(world, "take", name=page.named["panelId"])
    await until(lambda: "/told?false" in site.asked, seconds=10)


async def test_a_client_that_vanishes_leaves_no_page_waiting(qa: Agent, world: World, site: FileSite) -> None:
    """The client is cut off with a dialog open: its page ends, and the engine serves others at once."""
    async with agent(world, token=TOKEN) as lost:
        page = await WirePage.open(lost, site.origin + "/dialogs")
        named(await page.click("Ask"), "dialog ")

    async def ended() -> bool:
        panels = (await qa.ask("lomi_panel_list", workspaceId=qa.workspace)).data["items"]
        return page.named["panelId"] not in [row["id"] for row in panels]

    await until(ended)
    fresh = await WirePage.open(qa, site.origin + "/dialogs")
    assert (await fresh.element("Ask"))["elementRef"]


async def test_a_file_chooser_is_dismissed_or_answered_by_an_upload(qa: Agent, world: World, site: FileSite) -> None:
    """Refused, the page works on; answered by its id, the page has the file."""
    (world.project / "note.txt").write_bytes(b"note")
    digest = hashlib.sha256(b"note").hexdigest()
    asked = {"relativePath": "note.txt", "kind": "file", "expectedByteLength": 4, "expectedSha256": digest}
    artifact = (await qa.do("lomi_artifact_import", await qa.revised(**asked))).result["artifactId"]
    page = await WirePage.open(qa, site.origin + "/")
    first = await page.click("Pick")
    chooser = named(first, "file chooser ")
    one = {"kind": "chooser", "id": chooser, "frameId": "main"}
    looked = (await page.snapshot(), await qa.ask("lomi_browser_snapshot", **page.target(), query="Pick"))
    for held in (first.data["observation"], looked[0], looked[1].data):
        assert pending(held, "chooser") == one
    dropped = await page.act("click", **answering(first, page, f"{chooser}-dismiss"))
    assert dropped.short == "receipt succeeded/complete", dropped.raw
    second = await page.click("Pick")
    fields = {"frameId": "main", "artifactId": artifact, "expectedSha256": digest, "fileName": "note.txt"}

    async def upload(ref: str) -> Answered:
        arguments = {**await qa.revised(), **page.target("leaseId"), **answering(second, page, ref), **fields}
        return await qa.call("lomi_browser_upload", {**arguments, "waitMs": 15000})

    assert (await upload(chooser)).short == "TARGET_NOT_FOUND (no_such_chooser)"
    done = await upload(named(second, "file chooser "))
    assert any('"note.txt"' in line for line in lines(done))
    assert done.result["target"]["documentUrl"] == site.origin + "/"


async def test_a_download_of_the_page_is_had_by_its_id(qa: Agent, site: FileSite) -> None:
    """A link that downloads: the observation names it, its bytes become an artifact, equal by hash."""
    page = await WirePage.open(qa, site.origin + "/")
    clicked = await page.click("Get")
    download = named(clicked, "download ")
    assert any('"note.bin"' in line for line in lines(clicked))
    begun = pending(clicked.data["observation"], "download")
    assert (begun["id"], begun["text"]) == (download, "note.bin")
    kept = await page.download("about:blank", downloadId=download)
    assert kept.short == "receipt succeeded/complete", kept.raw
    assert kept.result["artifact"]["sha256"] == sha256(70_000)
    dropped = await page.act("click", **answering(clicked, page, f"{download}-dismiss"))
    assert dropped.short == "receipt succeeded/complete", dropped.raw
    said = await page.download("about:blank", downloadId=download)
    assert said.short == "receipt failed/none TARGET_NOT_FOUND (no_such_download)"


async def test_a_popup_is_a_panel_of_its_own(qa: Agent, site: FileSite) -> None:
    """The observation names the popup's panel, the panel list has it, and its holder acts on it."""
    page = await WirePage.open(qa, site.origin + "/opener")
    seen = await page.click("Open")
    while not (found := [line for line in lines(seen) if line.startswith("popup: ")]):
        document = {name: seen.result[name] for name in ("navigationId", "snapshotId")}
        seen = await page.act("scroll", **document, deltaX=0, deltaY=0)
    (line,) = found
    told = dict(part.split(" ") for part in line.removeprefix("popup: ").split(", "))
    one = {"kind": "popup", "id": told["panelId"], **{name: told[name] for name in ("browserGeneration", "leaseId")}}
    assert pending(seen.data["observation"], "popup") == one
    listed = (await qa.ask("lomi_panel_list", workspaceId=qa.workspace)).data
    (row,) = [row for row in listed["items"] if row["id"] == told["panelId"]]
    assert seen.data["observation"]["domainRevision"] == listed["domainRevision"]
    assert (row["browserGeneration"], row["ownership"]) == (told["browserGeneration"], "this_session")
    popup = WirePage(qa, {"workspaceId": qa.workspace, **told}, {})
    assert any('"hit"' in line for line in lines(await popup.click("Inside")))


async def test_two_clients_interleave_and_never_cross(qa: Agent, world: World, site: FileSite) -> None:
    """Two clients act in turn on pages of their own, one with an open dialog: no act lands on the other's page."""
    async with agent(world, token=TOKEN) as second:
        pages = [await WirePage.open(client, site.origin + "/dialogs") for client in (qa, second)]

        async def client(page: WirePage, word: str) -> None:
            for number in range(10):
                asked = await page.click("Name")
                ref = named(asked, "dialog ")
                filled = await page.act("fill", **answering(asked, page, ref), text=f"{word}{number}")
                assert any(f'"named {word}{number}"' in line for line in lines(filled))

        async with asyncio.TaskGroup() as clients:
            for page, word in zip(pages, ("a", "b"), strict=True):
                clients.create_task(client(page, word))
