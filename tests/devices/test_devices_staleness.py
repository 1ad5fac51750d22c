"""Both staleness error rates over seeded steps on a phone with a ticking clock and a spinner."""

import random
from pathlib import Path

import pytest
from device_rig import a_phone, journal, on_device, open_app, taps

from devices.faults import TargetRefused
from devices.hands import RefAt
from devices.phone import Phone

APP = """
package = "lomi.test.stale"
label = "Stale"

[[screens]]
activity = ".Main"
title = "Inbox"
[[screens.items]]
kind = "clock"
id = "clock"
[[screens.items]]
kind = "spinner"
id = "spinner"
[[screens.items]]
kind = "button"
id = "open"
text = "Open"
tap = [{ do = "open", target = ".Detail" }]
[[screens.items]]
kind = "button"
id = "archive"
text = "Archive"
[[screens.items]]
kind = "check"
id = "star"
text = "Star"
[[screens.items]]
kind = "row"
id = "mail"
text = "Mail {n}"
count = 4
tap = [{ do = "log", target = "mail", value = "{n}" }]

[[screens]]
activity = ".Detail"
title = "Message"
[[screens.items]]
kind = "clock"
id = "clock"
[[screens.items]]
kind = "button"
id = "delete"
text = "Delete"
[[screens.items]]
kind = "button"
id = "archive"
text = "Archive"
[[screens.items]]
kind = "button"
id = "back"
text = "Back"
tap = [{ do = "back" }]
"""
PACKAGE = "lomi.test.stale"
MAIN = ("Open", "Archive", "Star", "Mail 1", "Mail 2", "Mail 3", "Mail 4")
DETAIL = ("Delete", "Archive", "Back")


async def steps(phone: Phone, count: int, seed: int) -> tuple[int, int, int]:
    """Seeded steps: (taps accepted, wrong acceptances, wrong refusals), judged by the phone's own journal."""
    dice = random.Random(seed)
    await on_device(phone, "cmd lomi_agent clock run 20")
    await open_app(phone, PACKAGE)
    known: list[tuple[str, str, RefAt]] = []
    accepted = wrong_acceptances = wrong_refusals = 0
    screen = "main"
    for _ in range(count):
        if not known or dice.random() < 0.3:
            snapshot = await phone.eyes.snapshot()
            names = MAIN if screen == "main" else DETAIL
            labels = snapshot.tree.labels
            for name in names:
                index = next(node.index for node in snapshot.tree.nodes if labels[node.index] == name)
                known.append((screen, name, RefAt(snapshot.id, snapshot.refs[index])))
            known = known[-12:]
        move = dice.random()
        if move < 0.15 and screen == "detail":
            await on_device(phone, "input keyevent 4")  # behind the library's back
            screen = "main"
            continue
        if move < 0.15:
            await on_device(phone, f"am start -n {PACKAGE}/.Detail")
            screen = "detail"
            continue
        where, name, at = dice.choice(known)
        before = len(taps(phone))
        try:
            await phone.hands.tap(at)
        except TargetRefused:
            wrong_refusals += where == screen
            assert len(taps(phone)) == before
            continue
        accepted += 1
        hits = taps(phone)[before:]
        assert len(hits) == 1
        if where != screen:
            wrong_acceptances += 1
        elif name == "Open":
            screen = "detail"
        elif name == "Back":
            screen = "main"
    return accepted, wrong_acceptances, wrong_refusals


async def test_refs_are_never_wrong_over_a_hundred_steps(tmp_path: Path) -> None:
    """A hundred seeded steps: no tap on another element, no refusal of one that is there (pains 1, 3)."""
    async with a_phone(tmp_path, apps=APP) as phone:
        accepted, wrong_acceptances, wrong_refusals = await steps(phone, 100, seed=11)
        assert (wrong_acceptances, wrong_refusals) == (0, 0)
        assert accepted > 20
        assert journal(phone, "input")


@pytest.mark.deep
@pytest.mark.timeout(600)
async def test_refs_are_never_wrong_over_a_thousand_steps(tmp_path: Path) -> None:
    """A thousand seeded steps: the same two rates are zero."""
    async with a_phone(tmp_path, apps=APP) as phone:
        accepted, wrong_acceptances, wrong_refusals = await steps(phone, 1000, seed=12)
        assert (wrong_acceptances, wrong_refusals) == (0, 0)
        assert accepted > 200


async def test_two_hundred_taps_beside_a_clock_are_all_accepted(tmp_path: Path) -> None:
    """A ticking clock and a spinner never expire a button: one ref, many taps, no refusal (pains 3)."""
    async with a_phone(tmp_path, apps=APP) as phone:
        await on_device(phone, "cmd lomi_agent clock run 50")
        await open_app(phone, PACKAGE)
        snapshot = await phone.eyes.snapshot()
        index = next(node.index for node in snapshot.tree.nodes if snapshot.tree.labels[node.index] == "Archive")
        for _ in range(40):
            await phone.hands.tap(RefAt(snapshot.id, snapshot.refs[index]))
        assert len(taps(phone)) == 40
        assert {row["hit"] for row in taps(phone)} != {""}
