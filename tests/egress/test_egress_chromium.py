"""Real Chromium behind the proxy: nothing it can be made to do reaches a place that was not granted."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import Browser, BrowserContext, Error, Page, async_playwright

from browser.egress import EgressGrant, EgressProxy, HostPort, Origin, RefusalIdentity
from browser.egress.chromium import ENGINE_ARGUMENTS, prove, proxy_settings

if TYPE_CHECKING:
    from conftest import Lab, Seen, Server

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")

IDENTITY = RefusalIdentity.create(datetime.datetime.now(datetime.UTC))


def answer(body: str, *, status: str = "200 OK", headers: str = "", media_type: str = "text/html") -> bytes:
    """Return a whole answer that must not be cached."""
    content = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(content)}\r\n"
    return f"{head}Cache-Control: no-store\r\n{headers}\r\n".encode() + content


class Datagrams(asyncio.DatagramProtocol):
    """Counts what arrives by UDP."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.arrived = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.got.append(data)
        self.arrived.set()


@dataclass(slots=True)
class Scene:
    """A page on a granted origin, and servers nobody granted."""

    page: Page
    context: BrowserContext
    proxy: EgressProxy
    home: Server
    foreign: list[Server]
    datagrams: Datagrams
    udp_port: int
    netlog: Path
    close: Callable[[], object] = field(repr=False)

    @property
    def targets(self) -> list[str]:
        """Ungranted places, plain and TLS."""
        return [f"{scheme}://{server.authority}" for server in self.foreign for scheme in ("http", "https")]

    @property
    def untouched(self) -> bool:
        """Whether no ungranted server saw even a connection."""
        return all(server.connections == 0 for server in self.foreign) and not self.datagrams.got

    async def refused(self, act: Callable[[], object], *, count: int = 1) -> None:
        """Do something and wait until the proxy refused `count` more requests."""
        before = self.proxy.refusals.last
        with contextlib.suppress(Error):
            await act()  # type: ignore[misc]
        async with asyncio.timeout(20):
            await self.proxy.refusals.reach(before + count)

    async def still_home(self) -> bool:
        """Say whether the page still shows the document it had, its script state included."""
        return bool(await self.page.evaluate("() => window.mine === 1 && document.title === 'home'"))


HOME = "<!doctype html><title>home</title><script>window.mine = 1</script><body>home</body>"


@asynccontextmanager
async def engine(*arguments: str, executable: str | None = BROWSER) -> AsyncIterator[Browser]:
    """Run Chromium until the block is left."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable,
            chromium_sandbox=os.geteuid() != 0,
            args=arguments,
        )
        yield browser
        await browser.close()


@pytest.fixture
async def scene(lab: Lab, tmp_path: Path) -> AsyncIterator[Scene]:
    """Open a page on the one granted origin, with ungranted servers on three loopback addresses."""
    home = await lab.server()
    home.fallback = answer(HOME)
    foreign = [await lab.server(), await lab.server("127.0.0.2"), await lab.server("::1")]
    loop = asyncio.get_running_loop()
    transport, datagrams = await loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", 0))
    proxy = await lab.proxy(home.origin, identity=IDENTITY)
    netlog = tmp_path / "net.json"
    async with engine(*ENGINE_ARGUMENTS, IDENTITY.engine_argument, f"--log-net-log={netlog}") as browser:
        context = await browser.new_context(proxy=proxy_settings(proxy))
        page = await context.new_page()
        await prove(page, proxy)
        await page.goto(f"{home.origin}/")
        port = transport.get_extra_info("sockname")[1]
        yield Scene(page, context, proxy, home, foreign, datagrams, port, netlog, browser.close)
    transport.close()


async def test_a_fresh_context_proves_itself_without_a_trace(scene: Scene) -> None:
    """Giving the credential records no refusal and leaves no entry in the page's history."""
    assert scene.proxy.refusals.last == 0
    assert next(entry.url for entry in scene.proxy.network_log) == f"{scene.home.origin}/"
    assert await scene.page.evaluate("() => history.length") == 2  # about:blank and home


