"""What an agent is told of the text that it types into a phone, from the receipt and the observation of the act."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import ALL_SCOPES, Agent, Answered, ClientEntry, World, agent, opened_world, owner, policy_text, until
from harness.journal import written_lines

from devices.adb.shell import run_once
from devices.adb.wire import AdbClient

FIELDS = """
package = "lomi.test.fields"
label = "Fields"
[[screens]]
activity = ".Main"
items = [
    { kind = "field", id = "plain", hint = "Plain" },
    { kind = "field", id = "twin", hint = "Plain" },
    { kind = "field", id = "short", hint = "Short", most = 4 },
    { kind = "field", id = "upper", hint = "Upper", form = "upper" },
    { kind = "field", id = "phone", hint = "Phone", form = "groups" },
    { kind = "field", id = "clears", hint = "Clears", clears = true },
    { kind = "field", id = "code", hint = "Code", full = 3 },
    { kind = "field", id = "secret", hint = "Secret", password = true },
    { kind = "field", id = "api_token", hint = "Key" },
    { kind = "button", id = "done", text = "Done", tap = [{ do = "submit" }] },
]
[[screens]]
activity = ".Bare"
hierarchy = false
items = [{ kind = "field", id = "hidden", hint = "Hidden" }, { kind = "button", id = "done", text = "Done" }]
"""
PACKAGE = "lomi.test.fields"
HELD, PARTLY, UNKNOWN = "receipt succeeded/complete", "receipt failed/partial", "receipt outcome_unknown/unknown"
DIFFERS, UNCONFIRMED = " OUTCOME_UNKNOWN (text_differs)", " OUTCOME_UNKNOWN (text_not_confirmed)"


@contextmanager
def fields_world(image: str) -> Iterator[World]:
    """A broker with one phone that has the fields."""
    apps = Path(tempfile.mkdtemp(prefix="la-"))
    (apps / "fields.toml").write_text(FIELDS)
    client = ClientEntry(label="qa", scopes=ALL_SCOPES, devices=("*",))
    policy = policy_text(client, phones=("phone-1",)).replace('"paper-36"', f'"{image}"')
    try:
        with opened_world(policy, always={"PAPER_APPS": str(apps)}) as made:
            yield made
    finally:
        shutil.rmtree(apps)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Of a present release."""
    with fields_world("paper-36") as made:
        yield made


class Hand:
    """An agent's hand on the running phone: acts with what every call names, the next sequence, and an observation."""

    def __init__(self, world: World, qa: Agent, named: dict[str, Any]) -> None:
        self.world, self.qa, self.named = world, qa, named
        self.sequence = 0

    @property
    def alone(self) -> dict[str, Any]:
        """What reads name."""
        return {name: value for name, value in self.named.items() if name != "leaseId"}

    async def input(self, event: dict[str, Any], **more: Any) -> Answered:
        """One event."""
        self.sequence += 1
        given = {"retryEpoch": self.qa.epoch, "inputSequence": str(self.sequence), "event": event, "waitMs": 15_000}
        return await self.qa.call("lomi_android_input", {**self.named, **given, **more})

    async def type(self, words: str) -> Answered:
        """Text into what has the focus."""
        return await self.input({"type": "text", "text": words})

    async def press(self, key: str) -> None:
        """A key that must arrive."""
        assert (await self.input({"type": "press", "key": key})).short == HELD

    async def open(self, activity: str = ".Main") -> None:
        """The app, as new, and no fault planned."""
        await self.shell(f"cmd lomi_agent fault clear; am force-stop {PACKAGE}")
        opened = await self.qa.revised(**self.alone, packageName=PACKAGE, activity=activity)
        await self.qa.do("lomi_android_launch", opened)

    async def look(self) -> tuple[dict[str, Any], str]:
        """The nodes by id, and the snapshot's id."""
        data = (await self.qa.ask("lomi_android_snapshot", **self.alone, form="elements")).data
        nodes = {node["resourceId"].rpartition("/")[2]: node for node in data["nodes"]}
        return nodes, data["snapshotId"]

    async def focus(self, name: str) -> list[str]:
        """Tap a field by its id."""
        nodes, snapshot = await self.look()
        at = {"snapshotId": snapshot, "ref": str(nodes[name]["id"])}
        tapped = await self.input({"type": "tap", "at": at})
        assert tapped.short == HELD, tapped.raw
        return lines(tapped)

    async def outline(self) -> list[str]:
        """The outline as a model reads it."""
        raw = await self.qa.client.call_raw(
            "lomi_android_snapshot", json.dumps({**self.alone, "form": "outline"}).encode()
        )
        return (raw.text or "").splitlines()

    async def shell(self, line: str) -> str:
        """What a test does to the phone behind the broker's back."""
        (socket,) = self.world.home.rglob("adb.sock")
        client = AdbClient(socket)
        (serial,) = [row.split()[0] for row in (await client.ask("host:devices")).splitlines()]
        return (await run_once(client, serial, line, within=10)).text

    async def held(self) -> dict[str, str]:
        """What the fields really hold, from the phone's own record."""
        nodes, snapshot = await self.look()
        at = {"snapshotId": snapshot, "ref": str(nodes["done"]["id"])}
        await self.input({"type": "tap", "at": at})
        return dict(next(row["fields"] for row in reversed(self.journal()) if row["event"] == "submit"))

    def journal(self) -> list[dict[str, Any]]:
        """What the phone itself recorded."""
        (path,) = self.world.home.rglob("paper-journal.jsonl")
        return written_lines(path)


