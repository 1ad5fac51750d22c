"""Origins are held: whatever a page tries, the document stays on a granted origin and nothing else hears of it."""

import asyncio
import base64
import contextlib
import datetime
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from browser_probe import Probe
from browser_site import Answer, Site, html, serving
from browser_steps import LONG_S, node, text, visit

from browser import actions, navigate
from browser.egress import EgressGrant, EgressProxy, HostPort, Origin, RefusalIdentity
from browser.engine import Engine, EngineSettings, running
from browser.errors import (
    NavigationFailedError,
    OriginDeniedError,
    PageEndedError,
    ProtocolError,
    RedirectDeniedError,
)
from browser.guard import DocumentGuard
from browser.inspector.connection import Session
from browser.page import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")

PIXEL = base64.b64decode("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==")
IDENTITY = RefusalIdentity.create(datetime.datetime.now(datetime.UTC))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[Engine]:
    async with running(EngineSettings(arguments=(IDENTITY.engine_argument,))) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def foreign() -> AsyncIterator[Site]:
    async with serving() as local:
        local.show("<h1>Foreign</h1>")
        local.pages["/any"] = html("<h1>Foreign</h1>")
        yield local


@pytest_asyncio.fixture(loop_scope="module")
async def held(engine: Engine, site: Site, foreign: Site) -> AsyncIterator[Page]:
    """A page that may show the site's origin and no other."""
    grant = EgressGrant(origins=frozenset({Origin.parse(site.url)}))
    async with EgressProxy.serve(grant, identity=IDENTITY) as egress:
        page = await engine.open(egress=egress)
        yield page
        for left in list(page.profile.pages.values()):
            await navigate.close(left)
    assert foreign.requests == []


async def test_an_ungranted_address_is_refused_before_any_effect(site: Site, foreign: Site, held: Page) -> None:
    """Addresses outside the grant, with user information or of other schemes are not gone to."""
    await visit(held, site.show("<h1>Home</h1>"))
    with pytest.raises(OriginDeniedError) as caught:
        await navigate.navigate(held, foreign.url + "/")
    assert caught.value.proves_no_effect
    for url in (
        "file:///etc/passwd",
        "javascript:1",
        "chrome://version",
        "data:text/html,x",
        f"http://user:pw@127.0.0.1:{site.port}/",
        "ftp://x/",
    ):
        with pytest.raises(NavigationFailedError):
            await navigate.navigate(held, url)
    assert held.url == site.url + "/"


async def test_a_redirect_chain_out_is_stopped(site: Site, foreign: Site, held: Page) -> None:
    """The last hop is refused, the old document stays, and the answer says that requests were made."""
    await visit(held, site.show("<h1>Home</h1>"))
    site.pages["/r1"] = Answer(status=302, headers={"location": "/r2"})
    site.pages["/r2"] = Answer(status=307, headers={"location": foreign.url + "/any"})
    with pytest.raises(RedirectDeniedError) as caught:
        await navigate.navigate(held, site.url + "/r1")
    assert not caught.value.proves_no_effect
    assert caught.value.details["origin"] == foreign.url
    assert held.url == site.url + "/"
    assert node(await held.snapshot(), "heading").name == "Home"


ESCAPES = {
    "script": "<button onclick=\"location = '{url}'\">Go</button>",
    "link": "<a href='{url}' role=button>Go</a>",
    "form": "<form action='{url}' method=post><button>Go</button></form>",
    "replace": "<button onclick=\"location.replace('{url}')\">Go</button>",
    "frame": (
        "<button onclick=\"document.body.append(Object.assign(document.createElement('iframe'), {{src: "
        "'{url}'}}))\">Go</button>"
    ),
    "fetch": "<button onclick=\"fetch('{url}', {{mode: 'no-cors'}}).catch(() => 0)\">Go</button>",
    "beacon": "<button onclick=\"navigator.sendBeacon('{url}', 'x')\">Go</button>",
    "image": "<button onclick=\"new Image().src = '{url}'\">Go</button>",
    "socket": "<button onclick=\"new WebSocket('{url}'.replace('http', 'ws'))\">Go</button>",
    "meta": (
        "<button onclick=\"document.head.insertAdjacentHTML('beforeend', '<meta http-equiv=refresh "
        "content=\\'0;url={url}\\'>')\">Go</button>"
    ),
}