async def test_a_refused_navigation_leaves_the_old_document(scene: Scene) -> None:
    """By address bar, script, link, form, redirect and meta refresh, to plain and TLS places alike."""
    page, home = scene.page, scene.home
    for target in scene.targets:
        home.answers["/redirect"] = answer("", status="302 Found", headers=f"Location: {target}/\r\n")
        home.answers["/chain"] = answer("", status="307 Temporary", headers="Location: /redirect\r\n")
        link, form = f"a.href = '{target}/'; a.click()", f"form.action = '{target}/'; form.submit()"
        for script in (
            f"location.href = '{target}/'",
            f"location.replace('{target}/')",
            "location.href = '/redirect'",
            "location.href = '/chain'",
            f"const a = document.createElement('a'); {link}",
            f"const a = document.createElement('a'); a.download = 'x'; {link}",
            f"const form = document.createElement('form'); document.body.append(form); {form}",
            f"const form = document.createElement('form'); form.method = 'post'; document.body.append(form); {form}",
            f"document.head.insertAdjacentHTML('beforeend', '<meta http-equiv=refresh content=\"0; url={target}/\">')",
        ):
            await scene.refused(lambda script=script: page.evaluate(f"() => {{ {script} }}"))
            assert await scene.still_home(), script
        await scene.refused(lambda target=target: page.goto(f"{target}/"))
        assert await scene.still_home()
    assert scene.untouched
    assert all(refusal.document for refusal in scene.proxy.refusals)
    assert {refusal.reason for refusal in scene.proxy.refusals} == {"origin_not_granted"}


async def test_frames_and_popups_are_held(scene: Scene) -> None:
    """A frame, an embedded object and a popup to an ungranted place stay empty; a popup inside the grant loads."""
    page = scene.page
    async with page.expect_popup() as opening:
        await page.evaluate("() => void window.open('/inside')")
    await (await opening.value).wait_for_function("() => document.title === 'home'")
    for target in scene.targets:
        for tag in (
            f"<iframe src='{target}/'>",
            f"<object data='{target}/'>",
            f"<embed src='{target}/' type=text/html>",
        ):
            await scene.refused(
                lambda tag=tag: page.evaluate("tag => document.body.insertAdjacentHTML('beforeend', tag)", tag)
            )
        await scene.refused(lambda target=target: page.evaluate("url => void (window.pop = open(url))", f"{target}/"))
        assert await page.evaluate("() => [pop.document.documentElement.textContent, pop.location.href]") == [
            "",
            "about:blank",
        ]
        await page.evaluate("() => pop.close()")
    assert await scene.still_home()
    assert scene.untouched


LINK = "const link = what => document.head.append(Object.assign(document.createElement('link'), what));"
LOADS = {
    "image": "new Image().src = T",
    "script": "document.head.append(Object.assign(document.createElement('script'), {src: T}))",
    "style": "link({rel: 'stylesheet', href: T})",
    "font": "new FontFace('f', `url(${T})`).load().catch(() => 0)",
    "media": "Object.assign(document.createElement('video'), {src: T}).load()",
    "fetch": "fetch(T).catch(() => 0)",
    "opaque fetch": "fetch(T, {mode: 'no-cors'}).catch(() => 0)",
    "keepalive fetch": "fetch(T, {keepalive: true, method: 'POST', body: 'x', mode: 'no-cors'}).catch(() => 0)",
    "xhr": "{const x = new XMLHttpRequest(); x.open('POST', T); x.send('x')}",
    "beacon": "navigator.sendBeacon(T, 'x')",
    "event source": "{const e = new EventSource(T); e.onerror = () => e.close()}",
    "websocket": "{const w = new WebSocket(T.replace('http', 'ws')); w.onerror = () => 0}",
    "prefetch": "link({rel: 'prefetch', href: T})",
    "preload": "link({rel: 'preload', as: 'image', href: T})",
    "module": "import(T).catch(() => 0)",
    "module preload": "link({rel: 'modulepreload', href: T})",
    "worker fetch": "new Worker(URL.createObjectURL(new Blob([`fetch('${T}', {mode: 'no-cors'}).catch(() => 0)`])))",
    "worker import": "new Worker(URL.createObjectURL(new Blob([`importScripts('${T}')`])))",
    "worker websocket": "new Worker(URL.createObjectURL(new Blob([`new WebSocket('${T}'.replace('http', 'ws'))`])))",
    "ping": "Object.assign(document.createElement('a'), {href: '#x', ping: T}).click()",
    "own redirect": "fetch('/to?' + encodeURIComponent(T), {mode: 'no-cors'}).catch(() => 0)",
}  # fmt: skip