def lines(said: Answered) -> list[str]:
    """The lines of the observation."""
    return list(said.data["observation"]["lines"])


async def a_hand(world: World, qa: Agent) -> Hand:
    """The phone, started and leased, with the app in front."""
    (device,) = (await qa.ask("lomi_android_list", workspaceId=qa.workspace)).data["devices"]["items"]
    named = {"deviceId": device["deviceId"]}
    named["panelId"] = (await qa.do("lomi_android_open", await qa.revised(**named))).result["panelId"]
    named["generation"] = (await qa.do("lomi_android_start", await qa.revised(**named))).result["generation"]
    claimed = await qa.do("lomi_panel_control", await qa.revised(**named, action="claim"))
    hand = Hand(world, qa, {"workspaceId": qa.workspace, **named, "leaseId": claimed.result["leaseId"]})
    await hand.open()
    return hand


async def test_what_was_typed_over_is_told_by_its_length_alone(world: World) -> None:
    """A filled field that is typed over shows as changed with its new length; of a secret only that it changed."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        await hand.focus("plain")
        first = await hand.type("canary")
        assert [line for line in lines(first) if "Plain" in line] == [lines(first)[0]]
        assert lines(first)[0].endswith('field "Plain" focused filled, 6 characters')
        await hand.press("a")
        again = await hand.type("-bird")
        assert again.short == HELD, again.raw
        assert len(lines(again)) == 1
        assert lines(again)[0].endswith('field "Plain" focused filled, 12 characters')
        await hand.press("Backspace")
        await hand.focus("secret")
        for words in ("hunter2", "more"):
            secret = await hand.type(words)
            assert [line.partition("] ")[2] for line in lines(secret)] == ['field "Secret" focused password changed']
        await hand.focus("api_token")
        token = await hand.type("abcdef")
        assert lines(token)[0].endswith('field "Key" focused filled, changed')
        whole = b"".join((first.raw, again.raw, secret.raw, token.raw)).decode()
        assert not any(words in whole for words in ("canary", "bird", "hunter2", "abcdef"))


async def test_an_empty_field_is_not_taken_for_a_filled_one(world: World) -> None:
    """A hint is told as a hint, in the outline and in the elements, and again once the field is emptied."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        assert any(line.endswith('field "Short" empty, hint "Short"') for line in await hand.outline())
        assert not (await hand.look())[0]["short"]["valueOmitted"]
        await hand.focus("short")
        await hand.type("x")
        assert any(line.endswith('field "Short" focused filled') for line in await hand.outline())
        assert (await hand.look())[0]["short"]["valueOmitted"]
        emptied = await hand.input({"type": "press", "key": "Backspace"})
        assert lines(emptied)[0].endswith('field "Short" focused empty, hint "Short"')


