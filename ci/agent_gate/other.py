"""The world of one task for a tool server that is not Lomi: the same pages, and the same phone by its adb serial."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from agent_gate.judge import Records, digests, read_journal
from agent_gate.phone import NAME, OwnPhone, opened_phone
from agent_gate.site import Site, opened_site
from agent_gate.stage import words_for
from agent_gate.task import Task
from devices.processes import MARKER_VARIABLE, carriers, end_processes
from devices.world import World

NOWHERE = Path("nowhere")
END_S = 3.0


class OtherStage:
    """A task's world beside a tool server that knows nothing of it."""

    def __init__(
        self,
        command: Sequence[str],
        site: Site,
        phone: OwnPhone | None,
        environment: Mapping[str, str],
        directory: Path,
    ) -> None:
        self._command = command
        self._site = site
        self._phone = phone
        self._environment = environment
        self.directory = directory

    @property
    def command(self) -> list[str]:
        """The server's command as it was given."""
        return list(self._command)

    @property
    def environment(self) -> Mapping[str, str]:
        """Ours without what is Lomi's; with a phone, what leads to its adb server."""
        return self._environment if self._phone is None else self._phone.environment

    @property
    def words(self) -> Mapping[str, str]:
        """Origin, the phone's serial, and what was drawn."""
        phone = f"{NAME} (adb serial {self._phone.serial})" if self._phone else ""
        return words_for(self._site.origin, phone, NOWHERE, self._site.words)

    async def called(self, tool: str) -> None:
        """Nothing: only tasks that need Lomi have events."""

    async def end(self) -> str:
        """Nothing to end before the records are read."""
        return ""

    def records(self, answer: str | None) -> Records:
        """Journal, log, what the server wrote into its folder, and the answer."""
        journal = read_journal(self._phone.journal) if self._phone else []
        return Records(journal=journal, visits=tuple(self._site.visits), files=digests([self.directory]), answer=answer)


async def _end_strays(marker: str) -> None:
    """End what the server left running: a daemon that knows this task's phone would be met again by the next task."""
    left = await asyncio.to_thread(carriers, marker)
    await end_processes(left, world=World(), term_s=END_S, kill_s=END_S)


@asynccontextmanager
async def opened_other(
    command: Sequence[str], task: Task, words: Mapping[str, str], _log: Path
) -> AsyncIterator[OtherStage]:
    """Set the world up with these words; it ends with the context.

    Raises:
        StageError: the phone did not boot.
    """
    marker = secrets.token_hex(16)
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("LOMI_", "PAPER_"))}
    environment = {**kept, MARKER_VARIABLE: marker}
    async with AsyncExitStack() as stack:
        stack.push_async_callback(_end_strays, marker)
        site = await stack.enter_async_context(opened_site(words))
        phone = await stack.enter_async_context(opened_phone(environment, words)) if "phone" in task.needs else None
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="lomi-gate-server-"))
        yield OtherStage(command, site, phone, environment, Path(scratch))
