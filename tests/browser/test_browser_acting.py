"""Trusted input on exactly one node."""

import pytest
from browser_probe import Probe
from browser_site import Site
from browser_steps import Effects, node, text, visit

from browser import actions, gestures
from browser.errors import RefusedError, StaleRefError, StaleSnapshotError
from browser.page import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNTER = """<title>counter</title><button id=b onclick="out.textContent = ++n + ' ' + event.isTrusted">Press</button>
<p id=out></p><script>let n = 0</script>"""


async def test_click_reaches_the_page_as_trusted_input_once(site: Site, page: Page) -> None:
    """A click arrives once, trusted, and the answer shows what it changed."""
    snapshot = await visit(page, site.show(COUNTER))
    effects = Effects()
    acted = await actions.click(
        page, node(snapshot, "button").ref, snapshot_id=snapshot.snapshot_id, effect=effects.effect()
    )
    assert await text(page) == "1 true"
    assert acted.delivered is True
    assert acted.observation.settled
    assert [(n.role, n.name) for n in acted.observation.diff.added] == [("text", "1 true")]
    assert effects.entered == 1


async def test_double_right_and_modified_clicks(site: Site, page: Page) -> None:
    """Button, count, modifiers and position arrive as asked."""
    body = """<div tabindex=0 id=t style="width:200px;height:100px">target</div><p id=out></p><script>
    const say = (e) => out.textContent += [e.type, e.button, e.detail, e.ctrlKey, e.offsetX, e.offsetY].join(',') + ' ';
    for (const k of ['dblclick', 'contextmenu', 'click']) t.addEventListener(k, say)</script>"""
    snapshot = await visit(page, site.show(body))
    ref = node(snapshot, "clickable").ref
    await actions.click(page, ref, count=2, position=(10, 20))
    await actions.click(page, ref, button="right", modifiers=("Control",), position=(30, 40))
    assert (await text(page)).split() == [
        "click,0,1,false,10,20",
        "click,0,2,false,10,20",
        "dblclick,0,2,false,10,20",
        "contextmenu,2,1,true,30,40",
    ] or "contextmenu,2,0,true,30,40" in await text(page)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<button disabled>Press</button>", "disabled"),
        ("<fieldset disabled><button>Press</button></fieldset>", "disabled"),
        ("<button aria-disabled=true>Press</button>", "disabled"),
        ("<button>Press</button><div style='position:fixed;inset:0' title=shade>over it</div>", "covered"),
        ("<button style='position:absolute;left:-500px'>Press</button>", "offscreen"),
        ("<input type=file aria-label=Press>", "file_input"),
    ],
)
async def test_a_node_that_cannot_take_the_click_is_refused(site: Site, page: Page, body: str, reason: str) -> None:
    """Refusals say which check failed, before any effect."""
    snapshot = await visit(page, site.show(f"<title>x</title>{body}"))
    target = next(n for n in snapshot.nodes if n.name == "Press")
    effects = Effects()
    with pytest.raises(RefusedError) as caught:
        await actions.click(page, target.ref, effect=effects.effect())
    assert caught.value.reason == reason
    assert effects.entered == 0
    if reason == "covered":
        assert caught.value.details["cover_name"] == "over it"


async def test_hidden_after_the_snapshot_is_refused(site: Site, page: Page) -> None:
    """A node that is no longer rendered is refused as hidden, one that left as detached, never another one clicked."""
    snapshot = await visit(page, site.show("<button id=a>One</button><button id=b onclick='n=1'>Two</button>"))
    one, two = node(snapshot, "button", "One"), node(snapshot, "button", "Two")
    await Probe(page).evaluate("a.style.display = 'none'")
    with pytest.raises(RefusedError) as caught:
        await actions.click(page, one.ref)
    assert caught.value.reason == "hidden"
    await Probe(page).evaluate("b.remove()")
    with pytest.raises(StaleRefError) as gone:
        await actions.click(page, two.ref)
    assert gone.value.reason == "detached"


async def test_a_partly_covered_node_is_clicked_where_it_is_free(site: Site, page: Page) -> None:
    """A free point is looked for before a click is refused."""
    body = """<div style="position:relative">
    <button id=b style="width:300px;height:40px" onclick="out.textContent='hit'">Press</button>
    <div style="position:absolute;left:100px;top:0;width:100px;height:40px;background:red">badge</div></div><p id=out>
    </p>"""
    snapshot = await visit(page, site.show(body))
    await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "hit"