async def test_a_release_that_does_not_tell_hints_says_so_and_what_is_typed_is_judged_all_the_same() -> None:
    """Its text may be a hint: `filled or hint`, a limitation beside it, no length; typing over it is still held."""
    with fields_world("paper-30") as world:
        async with agent(world) as qa:
            hand = await a_hand(world, qa)
            data = (await qa.ask("lomi_android_snapshot", **hand.alone, form="outline")).data
            assert any("does not tell" in line for line in data["limitations"])
            assert any(line.endswith("field #plain filled or hint") for line in await hand.outline())
            await hand.focus("plain")
            typed = await hand.type("Ada")
            assert typed.short == HELD, typed.raw
            assert lines(typed)[0].endswith("field #plain focused filled or hint, changed")
            assert any("does not tell" in line for line in typed.data["observation"]["limitations"])
            await hand.focus("short")
            assert (await hand.type("abcdefg")).short == PARTLY + DIFFERS


ENDS = (
    ("plain", "Zoë 漢", HELD, "Zoë 漢"),
    ("plain", "Plain", UNKNOWN + UNCONFIRMED, "Plain"),
    ("short", "abcd", HELD, "abcd"),
    ("short", "abcdefg", PARTLY + DIFFERS, "abcd"),
    ("upper", "loud", PARTLY + DIFFERS, "LOUD"),
    ("upper", "LOUD", HELD, "LOUD"),
    ("phone", "5551234", PARTLY + DIFFERS, "555-123-4"),
    ("code", "123", HELD, "123"),
    ("code", "12345", PARTLY + DIFFERS, "123"),
    ("secret", "hunter2", UNKNOWN + UNCONFIRMED, "hunter2"),
)


async def test_the_receipt_says_what_the_field_took(world: World) -> None:
    """Held exactly: complete. Cut, upper-cased, formatted, split over two fields: partial. Not readable: unknown."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        for field, words, ends, holds in ENDS:
            await hand.open()
            await hand.focus(field)
            typed = await hand.type(words)
            assert typed.short == ends, (field, words, typed.raw)
            assert any(field in line.lower() for line in lines(typed)) or words == "Plain", "what is there is seen"
            assert (await hand.held())[field] == holds


async def test_words_that_were_there_before_prove_nothing(world: World) -> None:
    """Typing that does not arrive is never complete, although the field, or its twin, holds these words already."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        await hand.focus("plain")
        assert (await hand.type("same")).short == HELD
        await hand.shell("cmd lomi_agent fault add ignored_input times=1")
        assert (await hand.type("same")).short == UNKNOWN + UNCONFIRMED
        await hand.focus("twin")
        await hand.shell("cmd lomi_agent fault add ignored_input times=1")
        assert (await hand.type("same")).short == UNKNOWN + UNCONFIRMED
        arrived = await hand.type("same")
        assert arrived.short == HELD
        assert len(lines(arrived)) == 1
        held = await hand.held()
        assert (held["plain"], held["twin"]) == ("same", "same")


