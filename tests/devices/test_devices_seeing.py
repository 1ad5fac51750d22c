"""Looking at a phone: failures are named, nothing is made up, and what changed is told."""

import struct
import zlib
from collections.abc import Awaitable
from pathlib import Path

import pytest
from device_rig import a_phone, on_device, open_app

from devices import eyes
from devices.capture import check_png
from devices.faults import CaptureFailed, DeviceFault, TreeUnavailable
from devices.geometry import apply
from devices.hands import RefAt
from devices.hierarchy.snapshots import Snapshot
from devices.observing import Looker, Observation, Seen
from devices.state import frames_when_idle

FORM = "lomi.paper.form"
SECRETS = """
package = "lomi.test.secrets"
label = "Secrets"
[[screens]]
activity = ".Main"
title = "Secrets"
secure = true
[[screens.items]]
kind = "field"
id = "pin"
password = true
hint = "PIN"
[[screens.items]]
kind = "button"
id = "crash"
text = "Crash"
tap = [{ do = "crash", value = "boom" }]
[[screens.items]]
kind = "button"
id = "freeze"
text = "Freeze"
tap = [{ do = "anr" }]
[[screens.items]]
kind = "button"
id = "ask"
text = "Ask"
tap = [{ do = "permission", target = "android.permission.CAMERA" }]
[[screens.items]]
kind = "button"
id = "doze"
text = "Doze"
tap = [{ do = "sleep", value = "0" }]
"""
LONG = """
package = "lomi.test.long"
label = "Long"
[[screens]]
activity = ".Main"
title = "Long list"
scroll = true
[[screens.items]]
kind = "row"
id = "row"
text = "Row {n}"
count = 60
"""


async def fault_of(work: Awaitable[object]) -> DeviceFault | None:
    try:
        await work
    except DeviceFault as fault:
        return fault
    return None


async def add_fault(phone: object, words: str) -> None:
    await on_device(phone, f"cmd lomi_agent fault add {words}")  # type: ignore[arg-type]


async def test_a_failed_dump_is_retried_once_and_never_an_empty_screen(tmp_path: Path) -> None:
    """One failed dump is survived; failures to the end are named and no empty tree (pains 51, 52)."""
    async with a_phone(tmp_path) as phone:
        await add_fault(phone, "failed_dump times=2")
        assert (await phone.eyes.snapshot()).tree.nodes
        await add_fault(phone, "failed_dump times=500")
        before = phone.eyes.newest
        fault = await fault_of(phone.eyes.snapshot())
        assert isinstance(fault, TreeUnavailable)
        assert fault.reason == "tree_not_idle"
        seen = await phone.eyes.observe(before, within=0.1)
        assert seen.snapshot is None
        assert seen.settled is False
        assert "no observation: tree_not_idle" in seen.text


async def test_noise_around_the_document_is_kept_as_warnings(tmp_path: Path) -> None:
    """Lines before the XML do not break it and are not lost (pains 53)."""
    async with a_phone(tmp_path) as phone:
        await add_fault(phone, "dump_noise times=1")
        snapshot = await phone.eyes.snapshot()
        assert snapshot.tree.nodes
        assert any("text relocations" in line for line in snapshot.tree.warnings)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("empty_png", "capture_invalid"),
        ("truncated_png", "capture_truncated"),
        ("truncated_png value=20", "capture_truncated"),
        ("failed_picture", "capture_invalid"),
    ],
)
async def test_a_broken_picture_is_never_a_success(tmp_path: Path, words: str, reason: str) -> None:
    """Empty, truncated and refused pictures are named after one more try; one bad picture is survived (pains 42)."""
    async with a_phone(tmp_path) as phone:
        await add_fault(phone, f"{words} times=1")
        assert (await phone.eyes.capture()).full.width == 720
        await add_fault(phone, words)
        fault = await fault_of(phone.eyes.capture())
        assert isinstance(fault, CaptureFailed)
        assert fault.reason == reason


async def test_text_before_the_picture_is_metadata(tmp_path: Path) -> None:
    """The multi-display warning is stripped and kept; the picture is whole (pains 39)."""
    async with a_phone(tmp_path) as phone:
        await add_fault(phone, "text_before_png times=1")
        capture = await phone.eyes.capture()
        assert any("Multiple displays" in line for line in capture.full.warnings)
        assert check_png(capture.full.png).width == 720


