"""The spare page: begun where pages come and go, given once, bounded, and gone by itself."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from broker_room import open_room
from harness.waiting import until

from browser import navigate
from browser.egress import RefusalIdentity
from browser.engine import Engine, EngineSettings
from browser.errors import AdmissionRefusedError, OriginDeniedError
from browser.page import Page
from browser.port import lives as port
from browser.port.lazy import LazyEngine
from browser.port.lives import Lives
from browser.process import find_engine
from lomi.core.grant import Grant
from lomi.core.own_ports import OwnPorts
from lomi.core.port import ResourceKey

pytestmark = pytest.mark.skipif(find_engine(headed=False) is None, reason="no Chromium on this machine")

FIRST, SECOND, THIRD = (ResourceKey("browser", f"p{number}") for number in (901, 902, 903))


def _grant(*origins: str) -> Grant:
    return Grant(scopes=frozenset(), workspaces=frozenset(), origins=frozenset(origins))


@dataclass(frozen=True)
class Pages:
    """Pages of a broker's ledger in a real engine."""

    lives: Lives
    engine: Engine

    async def open(self, resource: ResourceKey, *origins: str) -> Page:
        """A page of a grant."""
        generation, page = await self.lives.open(resource, _grant(*origins))
        assert page.generation == generation
        return page

    async def come_and_go(self) -> Page:
        """A page that closes as soon as it is there; the spare one that waits after it."""
        await navigate.close(await self.open(FIRST))
        return await self.spare()

    async def spare(self) -> Page:
        """The spare page, as soon as it is there."""
        waiting = self.lives._spare
        assert waiting is not None
        there = await asyncio.shield(waiting._there)
        assert isinstance(there, tuple), there
        return there[0]

    async def settled_on(self, count: int) -> set[int]:
        """The engine's renderers, once there are so many."""
        await until(lambda: len(self.renderers()) == count)
        return self.renderers()

    def renderers(self) -> set[int]:
        """Processes of the engine that hold pages."""
        assert self.engine.process is not None
        session = str(self.engine.process.pid)
        found = set()
        for place in Path("/proc").glob("[0-9]*"):
            try:
                told = (place / "stat").read_text().rpartition(") ")[2].split()
                arguments = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if told[3] == session and told[0] != "Z" and b"--type=renderer" in arguments:
                found.add(int(place.name))
        return found


@asynccontextmanager
async def _pages(home: Path, **settings: int) -> AsyncIterator[Pages]:
    async with open_room(home) as room, asyncio.TaskGroup() as tasks:
        lazy = LazyEngine(EngineSettings(**settings), os.environ, tasks)
        lives = Lives(room.broker.ledger, lazy, tasks, OwnPorts(), RefusalIdentity.create(datetime.now(UTC)))
        try:
            yield Pages(lives, await lazy.get())
        finally:
            await lives.close_all()
            lazy.close()
    assert lives._proxies == set()


@asynccontextmanager
async def _site(asked: list[bytes]) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 8\r\nconnection: close\r\n\r\n<p>there"
        )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_spare_page_is_given_once_under_the_grant_of_whoever_asks(tmp_path: Path) -> None:
    """The process that waited is the page's; it shares nothing with the page before, and reaches its own grant only."""
    here: list[bytes] = []
    elsewhere: list[bytes] = []
    async with _pages(tmp_path / "h") as pages, _site(here) as granted, _site(elsewhere) as other:
        first = await pages.open(FIRST, other)
        await navigate.close(first)
        spare = await pages.spare()
        waiting = await pages.settled_on(1)
        assert spare.profile.egress is not None
        assert spare.profile.egress.grant.origins == frozenset()
        second = await pages.open(SECOND, granted)
        assert second is spare
        assert pages.renderers() == waiting
        assert second.context.name != first.context.name
        assert first.profile.egress is not None
        assert first.profile.egress.password != second.profile.egress.password
        assert pages.engine.pages == {second.generation: second}
        assert (await navigate.navigate(second, granted)).loaded
        with pytest.raises(OriginDeniedError):
            await navigate.navigate(second, other)
        third = await pages.open(THIRD, granted)
        assert third is not second
        assert third.context.name != second.context.name
        assert len(here) == 1
        assert elsewhere == []


async def test_pages_that_stay_have_no_spare_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spare page costs memory: where pages live long, or the first one opens, none is begun."""
    async with _pages(tmp_path / "h") as pages:
        page = await pages.open(FIRST)
        pages.lives.prepare_spare()
        assert pages.lives._spare is None
        monkeypatch.setattr(port, "SPARE_S", 0.0)
        await navigate.close(page)
        assert pages.lives._spare is None
        assert await pages.settled_on(0) == set()


async def test_a_spare_page_goes_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody opens a page for a while: its process ends, and its place and proxy are given back."""
    async with _pages(tmp_path / "h") as pages:
        monkeypatch.setattr(port, "SPARE_S", 6.0)
        spare = await pages.come_and_go()
        async with asyncio.timeout(30):
            await spare.ended.wait()
        assert await pages.settled_on(0) == set()
        assert pages.engine._admitted == 0
        await until(lambda: not pages.lives._proxies)


async def test_a_spare_page_takes_no_place_from_others(tmp_path: Path) -> None:
    """It gives its place up to whatever else needs it, and every page that is allowed can be opened."""
    async with _pages(tmp_path / "h", most_pages=2) as pages:
        spare = await pages.come_and_go()
        pages.engine.admit()
        pages.engine.admit()
        assert spare.activity.ended == "closed"
        with pytest.raises(AdmissionRefusedError):
            pages.engine.admit()
        pages.engine.release()
        pages.engine.release()
        await pages.come_and_go()
        opened = [await pages.open(FIRST), await pages.open(SECOND)]
        with pytest.raises(AdmissionRefusedError):
            await pages.open(THIRD)
        assert [page.activity.ended for page in opened] == [None, None]


async def test_an_engine_that_dies_with_its_spare_page_is_followed_by_another(tmp_path: Path) -> None:
    """The spare page is never given: the next page is of the new engine."""
    async with _pages(tmp_path / "h") as pages:
        spare = await pages.come_and_go()
        assert pages.engine.process is not None
        os.kill(pages.engine.process.pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            await spare.ended.wait()
        page = await pages.open(SECOND)
        assert page is not spare
        assert (pages.engine.starts, page.activity.ended) == (2, None)


async def test_a_spare_page_whose_process_was_killed_is_not_given(tmp_path: Path) -> None:
    """The kernel may end it for want of memory; whoever asks next has a page that lives."""
    async with _pages(tmp_path / "h") as pages:
        spare = await pages.come_and_go()
        for process in await pages.settled_on(1):
            os.kill(process, signal.SIGKILL)
        async with asyncio.timeout(20):
            await spare.ended.wait()
        page = await pages.open(SECOND)
        assert page is not spare
        assert (await page.snapshot()).url == "about:blank"
