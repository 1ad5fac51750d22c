"""Acting on a phone: what the library says, and what the phone itself recorded."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest
from device_rig import a_phone, journal, on_device, open_app, taps, until

from devices.faults import ChannelLost, DeviceFault, InputFailed, TargetRefused, TextRefused
from devices.hands import PointAt, RefAt
from devices.phone import Phone

FORM = "lomi.paper.form"


class Mark:
    """An effect that records what had happened when it was entered."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.entered_with: list[int] = []
        self.left_with: list[int] = []

    async def __aenter__(self) -> None:
        self.entered_with.append(len(journal(self.phone)))

    async def __aexit__(self, *_: object) -> None:
        self.left_with.append(len(journal(self.phone)))


def ref_of(phone: Phone, name: str) -> RefAt:
    snapshot = phone.eyes.newest
    assert snapshot is not None
    index = next(node.index for node in snapshot.tree.nodes if snapshot.tree.labels[node.index] == name)
    return RefAt(snapshot.id, snapshot.refs[index])


async def test_a_form_is_filled_and_submitted_by_refs(tmp_path: Path) -> None:
    """An agent's whole way: launch, look, type, tap, and see what changed."""
    async with a_phone(tmp_path) as phone:
        await open_app(phone, FORM)
        before = await phone.eyes.snapshot()
        await phone.hands.tap(ref_of(phone, "Name"))
        typed = await phone.hands.type_text("Ada Lovelace")
        assert typed.confirmed is True
        mark = Mark(phone)
        before = await phone.eyes.snapshot()
        await phone.hands.tap(ref_of(phone, "Submit"), effect=mark)
        seen = await phone.eyes.observe(before)
        assert mark.entered_with[0] < mark.left_with[0], "the tap landed inside its effect"
        assert any("Submitted" in line for line in seen.text.splitlines())
        (form,) = journal(phone, "submit")
        assert "Ada Lovelace" in str(form)
        assert seen.settled


async def test_a_gone_target_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    """A ref of another screen refuses; the phone records no tap and the effect is not entered (pains 1)."""
    async with a_phone(tmp_path) as phone:
        await open_app(phone, FORM)
        await phone.eyes.snapshot()
        submit = ref_of(phone, "Submit")
        await phone.hands.navigate("home")
        mark = Mark(phone)
        with pytest.raises(TargetRefused) as refusal:
            await phone.hands.tap(submit, effect=mark)
        assert refusal.value.reason == "stale_ref"
        assert taps(phone) == []
        assert mark.entered_with == []


async def test_a_lost_reply_is_unknown_and_never_repeated(tmp_path: Path) -> None:
    """The channel breaks while the first tap is under way: one tap lands, the answer is unknown (pains 2, 29)."""
    async with a_phone(tmp_path) as phone:
        await on_device(phone, "cmd lomi_agent fault add lost_reply times=1")
        mark, before = Mark(phone), len(journal(phone))
        _, lanes = phone._actor.usable(None)
        async with asyncio.TaskGroup() as group:
            tapping = group.create_task(outcome(phone.hands.tap(PointAt(100, 100), effect=mark)))
            await until(lambda: len(taps(phone)) == 1)
            lanes.act.abandon()
        fault = tapping.result()
        assert isinstance(fault, ChannelLost)
        assert fault.effect == "unknown"
        assert mark.entered_with == [before]
        await phone.hands.navigate("home")
        assert len(taps(phone)) == 1


async def outcome(work: Awaitable[None]) -> DeviceFault | None:
    try:
        await work
    except DeviceFault as fault:
        return fault
    return None


TEXTS = [
    "plain words 123",
    "100%sure and %s %d",
    "'quotes' \"double\" `tick` $(id) ; & | < > \\ *",
    "שלום עולם",
    "漢字かな交じり文",
    "👩‍👩‍👧‍👦 and 👍🏽",
    "e\u0301 a\u0308 combining",
    "line one\nline two",
    "-n --help",
]


async def test_every_text_arrives_exactly(tmp_path: Path) -> None:
    """Metacharacters, percent, other scripts, emoji and line breaks: the field holds exactly that (pains 46, 48)."""
    async with a_phone(tmp_path) as phone:
        for number, words in enumerate(TEXTS):
            await on_device(phone, f"am force-stop {FORM}")
            await open_app(phone, FORM)
            await phone.eyes.snapshot()
            await phone.hands.tap(ref_of(phone, "Name"))
            typed = await phone.hands.type_text(words)
            assert typed.confirmed is True, f"text {number}"
            seen = await phone.eyes.snapshot()
            field = seen.tree.focused_editable
            assert field is not None
            assert field.text == words


async def test_text_that_cannot_be_typed_is_refused_whole(tmp_path: Path) -> None:
    """Where the clipboard cannot be set, non-ASCII text is refused before a byte is typed."""
    async with a_phone(tmp_path) as phone:
        phone.hands._paste_known = (phone.running.boot_id, False)
        mark = Mark(phone)
        with pytest.raises(TextRefused) as refusal:
            await phone.hands.type_text("abc é", effect=mark)
        assert refusal.value.reason == "text_needs_ime"
        assert journal(phone, "text") == []
        assert mark.entered_with == []


async def test_gestures_keys_and_rotation_reach_the_phone(tmp_path: Path) -> None:
    """Tap counts, holds, swipes, held touches, key chords and rotation arrive as asked."""
    async with a_phone(tmp_path) as phone:
        await phone.hands.tap(PointAt(360, 700), count=3)
        assert len(taps(phone)) == 3
        await phone.hands.tap(PointAt(360, 700), hold_ms=600)
        await phone.hands.swipe(PointAt(360, 1000), PointAt(360, 300), duration_ms=100)
        await phone.hands.touch("down", 10, 700)
        with pytest.raises(InputFailed):
            await phone.hands.touch("down", 11, 700)
        await phone.hands.touch("move", 30, 700)
        await phone.hands.release()
        kinds = [(row["event"], row["kind"]) for row in journal(phone) if row["event"] in {"input", "motion"}]
        assert kinds[3:] == [
            ("input", "swipe"),
            ("input", "swipe"),
            ("motion", "DOWN"),
            ("motion", "MOVE"),
            ("motion", "UP"),
            ("input", "motionevent"),
        ]
        await phone.hands.press("Tab", count=2)
        await phone.hands.key("Shift", down=True)
        await phone.hands.key("a", down=True)
        await phone.hands.key("Shift", down=False)
        with pytest.raises(InputFailed) as refusal:
            await phone.hands.press("NoSuchKey")
        assert refusal.value.reason == "bad_key"
        assert [row["codes"] for row in journal(phone, "key")] == [["61"], ["61"], ["59", "29"]]
        await phone.hands.rotate(1)
        assert (await phone.eyes.snapshot()).screen.size == (1280, 720)
        await phone.hands.tap(PointAt(700, 100))
        assert (taps(phone)[-1]["x"], taps(phone)[-1]["y"]) == (100, 19)
        with pytest.raises(TargetRefused) as outside:
            await phone.hands.tap(PointAt(720, 100))
        assert outside.value.reason == "outside_display"