async def test_a_selection_and_a_caret_are_typed_at_not_only_ends(world: World) -> None:
    """Words in the middle, and words in place of a selection, are complete; the same words again prove nothing."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        await hand.focus("plain")
        await hand.type("held")
        await hand.press("Home")
        await hand.press("ArrowRight")
        assert (await hand.type("ello, h")).short == HELD
        assert (await hand.held())["plain"] == "hello, held"
        nodes, snapshot = await hand.look()
        at = {"snapshotId": snapshot, "ref": str(nodes["plain"]["id"])}
        for words, ends in (("bye", HELD), ("bye", UNKNOWN + UNCONFIRMED)):
            await hand.input({"type": "tap", "at": at, "holdMs": 700})
            assert (await hand.type(words)).short == ends
        assert (await hand.held())["plain"] == "bye"
        await hand.focus("clears")
        await hand.type("old")
        await hand.focus("plain")
        await hand.focus("clears")
        assert (await hand.type("new")).short == HELD
        assert (await hand.held())["clears"] == "new"


async def test_keys_that_are_swallowed_or_go_elsewhere_are_not_complete(world: World) -> None:
    """An IME that drops keys, a focus that moves between two keys or before the first: partial, and it is seen."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        await hand.focus("plain")
        await hand.shell("cmd lomi_agent fault add dropped_keys times=1 value=3")
        dropped = await hand.type("abcdef")
        assert dropped.short == PARTLY + DIFFERS
        assert lines(dropped)[0].endswith("filled, 4 characters")
        await hand.open()
        await hand.focus("plain")
        await hand.shell("cmd lomi_agent fault add moved_focus times=1 value=2 text=twin")
        split = await hand.type("abcdef")
        assert split.short == PARTLY + DIFFERS
        assert [line.rpartition(" filled, ")[2] for line in lines(split)] == ["2 characters", "4 characters"]
        held = await hand.held()
        assert (held["plain"], held["twin"]) == ("ab", "cdef")


async def test_text_that_nothing_can_read_back_is_unknown(world: World) -> None:
    """No field with the focus, and a window without a hierarchy: the keys went out, and nobody can say where to."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        assert (await hand.type("lost")).short == UNKNOWN + UNCONFIRMED
        await hand.open(".Bare")
        await hand.shell("input tap 300 150")
        assert (await hand.type("blind")).short == UNKNOWN + UNCONFIRMED
        await hand.open()
        await hand.focus("plain")
        await hand.shell("cmd lomi_agent fault add failed_dump")
        typed = await hand.type("unseen")
        assert typed.short == UNKNOWN + UNCONFIRMED
        assert any("no observation" in line for line in lines(typed))


async def test_a_lost_reply_after_a_text_that_landed_is_unknown(world: World) -> None:
    """The text is in the field and its answer never comes: unknown, sent once, and seen by the next look."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        await hand.focus("plain")
        await hand.shell("cmd lomi_agent fault add lost_reply times=1")
        typing = asyncio.ensure_future(hand.type("landed"))
        await until(lambda: any(row["event"] == "text" and row["text"] == "landed" for row in hand.journal()))
        await hand.shell("cmd lomi_agent fault add offline times=1")
        lost = await typing
        assert lost.state == "outcome_unknown/unknown", lost.raw

        async def back() -> bool:
            return (await qa.call("lomi_android_snapshot", hand.alone)).code is None

        await until(back)
        assert (await hand.held())["plain"] == "landed"
        assert len([row for row in hand.journal() if row["event"] == "text" and row["text"] == "landed"]) == 1


@pytest.mark.parametrize("meddles", [False, True])
async def test_a_takeover_in_mid_text_leaves_a_true_receipt(world: World, meddles: bool) -> None:
    """Taken between two keys: what was under way is judged by what the field then holds, and nothing more is typed."""
    async with agent(world) as qa:
        hand = await a_hand(world, qa)
        await hand.focus("plain")
        await hand.shell("cmd lomi_agent fault add slow_typing times=1 value=2 seconds=15")
        typing = asyncio.ensure_future(hand.type("abcdef"))

        async def begun() -> bool:
            return 'text="ab"' in await hand.shell("uiautomator dump /dev/tty")

        await until(begun)
        panel = {"name": hand.named["panelId"]}
        await owner(world, "take", **panel)
        if meddles:
            await hand.shell("input text ZZ")
        assert not typing.done()
        await hand.shell("cmd lomi_agent fault clear slow_typing")
        typed = await typing
        assert typed.short == (UNKNOWN + DIFFERS if meddles else HELD), typed.raw
        assert (await hand.type("more")).reason == "taken_over"
        await owner(world, "give_back", **panel)
        texts = [row["text"] for row in hand.journal() if row["event"] == "text"]
        assert texts[-1] == "abcdef"
        assert f'text="{"abZZcdef" if meddles else "abcdef"}"' in await hand.shell("uiautomator dump /dev/tty")
