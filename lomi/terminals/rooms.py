"""All terminals of one broker: started, found by generation, swept after a crash, ended together."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from lomi.core.ids import GenerationId
from lomi.core.inside import TERMINAL_MARK
from lomi.core.port import Ledger, ResourceKey
from lomi.core.processes import ProcessName, is_alive
from lomi.core.refusal import EffectFailed, Refusal
from lomi.disk.private import private_directory
from lomi.terminals.process import PtyProcess, end_session, signal_group
from lomi.terminals.shell import COLUMNS, ROWS, environment_for, rc_text
from lomi.terminals.terminal import Terminal

PROMPT_S = 10.0
"""How long a new terminal may take to show its first prompt before it is handed over as not ready."""


class Terminals:
    """Owns every terminal from its start to its observed end."""

    def __init__(
        self,
        state: Path,
        ledger: Ledger,
        environment: Mapping[str, str],
        tasks: asyncio.TaskGroup,
        random: Callable[[int], bytes],
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._environment = environment
        self._tasks = tasks
        self._random = random
        self._live: dict[GenerationId, Terminal] = {}
        self._watchers: dict[GenerationId, asyncio.Task[None]] = {}

    def get(self, generation: str | None) -> Terminal | None:
        """A terminal by its generation; it can be read until its panel closes."""
        return self._live.get(GenerationId(generation)) if generation is not None else None

    async def start(self, resource: ResourceKey, directory: Path) -> tuple[GenerationId, Terminal]:
        """Start bash in `directory`; its identity is stored before it is used.

        Raises:
            OSError: no bash, no PTY.
            Refusal, EffectFailed: STORAGE_UNAVAILABLE, before or after the shell began. Nothing is left in any case.
        """
        bash = shutil.which("bash", path=self._environment.get("PATH"))
        if bash is None:
            raise FileNotFoundError("bash")
        nonce = self._random(16).hex()
        rc_file = self._state / f"rc-{self._random(8).hex()}"
        await asyncio.to_thread(_write_rc, rc_file, rc_text(nonce))
        generation = await self._ledger.begin_generation(resource)
        terminal = Terminal(nonce, rc_file)
        try:
            process = await PtyProcess.start(
                (bash, "--rcfile", str(rc_file), "-i"),
                directory=directory,
                environment=environment_for(self._environment),
                columns=COLUMNS,
                rows=ROWS,
            )
        except BaseException:
            rc_file.unlink(missing_ok=True)
            self._ledger.end_generation(generation)
            raise
        try:
            await self._ledger.remember(generation, msgspec.json.encode(process.name))
        except BaseException as failed:
            rc_file.unlink(missing_ok=True)
            await process.end()
            process.close()
            self._ledger.end_generation(generation)
            if isinstance(failed, Refusal):
                raise EffectFailed(failed, partial=True) from failed
            raise
        self._live[generation] = terminal
        self._watchers[generation] = self._tasks.create_task(self._watch(generation, terminal, process))
        try:
            async with asyncio.timeout(PROMPT_S):
                await terminal.ready.wait()
        except TimeoutError:
            return generation, terminal
        return generation, terminal

    async def _watch(self, generation: GenerationId, terminal: Terminal, process: PtyProcess) -> None:
        try:
            await terminal.watch(process)
        finally:
            await process.end()
            process.close()
            await self._ledger.forget(generation)

    async def end(self, generation: GenerationId) -> None:
        """End a terminal; returns when its shell is observed gone."""
        terminal = self._live.pop(generation, None)
        if terminal is not None and terminal.process is not None:
            await terminal.process.end()
            await terminal.gone.wait()
            await asyncio.wait((self._watchers.pop(generation),))
        self._ledger.end_generation(generation)

    async def end_all(self) -> None:
        """End every terminal of this broker."""
        async with asyncio.TaskGroup() as ending:
            for generation in tuple(self._live):
                ending.create_task(self.end(generation))


def _write_rc(path: Path, text: str) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


async def _sweep(ledger: Ledger) -> None:
    """End the shells that an earlier broker left, if pid and start time prove them, and their jobs; forget the rest."""
    remembered = await ledger.remembered("terminal")
    names = [msgspec.json.decode(left.identity, type=ProcessName) for left in remembered]
    for name in names:
        if is_alive(name):
            signal_group(name, signal.SIGKILL)
    async with asyncio.TaskGroup() as ending:
        for name in names:
            ending.create_task(end_session(name, TERMINAL_MARK))
    for left in remembered:
        await ledger.forget(left.generation)


@asynccontextmanager
async def open_terminals(
    state: Path, ledger: Ledger, environment: Mapping[str, str], *, random: Callable[[int], bytes] = os.urandom
) -> AsyncIterator[Terminals]:
    """The terminals of one broker; leaving ends them all."""
    await asyncio.to_thread(private_directory, state)
    await _sweep(ledger)
    async with asyncio.TaskGroup() as tasks:
        terminals = Terminals(state, ledger, environment, tasks, random)
        try:
            yield terminals
        finally:
            await terminals.end_all()
