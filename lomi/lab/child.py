"""A pytest process of the lab: started with a pipe for its events and one for leave to go on, watched, ended whole."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from lomi.core.plain_group import plain_group
from lomi.lab.events import Heard, Unreadable, decode
from lomi.lab.witness import EVENTS, GO

_READ = 1 << 16
_LONGEST_LINE = 1 << 20
_TRACE_S = 10.0
"""How long a process that is asked where it is may take to print that and end, before it is killed."""


class ChildOrder(NamedTuple):
    """What to start: pytest's arguments, where, with which environment, and the file for all that it prints."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    log: Path


class PytestChild:
    """A running pytest process; made by `opened_child`."""

    def __init__(self, process: asyncio.subprocess.Process, descriptor: int, go: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self._go = go
        self._rest = b""
        self._events: asyncio.Queue[Heard | None] = asyncio.Queue()
        self.exit_code: int | None = None
        """None while it runs; minus the signal that ended it, as subprocess has it."""

    @property
    def pid(self) -> int:
        """Its process id, and that of its process group."""
        return self._process.pid

    async def next_event(self, seconds: float) -> Heard | None:
        """The next thing it tells; None when it has ended and everything was told.

        Raises:
            TimeoutError: nothing came for so long.
        """
        async with asyncio.timeout(max(0.0, seconds)):
            return await self._events.get()

    def go_on(self) -> None:
        """Let it begin its next test: it waits for that after each that failed."""
        with suppress(BrokenPipeError):
            os.write(self._go, b"g")

    async def end(self, *, show: bool) -> None:
        """Kill it with its process group; with `show` it first ends itself by printing where its threads are.

        Waits for the end.
        """
        if show and self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)
            with suppress(TimeoutError):
                async with asyncio.timeout(_TRACE_S):
                    await self._process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()

    async def watch(self) -> None:
        """Take in what it tells until it has ended; `opened_child` runs this."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._descriptor, self._take)
        try:
            self.exit_code = await self._process.wait()
        finally:
            loop.remove_reader(self._descriptor)
        while self._take():
            pass
        self._events.put_nowait(None)

    def _take(self) -> bool:
        """Read what is there; False when there is nothing more."""
        try:
            content = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return False
        if not content:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            return False
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            self._events.put_nowait(_read(line))
        if len(self._rest) > _LONGEST_LINE:
            # No event begins like this: once its end comes, the whole line is one that can't be read.
            self._rest = b"\0"
        return True


def _read(line: bytes) -> Heard:
    try:
        return decode(line)
    except msgspec.DecodeError:
        # A test may write what it likes to a descriptor that it guessed, also into the middle of a line of ours.
        return Unreadable()


@asynccontextmanager
async def opened_child(order: ChildOrder) -> AsyncIterator[PytestChild]:
    """Start pytest; with the context it has ended, and so has its process group.

    Raises:
        OSError: it can't be started, or its log can't be written.
    """
    (reading, writing), (hearing, going) = os.pipe(), os.pipe()
    try:
        os.set_blocking(reading, False)
        try:
            child = PytestChild(await _started(order, writing, hearing), reading, going)
        finally:
            os.close(writing)
            os.close(hearing)
        async with plain_group() as tasks:
            tasks.create_task(child.watch(), name="lomi-lab-child")
            try:
                yield child
            finally:
                await child.end(show=False)
    finally:
        os.close(reading)
        os.close(going)


async def _started(order: ChildOrder, events: int, go: int) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "pytest", "-p", "lomi.lab.witness", *order.arguments)
    with order.log.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=order.folder,
            env={**order.environment, EVENTS: str(events), GO: str(go)},
            pass_fds=(events, go),
            start_new_session=True,
        )
