"""The typed API against a real broker, a paper phone over real adb, and real Chromium."""

import asyncio
import inspect
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import World, until
from harness.site import Site, serving
from lab_world import FORM, connected, connected_async, found, journal, lab_world, phone_pids

import lomi
from lomi.client import aio
from lomi.client import lab as blocking
from lomi.client.aio.connecting import PAIRING_S
from lomi.client.aio.terminal import CommandFailedError
from lomi.client.errors import (
    ConnectionLostError,
    OutcomeUnknownError,
    PairingRequiredError,
    ScopeDeniedError,
    StaleGenerationError,
    TargetBusyError,
    TargetNotFoundError,
)
from lomi.client.names import NameAbsentError, Point, Role
from lomi.demo.apk_made import PACKAGE, made_apk
from lomi.lab.plugin.makers import Makers


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A local page."""
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    """A broker with one paper phone."""
    with lab_world(site) as made:
        yield made


def submitted(world: World) -> list[dict[str, Any]]:
    """The forms sent in the phone's last life, as it recorded them."""
    lines = journal(world)
    return [line for line in lines if line["event"] == "submit" and line["boot"] == lines[-1]["boot"]]


def test_a_form_is_filled_and_sent_by_its_names(world: World) -> None:
    """Launch, type, tap by text and id: the phone's own journal holds the submission once; every act has a receipt."""
    with connected(world) as lab:
        phone = lab.phone("paper-36")
        phone.launch(FORM)
        phone.type("Zoé 漢 🙂", into="name")
        phone.tap(Role("checkbox", "I agree"))
        sent = phone.tap("Submit")
        assert phone.wait_for("Submitted").text == "Submitted"
        assert sent.settled is True
        assert any("Submitted" in line for line in sent.changed)
        assert [(act.state, act.effect) for act in phone.receipts] == [("succeeded", "complete")] * len(phone.receipts)
        assert [act.tool for act in lab.receipts][:2] == ["lomi_android_open", "lomi_android_start"]
        assert len({act.operation_id for act in lab.receipts}) == lab.acted
        assert any("submitted" in line for line in phone.log(FORM))
        assert phone.capture().png.startswith(b"\x89PNG")
    submissions = submitted(world)
    assert [line["fields"]["name"] for line in submissions] == ["Zoé 漢 🙂"]
    assert submissions[0]["checks"] == {"agree": "on"}


def test_a_password_that_nobody_can_read_back_is_told_or_accepted(world: World) -> None:
    """Typed, it ends as unknown and raises; `unread_ok` hands the act back, and the phone got both once."""
    with connected(world) as lab:
        phone = lab.phone("paper-36")
        phone.launch(FORM)
        with pytest.raises(OutcomeUnknownError) as caught:
            phone.type("first", into="password")
        assert caught.value.reason == "text_not_confirmed"
        act = phone.type("second", unread_ok=True)
        assert (act.state, act.effect, act.operation_id) == (
            "outcome_unknown",
            "unknown",
            phone.receipts[-1].operation_id,
        )
        phone.tap(Role("checkbox", "I agree"))
        phone.tap("Submit")
        phone.wait_for("Submitted")
    assert [line["fields"]["password"] for line in submitted(world)] == ["firstsecond"]


def test_a_page_is_filled_and_sent_by_its_names(world: World, site: Site) -> None:
    """Fill and click by name: the server's own log holds what was typed, once; the page knows where it went."""
    with connected(world) as lab:
        page = lab.page(f"{site.origin}/")
        page.fill("Text", "typed by name")
        went = page.click("Send")
        assert page.url == f"{site.origin}/submit"
        assert went.observation is not None
        assert page.wait_for_element("button", "Count")
        page.reveal("Keys")
        page.click("Keys")
        page.press("Keys", "a")
        with pytest.raises(ScopeDeniedError) as denied:
            page.goto("http://127.0.0.1:9/elsewhere")
        assert denied.value.reason == "origin_not_granted"
        with pytest.raises(NameAbsentError, match="button 'Send'"):
            page.click("Sand", timeout_s=0.2)
        assert page.capture().artifact.media_type == "image/png"
        page.start_trace()
        page.click("Count")
        assert page.stop_trace().byte_length > 1000
        requests = [entry.request for entry in page.console("network")]
        assert any(getattr(request, "url", "").startswith(f"{site.origin}/told") for request in requests)
    assert site.count("/submit", text="typed by name") == 1


def test_commands_end_with_their_exit_code(world: World) -> None:
    """A failed command is an answer unless it is checked; what it wrote comes along.

    The answer waits for the question: what is typed while the shell's line editor still has the keyboard reaches
    `read` with a carriage return, which ends no line.
    """
    with connected(world) as lab:
        terminal = lab.terminal()
        ended = terminal.run("printf 'one\\ntwo\\n'; (exit 3)")
        assert (ended.exit_code, ended.output, ended.act.effect) == (3, "one\ntwo\n", "complete")
        with pytest.raises(CommandFailedError, match="exit code 3"):
            terminal.run("(exit 3)", check=True)
        terminal.send('read -p "question $((6 * 7))? " answer && echo got-$answer')
        terminal.key("enter")
        assert "question 42? " in terminal.wait_for("question 42? ")
        terminal.send("six by seven")
        terminal.key("enter")
        assert "got-six by seven" in terminal.wait_for("got-six by seven")