async def test_no_kind_of_sub_resource_gets_out(scene: Scene) -> None:
    """Each way a page can ask for something is refused for each ungranted place, and the page sees it fail."""
    target = ""

    async def redirect(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("", status="302 Found", headers=f"Location: {target}\r\n"))

    scene.home.answers["/to"] = redirect
    for place in scene.targets:
        for kind, script in LOADS.items():
            target = f"{place}/{kind.replace(' ', '-')}"
            await scene.refused(
                lambda script=script, target=target: scene.page.evaluate(f"T => {{ {LINK} {script} }}", target)
            )
        outcome = await scene.page.evaluate(
            "T => fetch(T, {mode: 'no-cors'}).then(() => 'answered', () => 'failed')", f"{place}/seen"
        )
        assert outcome == "failed"
    assert scene.untouched
    assert await scene.still_home()


async def test_a_service_worker_is_held_too(scene: Scene) -> None:
    """A service worker's own requests, also those it makes in answer to a navigation, pass the same gate."""
    script = """
        self.addEventListener('install', () => self.skipWaiting());
        self.addEventListener('activate', event => event.waitUntil(clients.claim()));
        self.addEventListener('fetch', event => {
            const to = new URL(event.request.url).searchParams.get('to');
            if (to) event.respondWith(fetch(to, {mode: 'no-cors'}).catch(() => new Response('held')));
        });"""
    scene.home.answers["/worker.js"] = answer(script, media_type="text/javascript")
    await scene.page.evaluate(
        "() => navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)"
        ".then(() => navigator.serviceWorker.controller || new Promise(r => "
        "navigator.serviceWorker.addEventListener('controllerchange', r))).then(() => 1)"
    )
    for target in scene.targets:
        body = await scene.page.evaluate("to => fetch('/x?to=' + encodeURIComponent(to)).then(r => r.text())", target)
        assert body == "held"
    assert scene.proxy.refusals.last >= len(scene.targets)
    assert scene.untouched


