"""Seeded hostile pages: no click ever lands on another node, and none that could land is refused."""

import asyncio
import random

import pytest
from browser_probe import Probe
from browser_site import Site, html
from browser_steps import LONG_S, node, text, visit

from browser import actions, navigate
from browser.engine import Engine
from browser.errors import BrowserError, RefusedError, StaleRefError
from browser.page import Page
from browser.values import Node

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = """<style>@keyframes spin { to { transform: rotate(1turn) } } @keyframes glow { to { color: #0a0 } }
#spin { width: 20px; animation: spin 1s linear infinite }
#clock, #ticker { animation: glow 1s infinite alternate }</style>
<div id=spin>*</div><p id=clock></p><p id=ticker></p><div id=list></div><script>
const hits = [];
let made = 0;
function make(label) {
  const button = document.createElement('button');
  button.textContent = label;
  button.serial = ++made;
  button.dataset.serial = made;
  button.onclick = (event) => { if (event.isTrusted) hits.push(button.serial); };
  return button;
}
for (let i = 0; i < 12; i++) list.append(make('Item ' + i));
setInterval(() => { clock.textContent = new Date().toISOString() }, 7);
setInterval(() => { ticker.append('.'); if (ticker.textContent.length > 40) ticker.textContent = '' }, 31);
const at = (label) => [...list.children].find((b) => b.textContent === label);
const twist = {
  none() {},
  shuffle() { for (const b of [...list.children].sort(() => Math.random() - .5)) list.append(b) },
  push() { list.prepend(document.createElement('hr')) ;
    if (list.children.length > 20) list.querySelector('hr').remove() },
  remove(b) { b.remove() },
  twin(b) { b.replaceWith(make(b.textContent)) },
  disable(b) { b.disabled = true },
  hide(b) { b.style.visibility = 'hidden' },
  cover(b) { const d = document.createElement('div');
    d.id = 'cover'; d.style = 'position:fixed;inset:0;z-index:9';
    document.body.append(d) },
  rename(b) { b.textContent += '' },
  away(b) { b.style.display = 'block'; b.style.marginTop = '2000px' },
};
function reset() {
  document.getElementById('cover')?.remove();
  list.replaceChildren(...Array.from({length: 12}, (_, i) => make('Item ' + i)));
}
</script>"""
FATAL = {"remove", "twin", "disable", "hide", "cover"}


@pytest.mark.parametrize(
    ("seed", "steps"), [(1, 100), pytest.param(20261130, 1000, marks=[pytest.mark.deep, pytest.mark.timeout(600)])]
)
async def test_seeded_steps_accept_and_refuse_exactly_what_they_should(
    site: Site, page: Page, seed: int, steps: int
) -> None:
    """Clocks, animations, and a page that changes between look and click: 0 wrong acceptances, 0 wrong refusals."""
    chance = random.Random(seed)
    snapshot = await visit(page, site.show(PAGE))
    wrong: list[str] = []
    for step in range(steps):
        if chance.random() < 0.6:
            snapshot = await page.snapshot()
        target: Node = chance.choice([n for n in snapshot.nodes if n.role == "button"])
        twist = chance.choice(["none", "none", "shuffle", "push", "rename", "away", *sorted(FATAL)])
        serial = await Probe(page).evaluate(
            (
                "([label, name]) => { const b = at(label); const serial = b.serial; hits.length = 0; "
                "twist[name](b); return serial }"
            ),
            [target.name, twist],
        )
        try:
            await actions.click(page, target.ref, snapshot_id=None, settle_s=0.3)
            refused = ""
        except BrowserError as error:
            refused = error.reason
        hits = await Probe(page).evaluate("hits")
        if hits != ([] if refused else [serial]) or bool(refused) != (twist in FATAL):
            wrong.append(f"step {step}: {twist} {target.name} refused={refused!r} hits={hits} wanted={serial}")
        if twist in FATAL or twist == "away":
            await Probe(page).evaluate("reset()")
            snapshot = await page.snapshot()
    assert wrong == []


async def test_two_clients_on_two_pages_never_cross(site: Site, engine: Engine) -> None:
    """Interleaved actions on two pages of two contexts each land on their own page."""
    site.show("<button onclick='out.textContent = ++n'>Count</button><p id=out></p><script>let n = 0</script>")
    pages = [await engine.open() for _ in range(2)]
    rounds = 10

    async def client(page: Page) -> None:
        snapshot = await visit(page, site.url + "/")
        for _ in range(rounds):
            await actions.click(page, node(snapshot, "button").ref, settle_s=0.3)

    async with asyncio.TaskGroup() as clients:
        for page in pages:
            clients.create_task(client(page))
    assert [await text(page) for page in pages] == [str(rounds)] * 2
    for page in pages:
        await navigate.close(page)


