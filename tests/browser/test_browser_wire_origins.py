"""Origins and contexts over the wire: no way of a page leads out of its grant, and no context sees another's state."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from browser_files import FileSite, serving_files
from browser_wire import WirePage
from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, opened_world, policy_text

STORING = """<!doctype html><title>Storing</title><p id=out></p><script>
out.textContent = 'found ' + (document.cookie || 'no cookie') + ' ' + (localStorage.getItem('kept') || 'nothing')
document.cookie = 'kept=yes; max-age=600'; localStorage.setItem('kept', 'also')
</script>"""
WAYS = {
    "meta refresh": "<meta http-equiv=refresh content='0;url={}'>",
    "script": "<script>location.href = '{}'</script>",
    "frame": "<iframe src='{}'></iframe>",
    "form": "<form action='{}'></form><script>document.forms[0].submit()</script>",
    "popup": "<button onclick=\"window.open('{}')\">Go</button>",
    "link": "<a href='{}'>Go</a>",
}


@pytest.fixture(scope="module")
def site() -> Iterator[FileSite]:
    """The granted server."""
    with serving_files() as made:
        made.pages["/storing"] = STORING
        yield made


@pytest.fixture(scope="module")
def foreign() -> Iterator[FileSite]:
    """A server that nobody may reach."""
    with serving_files() as made:
        yield made
        assert made.asked == []


@pytest.fixture(scope="module")
def world(site: FileSite, foreign: FileSite) -> Iterator[World]:
    """A broker that grants one of the two."""
    client = ClientEntry(label="qa", scopes=ALL_SCOPES, origins=(site.origin,))
    with opened_world(policy_text(client)) as made:
        yield made


@pytest_asyncio.fixture
async def qa(world: World) -> AsyncIterator[Agent]:
    """A client."""
    async with agent(world) as made:
        yield made


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_of_a_page_leads_out(qa: Agent, site: FileSite, foreign: FileSite, way: str) -> None:
    """The document stays on an allowed origin; the other server hears nothing (its fixture proves that at the end)."""
    body = WAYS[way].format(foreign.origin + "/")
    site.pages["/out"] = f"<!doctype html><title>Home</title><h1>Home</h1>{body}"
    page = await WirePage.open(qa, site.origin + "/out")
    if "Go" in body:
        assert (await page.click("Go")).code is None
    waited = {"condition": {"type": "text", "text": "never there"}, "timeoutMs": 300}
    seen = (await qa.ask("lomi_browser_wait", **page.target(), **waited)).data["snapshot"]
    assert (seen["origin"], seen["url"].partition("?")[0]) == (site.origin, site.origin + "/out")
    assert [frame["origin"] for frame in seen["frames"] if frame["origin"] == foreign.origin] == []
    assert any(row["name"] == "Home" for row in seen["elements"])


async def test_a_redirect_chain_out_is_stopped_and_said(qa: Agent, site: FileSite, foreign: FileSite) -> None:
    """The last hop is refused, and the old document stays."""
    site.pages["/home"] = "<!doctype html><title>Home</title><h1>Home</h1>"
    site.redirects |= {"/hop1": "/hop2", "/hop2": foreign.origin + "/"}
    page = await WirePage.open(qa, site.origin + "/home")
    went = {**await qa.keyed(), **page.target("leaseId"), "waitMs": 15000}
    said = await qa.call("lomi_browser_navigate", {**went, "url": site.origin + "/hop1"})
    assert "redirect_denied" in said.short
    assert (await page.snapshot())["url"] == site.origin + "/home"
    direct = await qa.call("lomi_browser_navigate", {**went, "requestKey": "direct", "url": foreign.origin + "/"})
    assert direct.short == "SCOPE_DENIED (origin_not_granted)"


async def test_cookies_and_storage_stay_in_their_context(qa: Agent, world: World, site: FileSite) -> None:
    """What one connection's page keeps is absent in another's, and in the next page of the same one."""
    found = "found no cookie nothing"
    first = await WirePage.open(qa, site.origin + "/storing")
    assert any(row["name"] == found for row in (await first.snapshot())["elements"])
    went = {**await qa.keyed(), **first.target("leaseId"), "url": site.origin + "/storing?again", "waitMs": 15000}
    await qa.do("lomi_browser_navigate", went)
    again = [row["name"] for row in (await first.snapshot())["elements"]]
    assert "found kept=yes also" in again
    async with agent(world) as other:
        for client in (other, qa):
            page = await WirePage.open(client, site.origin + "/storing")
            assert any(row["name"] == found for row in (await page.snapshot())["elements"])
