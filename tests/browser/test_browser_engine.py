"""The engine's life: it dies with us, its crash ends generations and nothing else, places are given back."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from browser_site import serving
from browser_steps import visit

from browser import navigate
from browser.engine import EngineSettings, running
from browser.errors import AdmissionRefusedError, EngineUnavailableError, PageEndedError, UnresponsiveError
from browser.process import identify

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


async def _gone(pid: int, started: int) -> None:
    async with asyncio.timeout(5):
        while (found := identify(pid)) is not None and found.started == started:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("stopped", [False, True])
async def test_no_engine_outlives_a_killed_owner_by_five_seconds(stopped: bool) -> None:
    """After kill -9 of its owner the engine goes, even one that is stopped and can't see its pipes close."""
    owner = subprocess.Popen(
        [sys.executable, "-c", VICTIM], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    )
    assert owner.stdout is not None
    with owner.stdout as out:
        pid, started, profile = (await asyncio.to_thread(out.readline)).split()
    if stopped:
        os.kill(int(pid), signal.SIGSTOP)
    owner.kill()
    await asyncio.to_thread(owner.wait)
    await _gone(int(pid), int(started))
    async with asyncio.timeout(5):
        while Path(profile).exists():
            await asyncio.sleep(0.02)


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
        async with asyncio.timeout(5):
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


async def _crash(page: object) -> None:
    try:
        await page.session.send("Page.crash")  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001  (the answer to a crash is an error)
        pass


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


async def test_cookies_and_storage_stay_in_their_context() -> None:
    """What one context stores another one never sees."""
    async with serving() as site, running() as engine:
        site.show("<h1>x</h1>")
        one, two = await engine.open(), await engine.open()
        for page in (one, two):
            await navigate.navigate(page, site.url + "/")
        await one.playwright.evaluate("document.cookie = 'a=1'; localStorage.b = '2'")
        assert await two.playwright.evaluate("document.cookie + (localStorage.b || '')") == ""


async def test_a_hung_page_is_unresponsive_and_holds_up_nobody() -> None:
    """A page in an endless loop answers with a typed error within its bound."""
    async with serving() as site, running() as engine:
        site.show("<button onclick='for (;;);'>Hang</button>")
        site.show("<h1>fine</h1>", "/fine")
        page, other = await engine.open(), await engine.open()
        await navigate.navigate(page, site.url + "/")
        await navigate.navigate(other, site.other_url + "/fine")
        await page.playwright.evaluate("setTimeout(() => { for (;;); }, 0)")
        with pytest.raises(UnresponsiveError):
            await page.snapshot()
        assert (await other.snapshot()).nodes
        async with asyncio.timeout(8):
            await navigate.close(page)
