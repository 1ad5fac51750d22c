"""The world of one task under Lomi: its pages, a home and a project, a policy, a broker; and what happens to it."""

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from agent_gate.draw import write_apps
from agent_gate.judge import Records, digests, read_journal
from agent_gate.site import Site, opened_site, report
from agent_gate.task import Event, Task
from lomi.demo.apk_made import made_apk
from lomi.demo.broker import Broker, descendants, lomi_command, opened_broker
from lomi.demo.place import PHONE, SCOPES, Place, opened_place, write_policy

APK = "tiny.apk"
EXTRA_SCOPES = ("browser.download",)
EXTRA_TOOLS = ("lomi_panel_close", "lomi_browser_logs", "lomi_browser_download")
"""What a task may need beside the qa profile."""


class StageError(Exception):
    """Raised when the world of a task can't be set up or changed; the message is one line for a person."""


class Stage(Protocol):
    """What a task needs to run: how its tool server is started, what to tell the model, what was left behind."""

    @property
    def command(self) -> list[str]:
        """How the tool server is started."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """What it is given beside the few variables that the SDK passes on."""
        ...

    @property
    def directory(self) -> Path:
        """Where it is started."""
        ...

    @property
    def words(self) -> Mapping[str, str]:
        """What the task's prompt is filled in with."""
        ...

    async def called(self, tool: str) -> None:
        """A call was answered: let happen what the task plans for now."""
        ...

    async def end(self) -> str:
        """End what the task used; what went wrong with that, in one line, or nothing."""
        ...

    def records(self, answer: str | None) -> Records:
        """What was left behind."""
        ...


def words_for(origin: str, phone: str, apk: Path, drawn: Mapping[str, str]) -> dict[str, str]:
    """What prompts and checks are filled in with, beside what was drawn."""
    content = made_apk()
    return {
        **drawn,
        "origin": origin,
        "phone": phone,
        "apk": str(apk),
        "apk_bytes": str(len(content)),
        "apk_sha256": hashlib.sha256(content).hexdigest(),
        "report_sha256": hashlib.sha256(report("2025", drawn) or b"").hexdigest(),
    }


class LomiStage:
    """A task's world with a broker of its own. `called` counts by tool and plays the task's events."""

    def __init__(self, task: Task, site: Site, place: Place, broker: Broker) -> None:
        self._task = task
        self._site = site
        self._place = place
        self._broker = broker
        self._counts: dict[str, int] = {}
        self._taken = ""
        self._played: list[Event] = []

    @property
    def command(self) -> list[str]:
        """The helper, with what a tester needs."""
        return [*lomi_command(), "mcp", "--profile", "qa", "--tools", ",".join(EXTRA_TOOLS)]

    @property
    def environment(self) -> Mapping[str, str]:
        """The home of this task's broker, and the token that its policy names."""
        return self._place.agent_environment()

    @property
    def directory(self) -> Path:
        """The project."""
        return self._place.project

    @property
    def words(self) -> Mapping[str, str]:
        """Origin, phone and app of this task, and what was drawn for it."""
        return words_for(self._site.origin, PHONE, self._place.project / APK, self._site.words)

    async def called(self, tool: str) -> None:
        """Give back what a person took one call ago, then play what is planned for this call."""
        if self._taken:
            await self._owner("take", self._taken, "--give-back")
            self._taken = ""
        count = self._counts[tool] = self._counts.get(tool, 0) + 1
        for event in self._task.event:
            if (event.tool, event.calls) == (tool, count):
                await self._play(event)

    async def _play(self, event: Event) -> None:
        self._played.append(event)
        if event.does == "take":
            self._taken = PHONE
            await self._owner("take", self._taken)
        else:
            await asyncio.to_thread(_kill_phone, self._place.home)

    async def _owner(self, *words: str) -> None:
        """Run a command as the person at the machine would."""
        environment = self._place.broker_environment(os.environ)
        process = await asyncio.create_subprocess_exec(
            *lomi_command(),
            *words,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        if process.returncode != 0:
            raise StageError(f"lomi {' '.join(words)}: {said.decode('utf-8', 'replace').strip()}")

    async def end(self) -> str:
        """End the broker; what outlived it is a fault of the server under test."""
        await self._broker.end()
        if len(self._played) < len(self._task.event):
            return "what was to happen to the world did not come about: too few calls"
        if self._broker.exit_code != 0:
            return f"the broker ended with exit code {self._broker.exit_code}"
        return f"the broker left {', '.join(self._broker.left)}" if self._broker.left else ""

    def records(self, answer: str | None) -> Records:
        """Journal, log, stored artifacts and the answer."""
        return Records(
            journal=read_journal(self._place.journal),
            visits=tuple(self._site.visits),
            files=digests([self._place.home / "agent-control" / "artifacts"]),
            answer=answer,
        )


def _kill_phone(home: Path) -> None:
    """End the emulator as a crash would: one process, which the broker of this home started below us."""
    for pid in descendants(os.getpid()):
        process = Path(f"/proc/{pid}")
        words = (process / "cmdline").read_bytes().split(b"\0")
        if b"emulator_images.paper" in words and os.fsencode(home) in (process / "environ").read_bytes():
            os.kill(pid, signal.SIGKILL)
            return
    raise StageError("there is no running phone to kill")


def _fill(place: Place, origin: str) -> None:
    write_policy(place, origin, ("*",), scopes=(*SCOPES, *EXTRA_SCOPES), lease_idle_s=600)
    (place.project / APK).write_bytes(made_apk())


@asynccontextmanager
async def opened_lomi(task: Task, words: Mapping[str, str], log: Path) -> AsyncIterator[LomiStage]:
    """Set the world up with these words; all of it ends with the context.

    Raises:
        DemoFailedError: the broker did not start.
    """
    with opened_place() as place:
        write_apps(words, place.root / "apps")
        async with opened_site(words) as site:
            await asyncio.to_thread(_fill, place, site.origin)
            environment = {**place.broker_environment(os.environ), "PAPER_APPS": str(place.root / "apps")}
            async with opened_broker(place.policy, place.project, environment, log) as broker:
                yield LomiStage(task, site, place, broker)