def test_an_apk_is_installed_from_outside_of_the_project(world: World, tmp_path: Path) -> None:
    """The broker imports it by hash, the installer takes it, and the project is as it was."""
    apk = tmp_path / "tiny.apk"
    apk.write_bytes(made_apk())
    before = sorted(path.name for path in world.project.iterdir())
    with connected(world) as lab:
        phone = lab.phone()
        installed = phone.install(apk)
        assert installed.result is not None
        assert (installed.result.installed, installed.result.package_name) == (True, PACKAGE)
        phone.launch(PACKAGE)
        assert phone.find("title").text == "Tiny"
    assert sorted(path.name for path in world.project.iterdir()) == before


def test_a_wiped_phone_has_forgotten_the_app(world: World, tmp_path: Path) -> None:
    """`wipe` ends the life of a phone that was made through the broker; the next one does not know the app."""
    apk = tmp_path / "tiny.apk"
    apk.write_bytes(made_apk())
    with connected(world) as lab:
        makers = Makers()
        phone = lab.phone(makers.ready(lab, "paper-36", "any", "wipe"))
        phone.install(apk)
        first = phone.generation
        phone.wipe()
        with pytest.raises(StaleGenerationError):
            phone.snapshot()
        phone.start()
        phone.lease()
        assert phone.generation > first
        with pytest.raises(TargetNotFoundError) as absent:
            phone.launch(PACKAGE)
        assert absent.value.reason == "not_installed"
        lab.release(phone)
        makers.delete_all(lab)
        assert [one.name for one in lab.phones()] == ["paper-36-1"]


def test_leaving_ends_what_was_started_and_keeps_what_was_to_stay(world: World) -> None:
    """A phone that this client started stops with it; one that was to be kept runs on, for the next as it stands."""
    with connected(world) as lab:
        assert lab.phone(keep=True).booted
    with connected(world) as lab:
        kept = lab.phone()
        assert not kept.booted
        assert [act.tool for act in lab.receipts] == ["lomi_android_open", "lomi_panel_control"]
        kept.stop()
        kept.start()
    assert phone_pids(world) == {}


def test_a_phone_that_another_session_holds_is_refused_or_waited_for(world: World) -> None:
    """Refused at once by default, with the reason; who waits gets it when the other lets go."""
    with (
        connected(world) as first,
        connected(world) as second,
    ):
        held = first.phone()
        with pytest.raises(TargetBusyError) as busy:
            second.phone()
        assert busy.value.reason == "already_leased"
        letting_go = threading.Timer(0.2, held.release)
        letting_go.start()
        waited = second.phone(wait_s=20)
        letting_go.join()
        waited.tap("Form")
        waited.release()


def test_a_stranger_is_told_at_once(world: World) -> None:
    """A label that no policy names, where nobody can be asked: refused without any wait, with what to check."""
    began = time.monotonic()
    with pytest.raises(PairingRequiredError) as refused, lomi.connect(discovery=found(world), label="stranger"):
        pass
    assert refused.value.reason == "not_in_policy"
    assert time.monotonic() - began < PAIRING_S / 2


async def test_both_faces_are_one(world: World) -> None:
    """The asynchronous face does the same, many at once on one connection."""
    async with connected_async(world) as lab:
        phone = await lab.phone("paper-36-1")
        await phone.launch(FORM)
        async with asyncio.TaskGroup() as tasks:
            typed = [tasks.create_task(phone.tap(Point(5, 1000 + number))) for number in range(5)]
        assert [task.result().effect for task in typed] == ["complete"] * 5
    inputs = [line for line in journal(world) if line["event"] == "input"]
    assert inputs


@pytest.mark.parametrize("name", ["Lab", "Phone", "Page", "Terminal"])
def test_nothing_of_one_face_is_missing_in_the_other(name: str) -> None:
    """Every public call of the asynchronous classes is there for code without an event loop."""
    source, face = getattr(aio, name), getattr(blocking, name)
    hidden = {"close", "session"} if name == "Lab" else set()
    wanted = {one for one, value in inspect.getmembers(source) if not one.startswith("_") and callable(value)} - hidden
    wanted |= {one for one, value in inspect.getmembers(source) if isinstance(value, property) and one[0] != "_"}
    assert wanted - set(dir(face)) <= {"noticed", *hidden}


async def test_a_lost_connection_doubles_nothing(site: Site) -> None:
    """Kill -9 the broker under a tap: the client says lost, does not try again, and the phone saw at most one tap."""
    with lab_world(site) as world:
        async with connected_async(world) as lab:
            phone = await lab.phone()
            world.arm("effect_begun:1:stop")
            tapping = asyncio.ensure_future(phone.tap(Point(100, 900)))
            await asyncio.to_thread(world.live.wait_stopped)
            world.kill()
            with pytest.raises(ConnectionLostError):
                await tapping
            with pytest.raises(ConnectionLostError):
                await phone.tap(Point(100, 900))
        await asyncio.to_thread(world.restart)
        taps = [line for line in journal(world) if line["event"] == "input"]
        assert len(taps) <= 1, taps


async def test_a_phone_that_died_is_started_anew(world: World) -> None:
    """Kill -9 the emulator: acts on the dead life are refused, and asking for the phone again gives a fresh one."""
    async with connected_async(world) as lab:
        phone = await lab.phone()
        first = phone.generation
        for pid in phone_pids(world):
            os.kill(pid, signal.SIGKILL)

        async def gone() -> bool:
            return not (await lab.phones())[0].process_alive

        await until(gone)
        with pytest.raises((StaleGenerationError, lomi.client.errors.AppUnavailableError)):
            await phone.tap("Form", timeout_s=0.2)
        again = await lab.phone()
        assert again.generation > first
        await again.tap("Form")