async def test_twenty_thousand_rows_answer_in_bounds(site: Site, page: Page) -> None:
    """A page of 20,000 rows is cut honestly, its outline stays small, and its last row is reachable."""
    rows = "for (let i = 0; i < 20000; i++) html += `<tr><td>${i}</td><td><button>Act ${i}</button></td></tr>`"
    body = f"<title>huge</title><table id=t></table><script>let html = ''; {rows}; t.innerHTML = html</script>"
    await navigate.navigate(page, site.show(body), load_s=30)
    snapshot = await page.snapshot()
    assert len(snapshot.nodes) <= 200
    assert snapshot.cut or snapshot.counts["button"] == 20000
    found = await page.find(text="act 19999")
    assert [n.name for n in found.nodes] == ["Act 19999"]
    acted = await actions.click(page, found.nodes[0].ref, settle_s=3)
    assert acted.delivered


async def test_a_page_that_never_rests_is_said_to_be_unsettled(site: Site, page: Page) -> None:
    """Changes without end that an action began end the wait at its bound, with settled false and a certain effect."""
    body = """<button onclick="go()">Start</button><div id=out></div><script>
    function go() { const d = document.createElement('i'); d.textContent = Math.random(); out.append(d);
    requestAnimationFrame(go) }</script>"""
    snapshot = await visit(page, site.show(body))
    acted = await actions.click(page, node(snapshot, "button").ref, settle_s=0.4)
    assert acted.delivered
    assert not acted.observation.settled
    assert acted.observation.elapsed_ms < 10_000


async def test_pending_requests_are_waited_for_and_bounded(site: Site, page: Page) -> None:
    """An answer that comes late is part of the observation; one that never comes is counted as pending."""
    slow, never = asyncio.Event(), asyncio.Event()

    async def held(_request: object) -> object:
        await slow.wait()
        return html("late answer")

    site.pages["/slow"] = held  # type: ignore[assignment]
    site.pages["/never"] = html("x")
    site.pages["/never"].hold = never  # type: ignore[union-attr]
    body = """<button onclick="fetch('/slow').then(r => r.text()).then(t => out.textContent = t)">Slow</button>
    <button onclick="fetch('/never')">Never</button><p id=out></p>"""
    snapshot = await visit(page, site.show(body))
    asyncio.get_running_loop().call_later(0.25, slow.set)
    acted = await actions.click(page, node(snapshot, "button", "Slow").ref, settle_s=LONG_S)
    assert acted.observation.settled
    assert [n.name for n in acted.observation.diff.added] == ["late answer"]
    hung = await actions.click(page, node(snapshot, "button", "Never").ref, settle_s=0.3)
    assert not hung.observation.settled
    assert hung.observation.pending_requests == 1
    never.set()


async def test_a_dom_too_deep_for_the_engine_is_a_typed_end(site: Site, page: Page) -> None:
    """What kills the engine's own tab ends the generation with a reason; what it bears is shown."""
    deep = (
        "let at = document.body; for (let i = 0; i < 60000; i++) { const d = document.createElement('div'); "
        "at.append(d); at = d }; at.textContent = 'bottom'"
    )
    reason = ""
    try:
        await navigate.navigate(page, site.show(f"<p>top</p><script>{deep}</script>"), load_s=5)
        assert (await page.snapshot()).nodes
    except BrowserError as error:
        reason = error.reason
    assert reason in {"", "closed", "page_crashed", "page_unresponsive"}
    if reason == "page_unresponsive" and page.activity.ended is None:
        async with asyncio.timeout(10):
            await page.ended.wait()


async def test_prototypes_the_page_has_bent_do_not_fool_the_walk(site: Site, page: Page) -> None:
    """Checks and walks run with the engine's own prototypes, whatever the page did to its own."""
    body = """<script>Element.prototype.getBoundingClientRect =
    () => ({ left: 0, top: 0, right: 9, bottom: 9, width: 9, height: 9 });
    Element.prototype.getAttribute = () => 'forged'; document.elementFromPoint = () => document.body;
    Element.prototype.checkVisibility = () => true;
    window.addEventListener = () => 0; JSON.stringify = () => 'x'; Promise = class {}</script>
    <button style="display:none">No</button><button onclick="out.textContent='hit'" style="margin:100px">Yes</button>
    <p id=out></p>"""
    snapshot = await visit(page, site.show(body))
    assert [n.name for n in snapshot.nodes if n.role == "button"] == ["Yes"]
    await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "hit"


async def test_a_stopped_mousedown_is_still_delivered(site: Site, page: Page) -> None:
    """A page that swallows events does so after us: the click counts as delivered, once."""
    body = """<button id=b>Press</button><p id=out>0</p><script>for (const k of ['pointerdown', 'mousedown', 'click'])
    addEventListener(k, (e) => { e.stopImmediatePropagation(); e.preventDefault();
    if (k === 'click') out.textContent++ }, true)</script>"""
    snapshot = await visit(page, site.show(body))
    acted = await actions.click(page, node(snapshot, "button").ref)
    assert acted.delivered
    assert await text(page) == "1"


async def test_a_button_that_removes_itself_on_mousedown(site: Site, page: Page) -> None:
    """A node that goes away under the pressed button is no error of ours; later its ref is stale."""
    snapshot = await visit(
        page, site.show("<button onmousedown=\"this.remove(); out.textContent='gone'\">Press</button><p id=out></p>")
    )
    ref = node(snapshot, "button").ref
    acted = await actions.click(page, ref)
    assert acted.delivered
    assert await text(page) == "gone"
    with pytest.raises((StaleRefError, RefusedError)):
        await actions.click(page, ref)
