"""The engine's life: it dies with us, its crash ends generations and nothing else, places are given back."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from browser_probe import Probe
from browser_site import serving
from browser_steps import visit

from browser import navigate
from browser.engine import EngineSettings, running
from browser.errors import (
    AdmissionRefusedError,
    BrowserError,
    EngineUnavailableError,
    PageEndedError,
    ProtocolError,
    UnresponsiveError,
)
from browser.inspector import chromium
from browser.inspector.chromium import Context
from browser.page import Page
from browser.port.lazy import LazyEngine
from browser.process import identify
from browser.wire import send

pytestmark = pytest.mark.asyncio(loop_scope="module")

VICTIM = """
import asyncio, sys
from browser.engine import running
async def main():
    async with running() as engine:
        page = await engine.open()
        print(engine.process.pid, engine.process.started, engine.process.profile, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
"""The owner that is killed in its sleep, which ends it where the test can't."""

STILL_WRITING = """#!/bin/bash
for argument; do
  case $argument in
    --user-data-dir=*) profile=${argument#*=} ;;
    --told=*) told=${argument#*=} ;;
  esac
done
echo "$profile" > "$told"
(
  end=$((SECONDS + 1))
  while ((SECONDS < end)) && [ -d "$profile" ]; do : > "$profile/$RANDOM"; done
) 2>/dev/null 3<&- 4>&- &
sleep 0.2
"""
"""An engine that soon ends and leaves a helper, which writes for up to a second."""


def _gone(pid: int, started: int, profile: Path) -> bool:
    """Whether process and profile are gone within five seconds; those in which the machine stands still don't count."""
    for _ in range(5 * 50):
        found = identify(pid, str(profile))
        if (found is None or found.started != started) and not profile.exists():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("stopped", [False, True])
async def test_no_engine_outlives_a_killed_owner_by_five_seconds(stopped: bool) -> None:
    """After kill -9 of its owner the engine goes, even one that is stopped and can't see its pipes close."""
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert owner.stdout is not None
    pid, started, profile = (await owner.stdout.readline()).decode().split()
    if stopped:
        os.kill(int(pid), signal.SIGSTOP)
    owner.kill()
    await owner.wait()
    assert await asyncio.to_thread(_gone, int(pid), int(started), Path(profile))


async def test_a_crash_ends_every_generation_and_the_next_open_works() -> None:
    """Holders are told, calls fail typed, and a new engine starts by itself."""
    async with serving() as site, running() as engine:
        site.show("<h1>x</h1>")
        pages = [await engine.open() for _ in range(2)]
        told: list[str] = []
        crashed = asyncio.Event()
        engine.on_crash.append(crashed.set)
        for page in pages:
            page.on_ended.append(told.append)
        assert engine.process is not None
        os.kill(engine.process.pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            await crashed.wait()
        assert told == ["engine_crashed", "engine_crashed"]
        assert engine.pages == {}
        with pytest.raises(PageEndedError) as caught:
            await pages[0].snapshot()
        assert caught.value.reason == "engine_crashed"
        again = await engine.open()
        assert again.generation not in {page.generation for page in pages}
        assert (await visit(again, site.url + "/")).nodes
        assert engine.starts == 2


async def test_a_fault_in_the_pool_ends_its_pages_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    """An undocumented failure of one of its tasks ends every page with a reason; the next page has a new engine."""

    async def fails() -> None:
        raise LookupError("a fault of ours")

    async with asyncio.TaskGroup() as tasks:
        lazy = LazyEngine(EngineSettings(), os.environ, tasks)
        pool = await lazy.get()
        page = await pool.open()
        pool.tasks.create_task(fails())
        with pytest.raises(EngineUnavailableError):
            await pool.open()
        await page.ended.wait()
        assert page.activity.ended == "engine_stopped"
        with pytest.raises(PageEndedError):
            await page.snapshot()
        assert pool.process is not None
        assert await asyncio.to_thread(_gone, pool.process.pid, pool.process.started, Path(pool.process.profile))
        assert (await (await lazy.get()).open()).activity.ended is None
        lazy.close()
    assert "a fault of ours" in caplog.text


async def test_a_page_crash_ends_one_generation() -> None:
    """One crashed renderer leaves the other pages alone."""
    async with serving() as site, running() as engine:
        site.show("<h1>x</h1>")
        victim, other = await engine.open(), await engine.open()
        await navigate.navigate(victim, site.url + "/")
        await navigate.navigate(other, site.other_url + "/")
        with pytest.raises((PageEndedError, UnresponsiveError, navigate.NavigationFailedError)):
            await navigate.navigate(victim, "chrome://crash")
        victim.tasks.create_task(_crash(victim))
        async with asyncio.timeout(10):
            await victim.ended.wait()
        assert victim.activity.ended == "page_crashed"
        assert (await other.snapshot()).nodes


async def _crash(page: Page) -> None:
    with contextlib.suppress(BrowserError):  # the answer to a crash is an error
        await send(page.session, "Page.crash")


async def test_places_are_bounded_and_given_back() -> None:
    """The page after the last is refused; a closed one makes room."""
    async with running(EngineSettings(most_pages=2)) as engine:
        first = await engine.open()
        await engine.open()
        with pytest.raises(AdmissionRefusedError) as caught:
            await engine.open()
        assert caught.value.reason == "browsers_full"
        await navigate.close(first)
        await engine.open()
    async with running(EngineSettings(memory_per_page=1 << 60)) as poor:
        with pytest.raises(AdmissionRefusedError) as low:
            await poor.open()
        assert low.value.reason == "memory_low"


async def test_an_engine_that_answers_nothing_is_said_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped engine holds up neither the end of a page nor an open; the open says why."""
    async with running() as engine:
        page = await engine.open()
        monkeypatch.setattr(chromium, "ATTACH_S", 1.0)
        assert engine.process is not None
        os.kill(engine.process.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(30):
                await navigate.close(page)
                with pytest.raises(EngineUnavailableError) as caught:
                    await engine.open()
        finally:
            os.kill(engine.process.pid, signal.SIGCONT)
        assert page.activity.ended == "closed"
        assert caught.value.reason == "engine_start_failed"
        assert engine._admitted == 0


async def test_a_page_that_fails_to_open_gives_its_place_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when it was there already: no open after it gets a place too many."""
    async with running() as engine:
        there, ended = asyncio.Event(), asyncio.Event()
        engine.on_page.append(lambda page: (page.on_ended.append(lambda _reason: ended.set()), there.set()))
        new_page = Context.new_page

        async def fails_late(context: Context) -> None:
            await new_page(context)
            await there.wait()
            raise ProtocolError("protocol_error")

        monkeypatch.setattr(Context, "new_page", fails_late)
        with pytest.raises(EngineUnavailableError):
            await engine.open()
        await ended.wait()
        assert (engine._admitted, engine.pages) == (0, {})


async def test_engines_that_are_not_there_are_typed_errors(tmp_path: Path) -> None:
    """A missing or unsupported engine is said precisely, and takes no place."""
    for settings, reason in (
        (EngineSettings(engine="webkit"), "engine_unsupported"),
        (EngineSettings(executable=tmp_path / "none"), "engine_missing"),
        (EngineSettings(executable=Path("/bin/false"), start_s=5), "engine_start_failed"),
    ):
        async with running(settings) as engine:
            with pytest.raises(EngineUnavailableError) as caught:
                await engine.open()
            assert caught.value.reason == reason
            assert engine._admitted == 0


async def test_an_engine_whose_helpers_still_write_leaves_no_profile(tmp_path: Path) -> None:
    """They outlive the engine by an instant; its throw-away profile goes once they are done."""
    told, script = tmp_path / "profile", tmp_path / "engine"
    script.write_text(STILL_WRITING)
    script.chmod(0o700)
    async with running(EngineSettings(executable=script, arguments=(f"--told={told}",), start_s=5)) as engine:
        with pytest.raises(EngineUnavailableError):
            await engine.open()
    profile = Path(told.read_text().strip())
    assert profile.is_absolute()
    assert not profile.exists()


async def test_further_arguments_reach_the_engine() -> None:
    """What the settings add is on the engine's command line."""
    async with running(EngineSettings(arguments=("--lomi-test=1",))) as engine:
        await engine.warm()
        assert engine.process is not None
        assert b"--lomi-test=1" in Path(f"/proc/{engine.process.pid}/cmdline").read_bytes().split(b"\0")


async def test_cookies_and_storage_stay_in_their_context() -> None:
    """What one context stores another one never sees."""
    async with serving() as site, running() as engine:
        site.show("<h1>x</h1>")
        one, two = await engine.open(), await engine.open()
        for page in (one, two):
            await navigate.navigate(page, site.url + "/")
        await Probe(one).evaluate("document.cookie = 'a=1'; localStorage.b = '2'")
        assert await Probe(two).evaluate("document.cookie + (localStorage.b || '')") == ""


async def test_a_hung_page_is_unresponsive_and_holds_up_nobody() -> None:
    """A page in an endless loop answers with a typed error within its bound."""
    async with serving() as site, running() as engine:
        site.show("<button onclick='for (;;);'>Hang</button>")
        site.show("<h1>fine</h1>", "/fine")
        page, other = await engine.open(), await engine.open()
        await navigate.navigate(page, site.url + "/")
        await navigate.navigate(other, site.other_url + "/fine")
        await Probe(page).evaluate("setTimeout(() => { for (;;); }, 0)")
        with pytest.raises(UnresponsiveError):
            await page.snapshot()
        assert (await other.snapshot()).nodes
        async with asyncio.timeout(20):
            await navigate.close(page)
