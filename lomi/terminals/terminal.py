"""One terminal: its shell, what the shell said of its prompt, and the commands that were run in it."""

import asyncio
from collections import OrderedDict
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from lomi.contract.terminal import Prompt
from lomi.terminals.process import PtyProcess
from lomi.terminals.stream import Mark, Stream

COMMANDS = 64
PROMPT_S = 5.0
"""How long a prompt that is being drawn may take."""
START_S = 30.0
"""How long the shell may take to show that a command has begun."""


@dataclass(slots=True, kw_only=True, eq=False)
class Command:
    """A command that was submitted. It has begun when its C mark came, and ended with the next D mark."""

    operation_id: str
    submitted_at: int
    started_at: int | None = None
    ended_at: int | None = None
    exit_code: int | None = None
    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class PromptLostError(Exception):
    """Raised when a prompt that was expected did not come."""


class Terminal:
    """A PTY with our bash. Prompt state is what the marks proved, `unknown` where they prove nothing."""

    def __init__(self, nonce: str, rc_file: Path) -> None:
        self.stream = Stream(nonce, self._marked)
        self.prompt: Prompt = "unknown"
        self.prompt_coming = False
        self.process: PtyProcess | None = None
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self.commands: OrderedDict[str, Command] = OrderedDict()
        self.typed = 0
        self._rc_file = rc_file
        self._current: Command | None = None

    @property
    def exited(self) -> bool:
        """Whether the shell has ended."""
        return self.gone.is_set()

    async def watch(self, process: PtyProcess) -> None:
        """Take output in until the shell ends; then every open command ends without an exit code."""
        self.process = process
        try:
            await process.watch(self.stream.feed)
        finally:
            self.prompt = "unknown"
            self.gone.set()
            self.ready.set()
            self._end_current(None, self.stream.text.end)
            self._rc_file.unlink(missing_ok=True)

    def _marked(self, mark: Mark) -> None:
        match mark.kind:
            case "B":
                # The start-up file holds the nonce; after the first prompt nobody needs it.
                self._rc_file.unlink(missing_ok=True)
                self.prompt = "ready"
                self.prompt_coming = False
                self.ready.set()
            case "C":
                self.prompt = "running"
                self.ready.clear()
                if self._current is not None and self._current.started_at is None:
                    self._current.started_at = mark.position
                    self._current.began.set()
            case "D":
                if self._current is not None and self._current.started_at is not None:
                    self._end_current(mark.exit_code, mark.position)
            case "A":
                self.prompt = "unknown"
                self.prompt_coming = True

    def _end_current(self, exit_code: int | None, position: int) -> None:
        command = self._current
        if command is not None:
            command.exit_code, command.ended_at = exit_code, position
            self._current = None
            command.began.set()
            command.ended.set()

    async def run(self, operation_id: str, text: str, effect: AbstractAsyncContextManager[None]) -> Command:
        """Type one line at a ready prompt; returns when it has begun, or when the shell ended first.

        A prompt that the shell has begun to draw is waited for: the command before has only just ended.

        Raises:
            PromptLostError: no prompt came; nothing was typed.
            TimeoutError: the shell did not say within 30 s that it began.
        """
        assert self.process is not None
        try:
            async with asyncio.timeout(PROMPT_S):
                await self.ready.wait()
        except TimeoutError as late:
            raise PromptLostError from late
        if self.prompt != "ready":
            raise PromptLostError
        command = Command(operation_id=operation_id, submitted_at=self.stream.text.end)
        async with effect:
            self._current = command
            self.prompt = "editing"
            self.ready.clear()
            self.commands[operation_id] = command
            while len(self.commands) > COMMANDS:
                self.commands.popitem(last=False)
            await self.process.write(text.encode() + b"\r")
            async with asyncio.timeout(START_S):
                await command.began.wait()
        return command

    async def interrupt(self) -> None:
        """Type one Ctrl+C."""
        assert self.process is not None
        await self.process.write(b"\x03")

    async def type(self, content: bytes) -> None:
        """Type as a person would; the prompt is unknown from then on until its next complete cycle."""
        assert self.process is not None
        self.prompt, self.prompt_coming = "unknown", False
        self.ready.clear()
        await self.process.write(content)