async def test_what_jumps_over_the_target_in_the_last_instant_gets_no_click(site: Site, page: Page) -> None:
    """An overlay that appears after the check swallows nothing: the guard stops the event and says so."""
    body = """<button id=b onclick="out.textContent='hit'">Press</button><p id=out>none</p>"""
    snapshot = await visit(page, site.show(body))
    ref = node(snapshot, "button").ref
    overlay = """() => { const d = document.createElement('div'); d.style = 'position:fixed;inset:0;z-index:9';
    d.textContent = 'trap';
        d.onclick = d.onmousedown = d.onpointerdown = () => { out.textContent = 'trapped'; }; document.body.append(d);
    }"""

    class Jump:
        async def __aenter__(self) -> None:
            await Probe(page).evaluate(overlay)

        async def __aexit__(self, *_: object) -> None:
            return None

    with pytest.raises(RefusedError) as caught:
        await actions.click(page, ref, effect=Jump())
    assert caught.value.details["cover_name"] == "trap"
    assert caught.value.proves_no_effect
    assert await text(page) == "none"


async def test_what_moves_away_in_the_last_instant_is_followed(site: Site, page: Page) -> None:
    """A layout shift between check and press costs a second aim and never a second click, nor one on what moved in."""
    body = """<div id=top></div><button onclick="out.textContent += 'right '">Press</button>
    <div style="height:50px" id=bait
    onpointerdown="out.textContent += 'wrong '">bait</div><p id=out></p>"""
    snapshot = await visit(page, site.show(body))

    class Shift:
        async def __aenter__(self) -> None:
            await Probe(page).evaluate("top_ => document.getElementById('top').style.height = '80px'")

        async def __aexit__(self, *_: object) -> None:
            return None

    acted = await actions.click(page, node(snapshot, "button").ref, effect=Shift())
    assert acted.delivered
    assert (await text(page)).split() == ["right"]


async def test_a_moving_target_is_caught_or_refused(site: Site, page: Page) -> None:
    """A node in an endless movement is refused as moving; one that comes to rest is clicked."""
    body = """<style>@keyframes go { to { transform: translateX(400px) } }
    #a { animation: go 1s linear infinite alternate } #b { animation: go 300ms forwards }</style>
    <button id=a>Endless</button><button id=b onclick="out.textContent='hit'">Once</button><p id=out></p>"""
    snapshot = await visit(page, site.show(body))
    await actions.click(page, node(snapshot, "button", "Once").ref)
    assert await text(page) == "hit"
    with pytest.raises(RefusedError) as caught:
        await actions.click(page, node(snapshot, "button", "Endless").ref)
    assert caught.value.reason == "moving"


async def test_scrolls_a_far_target_into_view(site: Site, page: Page) -> None:
    """A target below the fold or inside a scrolled box is brought into view and clicked."""
    body = """<div style="height:3000px">space</div><div style="height:100px;overflow:auto">
    <div style="height:900px">more</div>
    <button onclick="out.textContent='hit'">Far</button></div><p id=out></p>"""
    snapshot = await visit(page, site.show(body))
    await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "hit"


@pytest.mark.parametrize("value", ["héllo 世界 🙂 \u05e9\u05dc\u05d5\u05dd", "", "a<b>&\"'`${x}", "%s\t;|"])
async def test_fill_replaces_the_text_exactly(site: Site, page: Page, value: str) -> None:
    """The field holds exactly the text; the answer has its length and never the text."""
    body = """<label>Name <input id=i value="old text"
    oninput="out.textContent = event.isTrusted + ' ' + event.inputType"></label>
    <textarea id=t>old</textarea><p id=out></p>"""
    snapshot = await visit(page, site.show(body))
    acted = await actions.fill(page, node(snapshot, "textbox", "Name").ref, value)
    assert await Probe(page).value("#i") == value
    assert acted.value_length == len(value.encode("utf-16-le")) // 2
    assert acted.input_mode == "trusted"
    assert value == "" or value not in repr(acted)
    assert (await text(page)).startswith("true ")


async def test_fill_textarea_contenteditable_date_and_select(site: Site, page: Page) -> None:
    """Every kind of field that a person fills can be filled."""
    body = """<textarea aria-label=area>old</textarea><div contenteditable aria-label=rich>old <b>text</b></div>
    <input type=date aria-label=day><input type=number aria-label=count><select aria-label=pet>
    <option>Cat<option value=d>Dog<option disabled>Emu</select>"""
    snapshot = await visit(page, site.show(body))
    await actions.fill(page, node(snapshot, "textbox", "area").ref, "two\nlines")
    await actions.fill(page, node(snapshot, "textbox", "rich").ref, "plain")
    day = await actions.fill(page, node(snapshot, "textbox", "day").ref, "2026-11-30")
    await actions.fill(page, node(snapshot, "textbox", "count").ref, "42")
    await actions.fill(page, node(snapshot, "combobox", "pet").ref, "Dog")
    assert await Probe(page).value("textarea") == "two\nlines"
    assert await text(page, "[contenteditable]") == "plain"
    assert await Probe(page).value("[type=date]") == "2026-11-30"
    assert await Probe(page).value("[type=number]") == "42"
    assert await Probe(page).value("select") == "d"
    assert day.input_mode == "scripted"
    for name, value, reason in (
        ("day", "yesterday", "malformed_value"),
        ("pet", "Emu", "no_such_option"),
        ("pet", "Yak", "no_such_option"),
    ):
        with pytest.raises(RefusedError) as caught:
            await actions.fill(page, next(n for n in snapshot.nodes if n.name == name).ref, value)
        assert caught.value.reason == reason


