"""Videos of pages over the wire: begun, kept, dropped, and ended by whoever takes the page."""

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from browser_files import FileSite, serving_files
from browser_wire import WirePage
from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, opened_world, owner, policy_text
from PIL import Image

PAGE = """<!doctype html><title>Colours</title><body style="margin:0;background:red">
<button onclick="document.body.style.background = 'blue'">Paint</button>"""
RESTLESS = """<!doctype html><title>Restless</title><body><button onclick="count(performance.now(), 0)">Count</button>
<p id=out></p><script>
let hue = 0
setInterval(() => { document.body.style.background = `hsl(${hue = (hue + 7) % 360} 80% 50%)` }, 10)
const count = (began, drawn) => performance.now() - began > 1500 && drawn > 40
  ? out.textContent = 'enough' : requestAnimationFrame(() => count(began, drawn + 1))</script>"""
NO_PICTURES = tuple(scope for scope in ALL_SCOPES if scope != "browser.capture_composite")


@pytest.fixture(scope="module")
def site() -> Iterator[FileSite]:
    """A page that a click paints, and one that never rests."""
    with serving_files() as made:
        made.pages |= {"/colours": PAGE, "/restless": RESTLESS}
        yield made


@pytest.fixture(scope="module")
def world(site: FileSite) -> Iterator[World]:
    """A broker with two clients that may have pictures and one that may not."""
    clients = (("qa", ALL_SCOPES), ("other", ALL_SCOPES), ("reader", NO_PICTURES))
    entries = [ClientEntry(label=label, scopes=scopes, origins=(site.origin,)) for label, scopes in clients]
    with opened_world(policy_text(*entries)) as made:
        yield made


@pytest_asyncio.fixture
async def qa(world: World) -> AsyncIterator[Agent]:
    """A client."""
    async with agent(world) as made:
        yield made


async def video(page: WirePage, action: str) -> Any:
    """Start, stop or drop."""
    return await page.qa.call("lomi_browser_screenshot", {**page.target("navigationId"), "video": action})


async def bytes_of(qa: Agent, artifact_id: str) -> bytes:
    """What the broker hands out of a video."""
    given = {"workspaceId": qa.workspace, "artifactId": artifact_id, "offset": 0, "maxBytes": 3_145_728}
    (piece,) = (await qa.client.call_raw("lomi_artifact_read", msgspec.json.encode(given))).pictures
    return piece.content


def colours(content: bytes) -> list[str]:
    """What the frames show in their middle."""
    found = []
    with Image.open(io.BytesIO(content)) as shown:
        for number in range(shown.n_frames):
            shown.seek(number)
            red, _, blue = shown.convert("RGB").getpixel((shown.width // 2, shown.height // 2))
            found.append("red" if red > blue else "blue")
    return found


async def test_a_video_is_named_at_its_start_and_there_at_its_end(qa: Agent, site: FileSite) -> None:
    """The start gives an empty artifact's id, the stop the same id with bytes: red, then blue, by their hash."""
    page = await WirePage.open(qa, site.origin + "/colours")
    begun = (await video(page, "start")).data["artifact"]
    assert (begun["byteLength"], begun["sha256"]) == (0, hashlib.sha256(b"").hexdigest())
    early = await qa.call("lomi_artifact_read", {"workspaceId": qa.workspace, "artifactId": begun["id"]})
    assert early.short == "TARGET_NOT_FOUND"
    assert (await video(page, "start")).short == "TARGET_BUSY (video_running)"
    assert (await page.click("Paint")).short == "receipt succeeded/complete"
    kept = (await video(page, "stop")).data["artifact"]
    content = await bytes_of(qa, kept["id"])
    assert kept["id"] == begun["id"]
    assert hashlib.sha256(content).hexdigest() == kept["sha256"]
    shown = colours(content)
    assert (shown[0], shown[-1]) == ("red", "blue")
    assert (await video(page, "stop")).short == "TARGET_NOT_FOUND (no_such_video)"


async def test_a_dropped_video_is_nowhere(qa: Agent, world: World, site: FileSite) -> None:
    """Nothing of it is stored, and another may begin."""
    page = await WirePage.open(qa, site.origin + "/colours")
    begun = (await video(page, "start")).data["artifact"]
    assert (await video(page, "drop")).data["artifact"]["id"] == begun["id"]
    assert (await video(page, "start")).code is None
    assert (await video(page, "stop")).code is None
    assert list(world.home.rglob(f"{begun['id']}.*")) == []


async def test_whoever_takes_the_page_is_not_recorded(qa: Agent, world: World, site: FileSite) -> None:
    """The part up to then is kept under the id that its start gave out; the old holder can neither stop nor start."""
    page = await WirePage.open(qa, site.origin + "/colours")
    begun = (await video(page, "start")).data["artifact"]
    await owner(world, "take", name=page.named["panelId"])
    for action in ("stop", "start", "drop"):
        assert (await video(page, action)).code == "CONTROL_REVOKED"
    read = {"workspaceId": qa.workspace, "artifactId": begun["id"]}
    async with asyncio.timeout(10):
        while (await qa.call("lomi_artifact_read", read)).code == "TARGET_NOT_FOUND":
            pass
    assert set(colours(await bytes_of(qa, begun["id"]))) == {"red"}


async def test_a_video_is_of_its_session_alone_and_needs_the_scope_of_pictures(
    qa: Agent, world: World, site: FileSite
) -> None:
    """Another session sees no artifact of it; without `browser.capture_composite` there is none."""
    page = await WirePage.open(qa, site.origin + "/colours")
    await video(page, "start")
    kept = (await video(page, "stop")).data["artifact"]
    async with agent(world, "other") as other:
        foreign = await other.call("lomi_artifact_read", {"workspaceId": other.workspace, "artifactId": kept["id"]})
        assert foreign.short == "TARGET_NOT_FOUND"
    async with agent(world, "reader") as reader:
        own = await WirePage.open(reader, site.origin + "/colours")
        assert (await video(own, "start")).short == "SCOPE_DENIED (scope_missing)"
    unclear = {**page.target("navigationId"), "video": "start", "area": "full_page"}
    assert (await qa.call("lomi_browser_screenshot", unclear)).short == "RESOURCE_EXHAUSTED (variant_unclear)"


async def test_a_restless_page_has_ten_frames_a_second_at_most(qa: Agent, site: FileSite) -> None:
    """It changes a hundred times a second; each kept frame but the last lasts a tenth of a second or longer."""
    page = await WirePage.open(qa, site.origin + "/restless")
    await video(page, "start")
    assert (await page.click("Count")).short == "receipt succeeded/complete"
    waited = {"type": "text", "text": "enough"}
    await qa.ask("lomi_browser_wait", **page.target(), condition=waited, timeoutMs=10_000)
    kept = (await video(page, "stop")).data["artifact"]
    lasts = []
    with Image.open(io.BytesIO(await bytes_of(qa, kept["id"]))) as shown:
        for number in range(shown.n_frames):
            shown.seek(number)
            shown.load()
            lasts.append(shown.info["duration"])
    assert len(lasts) > 3
    assert min(lasts[:-2]) >= 95, lasts
    assert sum(lasts) >= 1400