@pytest.mark.parametrize("way", sorted(ESCAPES))
async def test_no_way_out_of_a_page(site: Site, foreign: Site, held: Page, way: str) -> None:
    """Script, links, forms, frames, fetches, beacons, pictures, sockets and refreshes stay in; the document stays."""
    snapshot = await visit(held, site.show("<h1>Home</h1>" + ESCAPES[way].format(url=foreign.url + "/any")))
    acted = await actions.click(held, node(snapshot, "button").ref, settle_s=LONG_S)
    assert held.url == site.url + "/"
    assert acted.observation.navigation is None
    if way in {"script", "link", "form", "replace"}:
        assert acted.observation.refused_documents == (foreign.url + "/any",)
    assert node(await held.snapshot(), "heading").name == "Home"


async def test_a_document_that_leads_out_while_it_loads_is_answered_at_once(
    site: Site, foreign: Site, held: Page
) -> None:
    """Refused, it stays, without the load event that the engine then never fires: the answer does not wait for it."""
    site.show(f"<h1>Home</h1><script>location.href = '{foreign.url}/'</script>")
    began = asyncio.get_running_loop().time()
    went = await navigate.navigate(held, site.url + "/", load_s=20)
    assert asyncio.get_running_loop().time() - began < 10
    assert (went.committed, went.url) == (True, site.url + "/")
    assert went.observation.refused_documents == (foreign.url + "/",)


async def test_a_popup_to_an_ungranted_origin_shows_nothing(
    site: Site, foreign: Site, held: Page, engine: Engine
) -> None:
    """A popup may open blank; its document never comes."""
    snapshot = await visit(held, site.show(f"<h1>Home</h1><a href='{foreign.url}/any' target=_blank>Go</a>"))
    acted = await actions.click(held, node(snapshot, "link").ref, settle_s=4)
    for name in acted.observation.opened:
        assert engine.pages[name].origin in {"null", site.url}


async def test_resource_hosts_show_pictures_and_no_documents(site: Site, foreign: Site, engine: Engine) -> None:
    """A host granted for sub-resources gives its picture; frames, navigations and popups to it are refused."""
    foreign.pages["/pic"] = Answer(PIXEL, headers={"content-type": "image/gif"})
    grant = EgressGrant(
        origins=frozenset({Origin.parse(site.url)}), resources=frozenset({HostPort("127.0.0.1", foreign.port)})
    )
    body = f"""<h1>Home</h1><img alt=pic src={foreign.url}/pic onload="out.textContent = 'seen'"><p id=out></p>
    <a href={foreign.url}/any target=_blank>Link</a><a href={foreign.url}/any>Go</a>
    <button onclick="out.textContent = String(window.open('{foreign.url}/any'))">Open</button>
    <button onclick="out.textContent = String(confirm('still works'))">Ask</button>
    <iframe src={foreign.url}/any></iframe>"""
    async with EgressProxy.serve(grant, identity=IDENTITY) as egress:
        page = await engine.open(egress=egress)
        snapshot = await visit(page, site.show(body))
        assert await text(page) == "seen"
        for role, name in (("link", "Link"), ("link", "Go"), ("button", "Open")):
            acted = await actions.click(page, node(snapshot, role, name).ref)
            assert acted.observation.opened == ()
            assert page.url == site.url + "/"
        asked = await actions.click(page, node(snapshot, "button", "Ask").ref)
        assert asked.observation.dialog is not None
        await page.pending.answer(asked.observation.dialog, accept=True)
        assert await text(page) == "true"
        other = await engine.open()
        site.show("<h1>Child</h1>", "/child")
        free = await visit(other, site.show(f"<a href={site.url}/child target=_blank>Free</a>", "/free"))
        opened = (await actions.click(other, node(free, "link").ref, settle_s=LONG_S)).observation.opened
        assert engine.pages[opened[0]].url == site.url + "/child"
        for left in (page, *other.profile.pages.values()):
            await navigate.close(left)
    assert {request.path for request in foreign.requests} <= {"/pic"}


async def test_history_tricks_do_not_lead_out(site: Site, held: Page) -> None:
    """A page that rewrites its history on every step leaves back and forward working or refused, never elsewhere."""
    site.show("<h1>One</h1>", "/one")
    site.show("<h1>Two</h1><script>for (let i = 0; i < 40; i++) history.pushState(i, '', '/two?' + i)</script>", "/two")
    await navigate.navigate(held, site.url + "/one")
    await navigate.navigate(held, site.url + "/two")
    back = await navigate.travel(held, -1)
    assert back.url.startswith(site.url)
    with pytest.raises(NavigationFailedError) as caught:
        await navigate.travel(held, -500)
    assert caught.value.reason == "no_history"


async def test_peer_connections_are_off(site: Site, held: Page) -> None:
    """WebRTC and WebTransport are not there for page script, frames included."""
    await visit(held, site.show("<iframe srcdoc='x'></iframe>"))
    script = "[typeof RTCPeerConnection, typeof frames[0].RTCPeerConnection, typeof WebTransport].join()"
    assert await Probe(held).evaluate(script) == "undefined,undefined,undefined"