async def test_private_lengths_stay_private(site: Site, page: Page) -> None:
    """The length of a password or a token is told nowhere."""
    body = (
        "<input type=password aria-label=p value=secret><input name=csrf_token aria-label=t value=abc>"
        "<input aria-label=n value=1234>"
    )
    snapshot = await visit(page, site.show(body))
    lengths = {n.name: n.value_length for n in snapshot.nodes}
    assert lengths == {"p": None, "t": None, "n": 4}
    assert (await actions.fill(page, node(snapshot, "textbox", "p").ref, "hunter2")).value_length is None


async def test_read_only_and_plain_nodes_are_not_filled(site: Site, page: Page) -> None:
    """Only what is editable is filled."""
    snapshot = await visit(page, site.show("<input readonly aria-label=a><button>b</button>"))
    for ref, reason in ((node(snapshot, "textbox").ref, "read_only"), (node(snapshot, "button").ref, "not_editable")):
        with pytest.raises(RefusedError) as caught:
            await actions.fill(page, ref, "x")
        assert caught.value.reason == reason


async def test_keys_have_their_default_action(site: Site, page: Page) -> None:
    """Enter submits, chords select and delete, Tab moves the focus."""
    body = """<form onsubmit="out.textContent='sent ' + a.value; return false"><input id=a aria-label=a value=text>
    <input aria-label=b><button>Go</button></form><p id=out></p>"""
    snapshot = await visit(page, site.show(body))
    first = node(snapshot, "textbox", "a").ref
    await gestures.key(page, "Control+A", ref=first)
    await gestures.key(page, "Delete")
    assert await Probe(page).value("#a") == ""
    moved = await gestures.key(page, "Tab")
    assert moved.observation.diff.focus == node(snapshot, "textbox", "b").ref
    with pytest.raises(RefusedError) as caught:
        await gestures.key(page, "Enter", ref=first, must_be_focused=True)
    assert caught.value.reason == "not_focused"
    await gestures.key(page, "Enter", ref=first)
    assert (await text(page)).strip() == "sent"
    with pytest.raises(RefusedError) as unknown:
        await gestures.key(page, "NoSuchKey")
    assert unknown.value.reason == "unknown_key"


async def test_scroll_turns_the_viewport_and_shows_what_came_up(site: Site, page: Page) -> None:
    """The wheel moves the viewport by the pixels asked and the diff lists what came into view."""
    body = "<div style='height:1000px'>top</div><button>Below</button><div style='height:3000px'>end</div>"
    await visit(page, site.show(body))
    acted = await gestures.scroll(page, 0, 600)
    assert acted.scroll == (0, 600)
    assert acted.input_mode == "trusted"
    assert any(n.name == "Below" for n in acted.observation.diff.changed + acted.observation.diff.added)
    inner = (
        "<div style='height:100vh;overflow:auto' tabindex=0 aria-label=box><div style='height:3000px'>tall</div></div>"
    )
    snapshot = await visit(page, site.show(inner, "/inner"))
    box = await gestures.scroll(page, 0, 300, ref=node(snapshot, "clickable", "box").ref)
    assert box.scroll == (0, 300)
    with pytest.raises(RefusedError):
        await gestures.scroll(page, 0, float("nan"))


