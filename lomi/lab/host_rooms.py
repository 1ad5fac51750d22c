"""What a host does with orders: one run at a time has its room, with the tests' files and an engine for its shards."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from lomi.lab.engine import EngineError, EngineFailedError, NeedsUnmetError
from lomi.lab.engines.local import LocalEngine, LocalSetting, opened_local_engine
from lomi.lab.host_orders import HostAnswer, HostFacts, ShardOrder
from lomi.lab.lanes import HostClock
from lomi.lab.plan import Plan
from lomi.lab.shard import FileByHash, Segment
from lomi.lab.shelf import FolderShelf

SILENT_S = 60.0
"""After so long without a word from its run a room is closed: the run's own process is gone."""


class BadFileError(Exception):
    """Raised when an order names a file outside of the tests' folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetting:
    """What a host works with.

    Attributes:
        facts: what it told the cluster.
        environment: what workers inherit, with what reaches the host's own broker.
        work: the broker's project; each run has a folder in it.
        shelf: contents by hash.
        scratch: logs.
    """

    facts: HostFacts
    environment: Mapping[str, str]
    work: Path
    shelf: FolderShelf
    scratch: Path
    clock: HostClock


class Room:
    """One run on this host."""

    def __init__(self, run: str, engine: LocalEngine, folder: Path) -> None:
        self.run = run
        self.engine = engine
        self.folder = folder
        self.leaving = asyncio.Event()
        self.heard = asyncio.get_running_loop().time()
        self.placed: tuple[FileByHash, ...] | None = None


class Host:
    """Made by whoever serves a cluster; the tasks in `host_tasks` call it."""

    def __init__(self, setting: HostSetting, tasks: asyncio.TaskGroup) -> None:
        self.setting = setting
        self._tasks = tasks
        self._turn = asyncio.Condition()
        self._room: Room | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def run_shard(self, order: ShardOrder) -> HostAnswer:
        """Run one shard; waits while another run has this host."""
        try:
            room = await self._room_of(order)
            await self._place_files(room, order.shard.files)
            return HostAnswer(result=await room.engine.run(order.shard, order.needs))
        except NeedsUnmetError as unmet:
            return HostAnswer(failure="needs_unmet", message=str(unmet))
        except (EngineError, BadFileError, OSError, KeyError) as failed:
            # Another host may do better; this one begins the run anew with its next order.
            await self.end(order.run)
            return HostAnswer(failure="host_lost", message=str(failed))

    async def cancel(self, run: str) -> None:
        """End the shards of a run; each returns with what had ended."""
        if (room := self._room_named(run)) is not None:
            await room.engine.cancel()

    async def finish(self, run: str) -> tuple[Segment, ...]:
        """The last stretches of the lanes of a run."""
        room = self._room_named(run)
        return () if room is None else await room.engine.finish()

    async def anchor(self, run: str, content: bytes) -> str | None:
        """Have this host's broker keep the hash of some content; None where it can't."""
        room = self._room_named(run)
        return None if room is None else await room.engine.anchor(content)

    def keep(self, run: str) -> None:
        """The run is still there."""
        if (room := self._room_named(run)) is not None:
            room.heard = asyncio.get_running_loop().time()

    async def end(self, run: str) -> None:
        """Close the room of a run and forget its files."""
        keeper = self._keeper
        if (room := self._room_named(run)) is not None and keeper is not None:
            room.leaving.set()
            await asyncio.wait([keeper])

    async def end_all(self) -> None:
        """The host is alone: whatever runs here counts for nobody any more."""
        if self._room is not None:
            await self.end(self._room.run)

    async def watch(self) -> None:
        """Close the room of a run whose own process is gone."""
        while True:
            await asyncio.sleep(SILENT_S / 4)
            room = self._room
            if room is not None and asyncio.get_running_loop().time() - room.heard > SILENT_S:
                await self.end(room.run)

    def _room_named(self, run: str) -> Room | None:
        return self._room if self._room is not None and self._room.run == run else None

    async def _room_of(self, order: ShardOrder) -> Room:
        async with self._turn:
            await self._turn.wait_for(lambda: self._keeper is None or self._room_named(order.run) is not None)
            if self._room is None:
                opened: asyncio.Future[Room] = asyncio.get_running_loop().create_future()
                self._keeper = self._tasks.create_task(self._keep_room(order, opened), name="lomi-lab-room")
                self._room = await opened
            self._room.heard = asyncio.get_running_loop().time()
            return self._room

    async def _keep_room(self, order: ShardOrder, opened: asyncio.Future[Room]) -> None:
        """Have a room until its run leaves; whatever goes wrong in it ends the room, and not the host."""
        folder, scratch = self.setting.work / order.run, self.setting.scratch / order.run
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._stay_open(order, folder, scratch, opened), name="lomi-lab-room-open")
        except ExceptionGroup as failed:
            if not opened.done():
                said = f"no room on {self.setting.facts.name}: {failed.exceptions[0]}"
                opened.set_exception(EngineFailedError(said))
        finally:
            if not opened.done():
                opened.cancel()
            await self._leave(folder, scratch)

    async def _stay_open(self, order: ShardOrder, folder: Path, scratch: Path, opened: asyncio.Future[Room]) -> None:
        setting = self.setting
        for place in (folder, scratch):
            await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
        local = LocalSetting(
            plan=own_plan(order.plan, setting.facts),
            folder=folder,
            environment=setting.environment,
            shelf=setting.shelf,
            scratch=scratch,
            host=setting.facts.name,
            clock=setting.clock,
        )
        async with opened_local_engine(local) as engine:
            room = Room(order.run, engine, folder)
            opened.set_result(room)
            await room.leaving.wait()

    async def _leave(self, *places: Path) -> None:
        for place in places:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        async with self._turn:
            self._room = self._keeper = None
            self._turn.notify_all()

    async def _place_files(self, room: Room, files: tuple[FileByHash, ...]) -> None:
        async with self._turn:
            if room.placed != files:
                await asyncio.to_thread(place_files, room.folder, files, self.setting.shelf)
                room.placed = files


def place_files(folder: Path, files: tuple[FileByHash, ...], shelf: FolderShelf) -> None:
    """Write the tests' files; blocks.

    Raises:
        BadFileError: one would lie outside of the folder.
        KeyError: the shelf has not all of them.
        OSError: the disk is full.
    """
    for file in files:
        parts = PurePosixPath(file.path).parts
        if not parts or file.path.startswith("/") or any(part in ("..", "") for part in parts) or "\0" in file.path:
            raise BadFileError(f"{file.path!r} is no path in the tests' folder")
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shelf.path_of(file.sha256), target)
        target.chmod(0o700 if file.executable else 0o600)


def own_plan(plan: Plan, facts: HostFacts) -> Plan:
    """The plan as one host runs it: its own broker, its own phones, as many workers as it has places."""
    here = 0 if plan.pool is None else facts.phones.get(plan.pool.image, 0)
    pool = None if plan.pool is None else msgspec.structs.replace(plan.pool, phones=here)
    needs = tuple(rule for rule in plan.needs if rule.phones <= here)
    workers = None if here else facts.slots
    return msgspec.structs.replace(plan, broker=None, pool=pool, needs=needs, workers=workers)