async def test_black_pictures_are_explained(tmp_path: Path) -> None:
    """Black by a secure window, a dark display, a dead renderer: three names; else uniform (pains 43, 44)."""
    async with a_phone(tmp_path, apps=SECRETS) as phone:
        await add_fault(phone, "black_picture times=1")
        assert (await phone.eyes.capture()).uniform is True
        await open_app(phone, "lomi.test.secrets")
        secure = await fault_of(phone.eyes.capture())
        assert secure is not None
        assert secure.reason == "capture_secure"
        await phone.hands.navigate("home")
        await on_device(phone, "setprop debug.hwui.drawing_enabled 0")
        dead = await fault_of(phone.eyes.capture())
        assert dead is not None
        assert dead.reason == "renderer_disabled"
        await phone.hands.navigate("power")
        off = await fault_of(phone.eyes.capture())
        assert off is not None
        assert off.reason == "display_off"


async def test_a_bounded_picture_maps_back_to_hardware_in_all_rotations(tmp_path: Path) -> None:
    """The reply keeps within edge and bytes, says it is scaled, and its affine map lands where the contract says."""
    async with a_phone(tmp_path) as phone:
        for turns in range(4):
            await phone.hands.rotate(turns)
            capture = await phone.eyes.capture(max_edge=640, max_bytes=16384)
            assert max(capture.bounded.width, capture.bounded.height) <= 640
            assert len(capture.bounded.png) <= 16384
            assert capture.scaled
            corner = apply(capture.image_to_hardware, 0, 0, phone.spec.display)
            assert corner == [(0, 0), (719, 0), (719, 1279), (0, 1279)][turns]


async def test_crashes_dialogs_and_a_dark_display_are_told_after_the_act(tmp_path: Path) -> None:
    """What went wrong after a tap is in its observation: crash, ANR, permission dialog, display off (pains 49)."""
    async with a_phone(tmp_path, apps=SECRETS) as phone:

        async def tap(name: str) -> str:
            await on_device(phone, "am force-stop lomi.test.secrets")
            await open_app(phone, "lomi.test.secrets")
            before = await phone.eyes.snapshot()
            index = next(node.index for node in before.tree.nodes if before.tree.labels[node.index] == name)
            await phone.hands.tap(RefAt(before.id, before.refs[index]))
            return (await phone.eyes.observe(before)).text

        assert "crash: lomi.test.secrets" in await tap("Crash")
        await phone.hands.navigate("home")
        assert "permission_dialog" in await tap("Ask")
        await phone.hands.navigate("back")
        asked = await tap("Freeze")
        assert "anr_dialog lomi.test.secrets" in asked
        await on_device(phone, "am force-stop lomi.test.secrets")
        assert "display: off" in await tap("Doze")


TWICE = """
package = "lomi.test.twice"
label = "Twice"
[[screens]]
activity = ".Main"
title = "Twice"
[[screens.items]]
kind = "text"
id = "state"
text = "idle"
[[screens.items]]
kind = "button"
id = "go"
text = "Go"
tap = [{ do = "set", target = "state", value = "started" }]
[[screens.items]]
kind = "button"
id = "stop"
text = "Stop"
tap = [{ do = "set", target = "state", value = "idle" }]
"""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """Every look at a hierarchy, as it is taken."""
    taken: list[Seen] = []
    plain = Looker.look

    async def counted(self: Looker, *arguments: object, **options: object) -> Seen:
        taken.append(await plain(self, *arguments, **options))  # type: ignore[arg-type]
        return taken[-1]

    monkeypatch.setattr(Looker, "look", counted)
    return taken


def ref_named(snapshot: Snapshot, name: str) -> RefAt:
    """The ref of the element with that label."""
    index = next(node.index for node in snapshot.tree.nodes if snapshot.tree.labels[node.index] == name)
    return RefAt(snapshot.id, snapshot.refs[index])