async def test_check_select_hover_and_drag(site: Site, page: Page) -> None:
    """The other gestures do what their names say."""
    body = """<label><input type=checkbox id=c> Agree</label><select multiple aria-label=many>
    <option>A<option>B<option>C</select>
    <div tabindex=0 id=h onmouseenter="out.textContent='over'">Hover me</div><p id=out></p>
    <div draggable=true tabindex=0 id=d ondragstart="event.dataTransfer.setData('text','x')">Drag me</div>
    <div tabindex=0 id=z ondragover="event.preventDefault()"
    ondrop="out.textContent='dropped ' + event.dataTransfer.getData('text')">Drop here</div>"""
    snapshot = await visit(page, site.show(body))
    box = node(snapshot, "checkbox").ref
    on = await actions.check(page, box)
    assert on.checked == "true"
    again = await actions.check(page, box)
    assert again.checked == "true"
    assert await Probe(page).evaluate("c.checked")
    assert (await actions.check(page, box, on=False)).checked == "false"
    await gestures.select(page, node(snapshot, "combobox").ref, ("A", "C"))
    assert (
        await Probe(page).evaluate("[...document.querySelector('select').selectedOptions].map(o => o.text).join()")
        == "A,C"
    )
    await gestures.hover(page, node(snapshot, "clickable", "Hover me").ref)
    assert await text(page) == "over"
    await gestures.drag(page, node(snapshot, "clickable", "Drag me").ref, node(snapshot, "clickable", "Drop here").ref)
    assert await text(page) == "dropped x"


async def test_refs_die_with_their_document_and_never_name_another_node(site: Site, page: Page) -> None:
    """After a navigation every old ref is stale although the new page looks the same."""
    url = site.show(COUNTER)
    first = await visit(page, url)
    second = await visit(page, url)
    old, new = node(first, "button").ref, node(second, "button").ref
    assert old != new
    with pytest.raises(StaleRefError):
        await actions.click(page, old)
    await actions.click(page, new)
    assert await text(page) == "1 true"


async def test_the_last_eight_snapshots_count(site: Site, page: Page) -> None:
    """A ref may be used with any of the last 8 snapshots, and not with an older one."""
    first = await visit(page, site.show(COUNTER))
    ref = node(first, "button").ref
    snapshots = [await page.snapshot() for _ in range(8)]
    assert all(node(s, "button").ref == ref for s in snapshots)
    await actions.click(page, ref, snapshot_id=snapshots[0].snapshot_id)
    with pytest.raises(StaleSnapshotError):
        await actions.click(page, ref, snapshot_id=first.snapshot_id)
    assert await text(page) == "1 true"


async def test_a_ref_that_was_never_handed_out_is_refused(site: Site, page: Page) -> None:
    """Guessing numbers leads nowhere."""
    await visit(page, site.show(COUNTER))
    for guess in ("main-e9999", "f1-e1", "main-e", "e1", "main-e1x", ""):
        with pytest.raises(StaleRefError):
            await actions.click(page, guess)


async def test_a_frame_that_slides_over_the_target_gets_no_click(site: Site, page: Page) -> None:
    """The guard stands in every frame: a press that would land in another document is swallowed there."""
    site.show("<body onpointerdown=\"parent.postMessage('trapped', '*')\">trap", "/trap")
    body = """<button onclick="out.textContent='hit'">Press</button><p id=out>none</p>
    <iframe id=f src=/trap style="position:fixed;left:0;top:5000px;width:100vw;height:100vh"></iframe>
    <script>onmessage = (e) => { out.textContent = e.data }</script>"""
    snapshot = await visit(page, site.show(body))

    class Slide:
        async def __aenter__(self) -> None:
            await Probe(page).evaluate("f.style.top = 0")

        async def __aexit__(self, *_: object) -> None:
            return None

    with pytest.raises(RefusedError) as caught:
        await actions.click(page, node(snapshot, "button").ref, effect=Slide())
    assert caught.value.reason == "covered"
    assert await text(page) == "none"
    await Probe(page).evaluate("f.style.top = '5000px'")
    await actions.click(page, node(snapshot, "button").ref)
    assert await text(page) == "hit"


async def test_scaled_and_cross_site_frames_take_clicks_and_text(site: Site, page: Page) -> None:
    """Coordinates hold in a frame that is scaled, and text reaches a field in another process."""
    site.show(
        "<body style='margin:0'><button style='margin:200px 0 0 300px'>In</button><input id=i aria-label=field>", "/in"
    )
    site.pages["/in2"] = site.pages["/in"]
    body = f"""<iframe src=/in style="width:600px;height:300px;transform:scale(.5);transform-origin:0 0"></iframe>
    <iframe src={site.other_url}/in2 style="width:600px;height:300px"></iframe>"""
    snapshot = await visit(page, site.show(body))
    buttons = [n for n in snapshot.nodes if n.role == "button"]
    fields = [n for n in snapshot.nodes if n.role == "textbox"]
    assert len(buttons) == len(fields) == 2
    for button, field in zip(buttons, fields, strict=True):
        assert (await actions.click(page, button.ref)).delivered
        assert (await actions.fill(page, field.ref, "wörd")).delivered
    for frame in ("f1", "f2"):
        assert await Probe(page, frame).value("#i") == "wörd"