async def test_workers_run_and_stay_in(site: Site, foreign: Site, held: Page) -> None:
    """A page's worker, and the worker that it begins, run, talk to the site alone, and end with it."""
    script = {"content-type": "text/javascript"}
    ask = f"""const asked = (url) => fetch(url, {{mode: 'no-cors'}}).then((answer) => answer.status, () => 'failed');
    const told = (who) => Promise.all([asked('/' + who), asked('{foreign.url}/any')]).then(([home, out]) =>
      postMessage(`${{who}} ${{home}} ${{out}}`));"""
    begin = "new Worker('/nested.js').onmessage = (event) => postMessage(event.data); told('outer')"
    site.pages["/outer.js"] = Answer((ask + begin).encode(), headers=script)
    site.pages["/nested.js"] = Answer((ask + "told('nested')").encode(), headers=script)
    for who in ("outer", "nested"):
        site.show("", f"/{who}")
    sessions = held.context.chromium._connection.sessions
    before = set(sessions)
    worker = "const told = []; new Worker('/outer.js').onmessage = (event) => told.push(event.data)"
    await visit(held, site.show(f"<h1>Home</h1><script>{worker}</script>"))
    await Probe(held).until("() => told.length === 2")
    said = await Probe(held).evaluate("told.sort()")
    assert [line.rsplit(" ", 1)[0] for line in said] == ["nested 200", "outer 200"]
    assert foreign.requests == []
    assert [entry.url for entry in held.network.read().entries] == [site.url + "/", site.url + "/outer.js"]
    workers = [session for name, session in sessions.items() if name not in before]
    assert len(workers) == 2
    ends: asyncio.Queue[None] = asyncio.Queue()
    for session in workers:
        session.on_ended.append(lambda: ends.put_nowait(None))
    await navigate.close(held)
    async with asyncio.timeout(5):
        for _ in workers:
            await ends.get()


@pytest.mark.parametrize("rule", ["prefetch", "prerender"])
async def test_a_document_fetched_ahead_is_not_shown(site: Site, engine: Engine, rule: str) -> None:
    """Speculation rules get a document without asking the guard: the page that would show it ends, and says why."""
    page = await engine.open(admits=lambda url: url.startswith(site.url) and not url.endswith("/denied"))
    site.show("<h1>Denied</h1>", "/denied")
    rules = f'<script type=speculationrules>{{"{rule}": [{{"urls": ["/denied"], "eagerness": "immediate"}}]}}</script>'
    snapshot = await visit(page, site.show(f"{rules}<button onclick=\"location = '/denied'\">Go</button>"))
    await site.until("/denied")
    acted = await actions.click(page, node(snapshot, "button").ref, settle_s=LONG_S)
    assert acted.observation.refused_documents == (site.url + "/denied",)
    assert (acted.observation.closed, page.activity.ended) == (True, "closed")
    with pytest.raises(PageEndedError):
        await page.snapshot()


async def test_refusals_without_end_are_bounded(site: Site, foreign: Site, held: Page) -> None:
    """A page that asks for one refused document after another is told of by the first few of them."""
    frames = "for (let i = 0; i < 60; i++) document.body.append(Object.assign(document.createElement('iframe'), "
    body = f"<h1>Home</h1><button onclick=\"{frames}{{src: '{foreign.url}/any?' + i}}))\">Go</button>"
    snapshot = await visit(held, site.show(body))
    acted = await actions.click(held, node(snapshot, "button").ref, settle_s=LONG_S)
    refused = acted.observation.refused_documents
    assert refused == tuple(f"{foreign.url}/any?{i}" for i in range(16))


async def test_a_frame_that_cannot_be_held_ends_its_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of another process whose documents the engine would not hold does not stay on an open page."""
    enable = DocumentGuard._enable
    site.show("<h1>Inner</h1>", "/inner")
    site.show(f"<iframe src={site.other_url}/inner></iframe>")
    async with running(EngineSettings(arguments=("--site-per-process",))) as apart:
        page = await apart.open(admits=lambda _url: True)

        async def refused(guard: DocumentGuard, session: Session) -> None:
            if session is not page.session:
                raise ProtocolError("protocol_error", said="Fetch.enable")
            await enable(guard, session)

        monkeypatch.setattr(DocumentGuard, "_enable", refused)
        with contextlib.suppress(PageEndedError):
            await navigate.navigate(page, site.url + "/")
        async with asyncio.timeout(5):
            await page.ended.wait()
        assert page.activity.ended == "closed"