async def test_websockets_inside_the_grant_work_and_end_with_it(scene: Scene) -> None:
    """A granted ws:// connection opens and carries a message; ending the proxy closes it at once."""

    async def upgrade(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import base64
        import hashlib

        key = seen.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        writer.write(
            f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
            + b"\x81\x05hello"
        )
        await reader.read()

    scene.home.answers["/ws"] = upgrade
    greeting = await scene.page.evaluate(
        "url => new Promise((done, fail) => { window.ws = new WebSocket(url); ws.onmessage = e => done(e.data);"
        " ws.onerror = () => fail('no'); window.over = new Promise(r => ws.onclose = () => r('closed')) })",
        f"ws://{scene.home.authority}/ws",
    )
    assert greeting == "hello"
    scene.proxy.end()
    assert await scene.page.evaluate("() => window.over") == "closed"
    assert [entry.type for entry in scene.proxy.network_log if entry.method == "CONNECT"] == ["websocket"]


PEERS = """async ([udp, tcp]) => {
    const servers = [`stun:127.0.0.1:${udp}`, `stun:127.0.0.1:${tcp}`,
                     `turn:127.0.0.1:${udp}?transport=udp`, `turn:127.0.0.1:${tcp}?transport=tcp`];
    const peer = new RTCPeerConnection({iceServers:
        servers.map(urls => ({urls, username: 'u', credential: 'c'}))});
    peer.createDataChannel('x');
    await peer.setLocalDescription(await peer.createOffer());
    const other = new RTCPeerConnection();
    await other.setRemoteDescription(peer.localDescription);
    await other.setLocalDescription(await other.createAnswer());
    const answer = other.localDescription.sdp.replace(/a=candidate.*\\r\\n/g, '');
    await peer.setRemoteDescription({type: 'answer', sdp: answer});
    for (const [kind, port] of [['udp', udp], ['tcp', tcp]])
        await peer.addIceCandidate({candidate: `candidate:1 1 ${kind} 2122260223 127.0.0.1 ${port} typ host`
            + (kind === 'tcp' ? ' tcptype passive' : ''), sdpMid: '0'}).catch(() => 0);
    await new Promise(done => {
        if (peer.iceGatheringState === 'complete') done();
        peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && done();
        setTimeout(done, 3000);
    });
}"""

HINTS = """async ([udp]) => {
    try { const t = new WebTransport(`https://127.0.0.1:${udp}/`); await t.ready.catch(() => 0); } catch (_) {}
    for (const [rel, href] of [['dns-prefetch', '//canary-a.test'], ['preconnect', 'http://canary-b.test'],
                               ['preconnect', 'https://canary-c.test'], ['prefetch', 'http://canary-d.test/']])
        document.head.append(Object.assign(document.createElement('link'), {rel, href}));
    const rules = document.createElement('script');
    rules.type = 'speculationrules';
    rules.textContent = JSON.stringify({prerender: [{source: 'list', urls: ['/ahead']}],
        prefetch: [{source: 'list', urls: ['http://canary-e.test/', 'https://canary-f.test/']}]});
    document.head.append(rules);
    await fetch('http://canary-g.test/', {mode: 'no-cors'}).catch(() => 0);
}"""


async def test_udp_and_name_look_ups_do_not_leave_the_engine(scene: Scene) -> None:
    """WebRTC, WebTransport and hints: the engine's own log shows connections to the proxy and no name look-up."""
    page = scene.page
    ports = [scene.udp_port, scene.foreign[0].port]
    await page.evaluate(PEERS, ports)
    await page.evaluate(HINTS, ports)
    assert "canary-g.test" in {refusal.host for refusal in scene.proxy.refusals}
    assert scene.untouched
    await scene.close()  # type: ignore[misc]
    looked_up, connected = read_netlog(scene.netlog)
    assert [name for name in looked_up if "canary" in name] == []
    assert connected == {scene.proxy.url.removeprefix("http://")}


def read_netlog(path: Path) -> tuple[set[str], set[str]]:
    """Return the host names the engine resolved by itself, and where it connected to."""
    text = path.read_text()
    log = json.loads(text if text.rstrip().endswith("}") else text.rstrip().rstrip(",") + "]}")
    names = {number: name for name, number in log["constants"]["logEventTypes"].items()}
    looked_up: set[str] = set()
    connected: set[str] = set()
    for event in log["events"]:
        kind, params = names[event["type"]], event.get("params", {})
        # A REQUEST alone may be answered from what is known; a JOB or a TASK asks a resolver.
        if kind.startswith("HOST_RESOLVER") and ("_JOB" in kind or "_TASK" in kind) and "host" in params:
            looked_up.add(str(params["host"]))
        if kind == "TCP_CONNECT_ATTEMPT" and "address" in params:
            connected.add(params["address"])
    return looked_up, connected


async def test_back_to_a_place_that_is_no_longer_granted_is_refused(scene: Scene, lab: Lab) -> None:
    """When the grant shrank, going back asks the network and is refused; the document stays."""
    second = await lab.server()
    second.fallback = answer("<title>second</title>", headers="Cache-Control: no-store\r\n")
    both = frozenset({Origin.parse(scene.home.origin), Origin.parse(second.origin)})
    scene.proxy.replace(EgressGrant(origins=both))
    await scene.page.goto(f"{second.origin}/")
    await scene.page.goto(f"{scene.home.origin}/again")
    seen = len(second.seen)
    scene.proxy.replace(EgressGrant(origins=frozenset({Origin.parse(scene.home.origin)})))
    await scene.refused(lambda: scene.page.evaluate("() => void history.back()"))
    assert await scene.still_home()
    assert len(second.seen) == seen


async def test_resources_load_and_documents_from_them_do_not(scene: Scene) -> None:
    """A host granted for sub-resources gives an image, and that image, though cached, never becomes a document."""
    images = scene.foreign[1]
    picture = b'<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"></svg>'
    images.fallback = (
        b"HTTP/1.1 200 OK\r\nContent-Type: image/svg+xml\r\nCache-Control: public, max-age=60000000\r\n"
        b"Date: Mon, 30 Nov 2026 00:00:00 GMT\r\nContent-Length: %d\r\n\r\n%b" % (len(picture), picture)
    )
    home = frozenset({Origin.parse(scene.home.origin)})
    scene.proxy.replace(EgressGrant(origins=home, resources=frozenset({HostPort("127.0.0.2", images.port)})))
    width = await scene.page.evaluate(
        "url => new Promise(r => { const i = new Image(); i.onload = i.onerror = () => r(i.width); i.src = url })",
        f"{images.origin}/a.svg",
    )
    assert width == 7
    for script in (
        f"location.href = '{images.origin}/a.svg'",
        f"document.body.insertAdjacentHTML('beforeend', '<iframe src=\"{images.origin}/a.svg\">')",
        f"document.body.insertAdjacentHTML('beforeend', '<object data=\"{images.origin}/a.svg\">')",
    ):
        await scene.refused(lambda script=script: scene.page.evaluate(f"() => {{ {script} }}"))
    assert await scene.still_home()
    assert images.paths == ["/a.svg"]
    assert {refusal.reason for refusal in scene.proxy.refusals} == {"document_not_granted"}


async def test_without_an_identity_a_refused_tunnel_is_still_refused(lab: Lab) -> None:
    """The identity only decides what the page shows; the gate is the same without it."""
    home, other = await lab.server(), await lab.server("127.0.0.2")
    home.fallback = answer(HOME)
    proxy = await lab.proxy(home.origin)
    async with engine(*ENGINE_ARGUMENTS) as browser:
        page = await (await browser.new_context(proxy=proxy_settings(proxy))).new_page()
        await prove(page, proxy)
        await page.goto(f"{home.origin}/")
        with pytest.raises(Error, match="ERR_TUNNEL_CONNECTION_FAILED"):
            await page.goto(f"https://{other.authority}/")
        assert proxy.refusals.last >= 1
        assert other.connections == 0


async def test_a_granted_https_place_is_passed_through_untouched(lab: Lab) -> None:
    """The server's own certificate reaches the engine, and an ungranted name on the same server does not load."""
    served = RefusalIdentity.create(datetime.datetime.now(datetime.UTC))
    home = await lab.server(context=served.context)
    home.fallback = answer(HOME)
    origin = f"https://{home.authority}"
    proxy = await lab.proxy(origin, identity=IDENTITY)
    async with engine(*ENGINE_ARGUMENTS, IDENTITY.engine_argument) as browser:
        context = await browser.new_context(proxy=proxy_settings(proxy), ignore_https_errors=True)
        page = await context.new_page()
        await prove(page, proxy)
        response = await page.goto(f"{origin}/")
        assert response is not None
        details = await response.security_details()
        assert details is not None
        assert details["issuer"] == "refused by lomi"
        assert await page.title() == "home"
        for other in (f"https://localhost:{home.port}/", f"http://{home.authority}/"):
            with pytest.raises(Error, match="ERR_ABORTED"):
                await page.goto(other)
        assert await page.title() == "home"
    assert [refusal.reason for refusal in proxy.refusals] == ["origin_not_granted", "scheme_not_granted"]
    assert set(home.paths) <= {"/", "/favicon.ico"}


async def test_https_to_a_place_granted_for_plain_http_leaves_the_document(scene: Scene) -> None:
    """The tunnel a WebSocket may use does not let the other scheme of the same place in."""
    await scene.refused(lambda: scene.page.goto(f"https://{scene.home.authority}/"))
    assert await scene.still_home()
    (refusal,) = scene.proxy.refusals
    assert (refusal.reason, refusal.document) == ("scheme_not_granted", True)


@pytest.mark.parametrize("executable", sorted({BROWSER, shutil.which("chromium")} - {None}, key=str))
@pytest.mark.parametrize("held", [True, False])
async def test_every_engine_keeps_udp_in_and_only_by_its_arguments(lab: Lab, executable: str, held: bool) -> None:
    """WebRTC reaches no UDP port; without its arguments it does, so what is asserted here could have failed."""
    home, other = await lab.server(), await lab.server()
    home.fallback = answer(HOME)
    proxy = await lab.proxy(home.origin)
    loop = asyncio.get_running_loop()
    transport, datagrams = await loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", 0))
    arguments = [argument for argument in ENGINE_ARGUMENTS if held or "webrtc" not in argument]
    async with engine(*arguments, executable=executable) as browser:
        page = await (await browser.new_context(proxy=proxy_settings(proxy))).new_page()
        await prove(page, proxy)
        await page.goto(f"{home.origin}/")
        await page.evaluate(PEERS, [transport.get_extra_info("sockname")[1], other.port])
        if not held:
            async with asyncio.timeout(20):
                await datagrams.arrived.wait()
    transport.close()
    assert bool(datagrams.got) is not held
    assert other.connections == 0
