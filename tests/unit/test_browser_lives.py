"""Pages that can't be opened: said to the caller, and nothing else ends."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from broker_room import open_room

from browser.egress import RefusalIdentity
from browser.engine import Engine, EngineSettings
from browser.errors import EngineUnavailableError
from browser.port.lazy import LazyEngine
from browser.port.lives import Lives
from lomi.contract.codes import ErrorCode
from lomi.core.grant import Grant
from lomi.core.own_ports import OwnPorts
from lomi.core.port import ResourceKey
from lomi.core.refusal import Refusal

PAGE = ResourceKey("browser", "p900")
NOTHING: Mapping[str, str] = {}


class LateEngine(LazyEngine):
    """Says only when it is told to that there is no engine."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        super().__init__(EngineSettings(), NOTHING, tasks)
        self.asked, self.over = asyncio.Event(), asyncio.Event()

    async def get(self) -> Engine:
        self.asked.set()
        await self.over.wait()
        raise EngineUnavailableError("engine_missing")


def _grant(**targets: frozenset[str]) -> Grant:
    return Grant(scopes=frozenset(), workspaces=frozenset(), **targets)


@pytest.mark.parametrize("named", ["origins", "resources"])
async def test_a_host_in_no_proper_spelling_refuses_the_page_and_ends_nothing_else(tmp_path: Path, named: str) -> None:
    """A grant of a policy may name what the guard can't compare: that page is refused, others go on."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        identity = RefusalIdentity.create(datetime.now(UTC))
        lives = Lives(room.broker.ledger, LateEngine(tasks), tasks, OwnPorts(), identity)
        odd = {"origins": "http://münchen.test", "resources": "cdn.test."}[named]
        with pytest.raises(Refusal) as said:
            await lives.open(PAGE, _grant(**{named: frozenset({odd})}))
        assert said.value.code is ErrorCode.SCOPE_DENIED
        assert room.broker.ledger.current(PAGE) is None


async def test_an_open_that_is_given_up_leaves_no_generation_and_no_proxy(tmp_path: Path) -> None:
    """The engine fails after its caller's deadline: nobody is told, and nothing is left."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        engine, own_ports = LateEngine(tasks), OwnPorts()
        identity = RefusalIdentity.create(datetime.now(UTC))
        lives = Lives(room.broker.ledger, engine, tasks, own_ports, identity)
        opening = tasks.create_task(lives.open(PAGE, _grant()))
        await engine.asked.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert room.broker.ledger.current(PAGE) is None
        engine.over.set()
    own_ports.hold("a", frozenset({1}))
    assert cast("set[object]", lives._proxies) == set()