async def test_a_change_that_is_still_to_be_drawn_is_waited_for(
    tmp_path: Path, looks: list[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nothing is to be drawn settles the first look; while the device awaits a frame, more are taken."""
    # A look that took long settles too, and on a machine that stands still any of them does.
    monkeypatch.setattr(eyes, "_SLOW_LOOK_S", 60.0)
    async with a_phone(tmp_path, apps=TWICE) as phone:

        async def tap(name: str) -> Observation:
            before = await phone.eyes.snapshot()
            await phone.hands.tap(ref_named(before, name))
            looks.clear()
            return await phone.eyes.observe(before)

        await open_app(phone, "lomi.test.twice")
        assert "started" in (await tap("Go")).text
        assert [seen.frames is not None for seen in looks] == [True]
        await tap("Stop")
        await add_fault(phone, "late_change times=1 seconds=0.012 text=state=finished")
        seen = await tap("Go")
        assert (seen.settled, "finished" in seen.text) == (True, True)


async def test_a_look_is_as_good_as_a_new_one_while_nothing_was_drawn(tmp_path: Path, looks: list[Seen]) -> None:
    """A tap on a screen at rest needs no second dump; after a change behind its back it is refused, however quick."""
    async with a_phone(tmp_path, apps=TWICE) as phone:
        await open_app(phone, "lomi.test.twice")
        seen = await phone.eyes.snapshot()
        looks.clear()
        await phone.hands.tap(ref_named(seen, "Stop"))
        assert looks == []
        for _ in range(5):
            seen = await phone.eyes.snapshot()
            await on_device(phone, f"am start -n {FORM}/.FormActivity")
            fault = await fault_of(phone.hands.tap(ref_named(seen, "Stop")))
            assert fault is not None
            assert fault.reason == "stale_ref"
            await on_device(phone, "am start -n lomi.test.twice/.Main")


def test_the_compositors_words_are_read_with_care() -> None:
    """Frames count only while every view is idle; another wording, or none, is no answer."""
    idle = "app: state=Idle VSyncState={displayId=46198, count=12}\n"
    assert frames_when_idle(idle) == 12
    for busy in (
        idle + "    Connection{0x7a, VSyncRequest::Single}\n",
        idle + "    Connection{0x7a, VSyncRequest::Periodic{period=2}}\n",
        idle.replace("Idle", "VSync"),
        "app: state=Idle VSyncState=none\n",
        "",
    ):
        assert frames_when_idle(busy) is None


async def test_a_password_is_never_shown(tmp_path: Path) -> None:
    """Password and editable values are left out of elements, outline, diff and repr."""
    async with a_phone(tmp_path, apps=SECRETS) as phone:
        await open_app(phone, "lomi.test.secrets")
        before = await phone.eyes.snapshot()
        field = next(node for node in before.tree.nodes if node.editable)
        await phone.hands.tap(RefAt(before.id, before.refs[field.index]))
        typed = await phone.hands.type_text("hunter2")
        assert typed.confirmed is None
        after = await phone.eyes.snapshot()
        elements, _ = after.elements()
        shown = [str(elements), after.outline().text, after.outline(query="PIN").text, repr(after)]
        assert not any("hunter2" in text for text in shown)
        assert any(element.value_omitted for element in elements)


async def test_an_outline_stays_small_and_query_reaches_everything(tmp_path: Path) -> None:
    """At most 250 tokens an ordinary screen, omissions counted, any visible row can be queried (pains 54)."""
    async with a_phone(tmp_path, apps=LONG) as phone:
        await open_app(phone, "lomi.test.long")
        snapshot = await phone.eyes.snapshot()
        outline = snapshot.outline(limit=120)
        assert len(outline.text.encode()) <= 160
        assert outline.omitted > 0
        whole = snapshot.outline()
        assert len(whole.text.encode()) <= 1000
        found = snapshot.outline(query="Row 7")
        assert [line.split(" ", 1)[1] for line in found.lines] == ['text "Row 7"']


def test_png_checks_refuse_forged_pictures() -> None:
    """A wrong header checksum, a zero size and random bytes are all refused."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    good = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    for raw in (b"", b"\x00" * 100, good[:-4] + b"\0\0\0\0" + b"\0" * 20, good + b"\0" * 30):
        with pytest.raises(CaptureFailed):
            check_png(raw)
