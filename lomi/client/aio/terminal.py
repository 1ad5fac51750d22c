"""A terminal: run commands, type, read what is there."""

import asyncio
from dataclasses import dataclass
from typing import Literal, TypedDict

from lomi.client.acts import Act
from lomi.client.aio.acting import Acting
from lomi.client.aio.session import Session
from lomi.client.errors import DeadlineExceededError
from lomi.contract.codes import ErrorCode
from lomi.contract.panel import PanelChanged, PanelCloseInput
from lomi.contract.terminal import (
    TerminalCommand,
    TerminalCreated,
    TerminalInputAck,
    TerminalInputInput,
    TerminalInterrupt,
    TerminalInterruptInput,
    TerminalOutput,
    TerminalReadInput,
    TerminalRunInput,
    TerminalScreen,
    TypeKey,
    TypeText,
)

Key = Literal["enter", "tab", "escape", "backspace", "ctrl_c", "ctrl_d"]
_PAGE = 65_536
_READY_PAUSE_S = 0.05


class CommandFailedError(Exception):
    """Raised by `run(check=True)` when the command's exit code is not 0; `ended` is what it left."""

    def __init__(self, ended: "CommandEnded") -> None:
        tail = "\n".join(ended.output.splitlines()[-20:])
        super().__init__(f"exit code {ended.exit_code}: {ended.command}\n{tail}")
        self.ended = ended


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnded:
    """A command that has ended; `exit_code` is None where the shell did not tell it; `gap`: early output is gone."""

    command: str
    exit_code: int | None
    output: str
    gap: bool
    act: Act[TerminalCommand]


class _Where(TypedDict):
    workspace_id: str
    panel_id: str
    terminal_session_id: str


class Terminal(Acting):
    """One terminal with its lease, made by `Lab.terminal`."""

    def __init__(self, session: Session, made: TerminalCreated) -> None:
        assert made.lease_id is not None
        super().__init__(session, made.panel_id)
        self.generation = made.terminal_session_id
        self._lease_id = made.lease_id
        self._sequence = 0
        self._cursor: str | None = None
        self._one_input = asyncio.Lock()
        self.closed = False

    async def run(self, command: str, *, timeout_s: float = 60.0, check: bool = False) -> CommandEnded:
        """Run one line at an idle prompt and wait for its end.

        Args:
            command: one line.
            timeout_s: how long to follow it; it runs on after that.
            check: raise where its exit code is not 0.

        Raises:
            CommandFailedError: `check`, and it failed.
            DeadlineExceededError: it still runs; the error names its operation.
            ToolError: refused, or its end was not observed.
        """
        await self._ready()
        act = await self._session.act(
            "lomi_terminal_run",
            lambda: TerminalRunInput(
                **self._session.keyed(),
                panel_id=self.panel_id,
                terminal_session_id=self.generation,
                lease_id=self._lease_id,
                command=command,
            ),
            TerminalCommand,
            generation=self.generation,
            timeout_s=timeout_s,
            failed_ok=True,
            keep=self._keep,
        )
        output, gap = await self._output_of(act)
        exit_code = act.result.observation.exit_code if act.result is not None else None
        ended = CommandEnded(command=command, exit_code=exit_code, output=output, gap=gap, act=act)
        if check and exit_code != 0:
            raise CommandFailedError(ended)
        return ended

    async def send(self, text: str) -> TerminalInputAck:
        """Type text as it would be pasted; end a line with `key("enter")`.

        Answer a program after `wait_for` has seen its question: until it has begun, the shell's line editor holds the
        keyboard, and an Enter pressed then reaches the program as a carriage return, which ends no line there.
        """
        return await self._input(TypeText(text=text))

    async def key(self, key: Key) -> TerminalInputAck:
        """Press one key."""
        return await self._input(TypeKey(key=key))

    async def read(self) -> str:
        """Output since the last `read`, control sequences removed; the oldest part may be gone."""
        parts: list[str] = []
        while True:
            page = await self._page(TerminalReadInput(**self._where(), cursor=self._cursor, max_bytes=_PAGE))
            self._cursor = page.next_cursor
            if not page.text:
                return "".join(parts)
            parts.append(page.text)

    async def wait_for(self, text: str, timeout_s: float = 10.0) -> str:
        """Read until the output holds a text; what came since the last `read`.

        Raises:
            DeadlineExceededError: it did not come.
        """
        came, clock = "", asyncio.get_running_loop().time
        end = clock() + timeout_s
        while True:
            came += await self.read()
            if text in came:
                return came
            if clock() > end:
                said = f"The terminal did not show {text!r}; it ends with {came[-200:]!r}."
                raise DeadlineExceededError(ErrorCode.DEADLINE_EXCEEDED, said, reason="deadline")
            await asyncio.sleep(_READY_PAUSE_S)

    async def screen(self) -> TerminalScreen:
        """The rendered screen."""
        return await self._session.read(
            "lomi_terminal_read", TerminalReadInput(**self._where(), mode="screen"), TerminalScreen
        )

    async def interrupt(self, operation_id: str) -> Act[TerminalInterrupt]:
        """Send one Ctrl+C to a running command; watch the run itself for its end."""
        return await self._session.act(
            "lomi_terminal_interrupt",
            lambda: TerminalInterruptInput(
                **self._session.keyed(),
                panel_id=self.panel_id,
                terminal_session_id=self.generation,
                lease_id=self._lease_id,
                operation_id=operation_id,
            ),
            TerminalInterrupt,
            generation=self.generation,
            keep=self._keep,
        )

    async def close(self) -> Act[PanelChanged]:
        """Close the panel; the shell ends with it."""
        act = await self._session.act(
            "lomi_panel_close",
            lambda: PanelCloseInput(
                **self._session.revised(), panel_id=self.panel_id, terminal_session_id=self.generation
            ),
            PanelChanged,
            generation=self.generation,
            keep=self._keep,
        )
        self.closed = True
        return act

    def _where(self) -> _Where:
        return _Where(
            workspace_id=self._session.workspace_id, panel_id=self.panel_id, terminal_session_id=self.generation
        )

    async def _page(self, given: TerminalReadInput) -> TerminalOutput:
        return await self._session.read("lomi_terminal_read", given, TerminalOutput)

    async def _ready(self, timeout_s: float = 10.0) -> None:
        """Wait for a fresh shell's first prompt; the broker judges what is there after that."""
        clock = asyncio.get_running_loop().time
        end = clock() + timeout_s
        while clock() < end:
            page = await self._page(TerminalReadInput(**self._where(), max_bytes=1))
            if page.prompt == "ready" or page.exited:
                return
            await asyncio.sleep(_READY_PAUSE_S)

    async def _output_of(self, act: Act[TerminalCommand]) -> tuple[str, bool]:
        parts: list[str] = []
        cursor, gap = None, False
        while True:
            page = await self._page(
                TerminalReadInput(
                    **self._where(), mode="command", operation_id=act.operation_id, cursor=cursor, max_bytes=_PAGE
                )
            )
            gap = gap or page.gap
            if not page.text:
                return "".join(parts), gap
            parts.append(page.text)
            cursor = page.next_cursor

    async def _input(self, given: TypeText | TypeKey) -> TerminalInputAck:
        async with self._one_input:
            ack = await self._session.read(
                "lomi_terminal_input",
                TerminalInputInput(
                    **self._where(), lease_id=self._lease_id, input_sequence=str(self._sequence + 1), input=given
                ),
                TerminalInputAck,
            )
            self._sequence += 1
            return ack
