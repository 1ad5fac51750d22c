"""The list of a page's requests, their bodies and a trace, over the wire: bounded, without credentials."""

import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from browser_files import FileSite, serving_files, sha256
from browser_wire import WirePage
from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, opened_world, owner, policy_text, until

PAGE = """<!doctype html><title>Requests</title><button onclick="go()">Fetch</button><p id=out></p><script>
async function go() {
  const told = await Promise.all([fetch('/file?size=1000'), fetch('/none?access_token=canary-1')])
  out.textContent = told.map(one => one.status).join()
}</script>"""
NO_BYTES = tuple(scope for scope in ALL_SCOPES if scope != "browser.download")


@pytest.fixture(scope="module")
def site() -> Iterator[FileSite]:
    """A page that makes requests."""
    with serving_files() as made:
        made.pages["/requests"] = PAGE
        yield made


@pytest.fixture(scope="module")
def world(site: FileSite) -> Iterator[World]:
    """A broker with a client that may have bytes of pages and one that may not."""
    clients = (("qa", ALL_SCOPES), ("reader", NO_BYTES))
    entries = [ClientEntry(label=label, scopes=scopes, origins=(site.origin,)) for label, scopes in clients]
    with opened_world(policy_text(*entries)) as made:
        yield made


@pytest_asyncio.fixture
async def qa(world: World) -> AsyncIterator[Agent]:
    """A client."""
    async with agent(world) as made:
        yield made


def content_of(world: World, artifact: dict[str, Any]) -> bytes:
    """The bytes of an artifact, as they lie in the store."""
    (file,) = world.home.rglob(f"{artifact['id']}.bin")
    content = file.read_bytes()
    assert hashlib.sha256(content).hexdigest() == artifact["sha256"]
    return content


async def test_requests_are_listed_and_bodies_had_on_request(qa: Agent, world: World, site: FileSite) -> None:
    """Method, address without credentials, status, type, timing; a body only where it is asked for."""
    page = await WirePage.open(qa, site.origin + "/requests")
    first = (await qa.ask("lomi_browser_logs", **page.target(), logKind="network")).data
    assert [entry["request"]["type"] for entry in first["entries"]] == ["Document"]
    assert (await page.click("Fetch")).short == "receipt succeeded/complete"
    said = await qa.ask("lomi_browser_logs", **page.target(), logKind="network", cursor=first["nextCursor"])
    asked = {entry["request"]["url"].partition("?")[0]: entry for entry in said.data["entries"]}
    file = asked[f"{site.origin}/file"]
    assert (file["request"]["method"], file["request"]["status"], file["request"]["type"]) == ("GET", 200, "Fetch")
    assert file["request"]["durationMillis"] >= 0
    assert file["request"]["byteLength"] >= 1000
    assert asked[f"{site.origin}/none"]["request"]["status"] == 404
    assert b"canary-1" not in said.raw
    assert "artifact" not in said.data
    body = (await qa.ask("lomi_browser_logs", **page.target(), logKind="network", bodyOf=file["sequence"])).data
    assert body["artifact"]["sha256"] == sha256(1000)
    assert len(content_of(world, body["artifact"])) == 1000
    gone = await qa.call("lomi_browser_logs", {**page.target(), "logKind": "network", "bodyOf": 9999})
    assert gone.short == "TARGET_NOT_FOUND (no_such_exchange)"
    unclear = await qa.call("lomi_browser_logs", {**page.target(), "bodyOf": 1})
    assert unclear.short == "RESOURCE_EXHAUSTED (variant_unclear)"
    foreign = await qa.call("lomi_browser_logs", {**page.target(), "logKind": "network", "cursor": "b999:network:1"})
    assert foreign.short == "CURSOR_EXPIRED (cursor_expired)"


async def test_the_list_is_bounded_and_says_what_it_dropped(qa: Agent, site: FileSite) -> None:
    """Of 300 requests the newest 256 are held, in pages, and the others are counted."""
    site.pages["/many"] = "<script>for (let i = 0; i < 300; i++) new Image().src = '/none?i=' + i</script>"
    page = await WirePage.open(qa, site.origin + "/many")
    await until(lambda: sum(path.startswith("/none?i=") for path in site.asked) == 300)
    seen: list[int] = []
    dropped, more = 0, {"cursor": f"{page.named['browserGeneration']}:network:0"}
    while True:
        said = (await qa.ask("lomi_browser_logs", **page.target(), logKind="network", limit=64, **more)).data
        seen += [entry["sequence"] for entry in said["entries"]]
        dropped, more = dropped + said["dropped"], {"cursor": said["nextCursor"]}
        if not said["hasMore"]:
            break
    assert (len(seen), dropped, seen) == (256, 45, sorted(seen))


async def test_a_trace_is_an_artifact_on_request(qa: Agent, world: World, site: FileSite) -> None:
    """Between start and stop, once at a time; the zip is Playwright's own and names what was done."""
    page = await WirePage.open(qa, site.origin + "/requests")
    trace = {**page.target(), "trace": "stop"}
    assert (await qa.call("lomi_browser_logs", trace)).short == "TARGET_NOT_FOUND (no_such_trace)"
    await qa.ask("lomi_browser_logs", **{**trace, "trace": "start"})
    assert (await qa.call("lomi_browser_logs", {**trace, "trace": "start"})).short == "TARGET_BUSY (trace_running)"
    await page.click("Fetch")
    artifact = (await qa.ask("lomi_browser_logs", **trace)).data["artifact"]
    with zipfile.ZipFile(io.BytesIO(content_of(world, artifact))) as held:
        network = next(name for name in held.namelist() if name.endswith(".network"))
        urls = [json.loads(line)["snapshot"]["request"]["url"] for line in held.read(network).splitlines()]
    assert f"{site.origin}/file?size=1000" in urls


async def test_a_trace_ends_with_the_lease(qa: Agent, world: World, site: FileSite) -> None:
    """A person takes the page: what they do is not recorded, and the old holder can neither stop nor start a trace."""
    page = await WirePage.open(qa, site.origin + "/requests")
    await qa.ask("lomi_browser_logs", **page.target(), trace="start")
    await owner(world, "take", name=page.named["panelId"])
    for word in ("stop", "start"):
        said = await qa.call("lomi_browser_logs", {**page.target(), "trace": word})
        assert said.code == "CONTROL_REVOKED"


async def test_bytes_need_the_scope_of_bytes(world: World, site: FileSite) -> None:
    """Who may read a page may list its requests, not have bodies or traces."""
    async with agent(world, "reader") as reader:
        page = await WirePage.open(reader, site.origin + "/requests")
        listed = await reader.ask("lomi_browser_logs", **page.target(), logKind="network")
        assert listed.data["entries"]
        for more in ({"logKind": "network", "bodyOf": 1}, {"trace": "start"}):
            said = await reader.call("lomi_browser_logs", {**page.target(), **more})
            assert said.short == "SCOPE_DENIED (scope_missing)"
