"""Acts on terminals: create, run, input, interrupt."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.contract.model import Observation
from lomi.contract.terminal import (
    TerminalCommand,
    TerminalCreated,
    TerminalCreateInput,
    TerminalInputAck,
    TerminalInputInput,
    TerminalInterrupt,
    TerminalInterruptInput,
    TerminalRunInput,
    TypeText,
)
from lomi.core.ids import GenerationId
from lomi.core.port import Call, Ledger, Opening, Outcome, Permit, ResourceKey
from lomi.core.refusal import Refusal
from lomi.terminals.folder import folder_in_project
from lomi.terminals.lives import Lives
from lomi.terminals.reads import observation_of
from lomi.terminals.terminal import Command, PromptLostError, Terminal

_KEYS = {"enter": b"\r", "tab": b"\t", "escape": b"\x1b", "backspace": b"\x7f", "ctrl_c": b"\x03", "ctrl_d": b"\x04"}
EARLY_S = 1.0
"""How long bash may take from saying that a command begins to having it in the foreground."""


class TerminalActs:
    """Handlers that act through a permit."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger

    def _terminal(self, call: Call[Any]) -> Terminal:
        return self._lives.terminal(call)

    async def create(self, call: Call[TerminalCreateInput], permit: Permit) -> Outcome:
        """A new terminal in a new panel, leased to its creator."""
        given, project = call.input, call.project
        assert project is not None
        if call.grant.terminal_profile not in (None, "bash") or given.profile_id not in (None, "bash"):
            raise Refusal(ErrorCode.SCOPE_DENIED, "profile_not_granted", field="/profileId")
        directory = await asyncio.to_thread(folder_in_project, project, given.cwd_relative)
        shell = Opening(start=partial(self._start, directory), end=self._end, leaves_traces=True)
        async with permit.effect():
            panel, generation = await self._ledger.open_leased(call, "terminal", given.title, shell)
        terminal = self._lives.terminals.get(generation)
        return Outcome(
            result=TerminalCreated(
                workspace_id=given.workspace_id,
                panel_id=panel.id,
                terminal_session_id=generation,
                lease_id=None,
                ready=terminal is not None and terminal.prompt == "ready",
            )
        )

    async def _start(self, directory: Path, resource: ResourceKey) -> GenerationId:
        try:
            generation, _ = await self._lives.terminals.start(resource, directory)
        except OSError as failed:
            raise Refusal(ErrorCode.APP_UNAVAILABLE, "adapter_failed_before") from failed
        return generation

    async def _end(self, resource: ResourceKey) -> None:
        generation = self._ledger.current(resource)
        if generation is not None:
            await self._lives.terminals.end(generation)

    async def run(self, call: Call[TerminalRunInput], permit: Permit) -> Outcome:
        """Type the command, let later work on this terminal start, and wait for the shell to say how it ended."""
        given, terminal = call.input, self._terminal(call)
        try:
            command = await terminal.run(permit.operation_id, given.command, permit.effect())
        except PromptLostError as lost:
            raise Refusal(ErrorCode.PROMPT_STATE_UNKNOWN, "prompt_unknown") from lost
        permit.yield_turn()
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(command.ended.wait())
            asked = group.create_task(self._interrupt_when_asked(terminal, command, permit))
            await ended
            asked.cancel()
        return self._ended(given, command, permit)

    async def _interrupt_when_asked(self, terminal: Terminal, command: Command, permit: Permit) -> None:
        """One Ctrl+C; a second where the first came so early that bash may have missed it."""
        clock = asyncio.get_running_loop().time
        began = clock()
        await permit.cancel_requested()
        early = clock() - began < EARLY_S
        await terminal.interrupt()
        if early:
            try:
                async with asyncio.timeout(EARLY_S):
                    await command.ended.wait()
            except TimeoutError:
                await terminal.interrupt()

    def _ended(self, given: TerminalRunInput, command: Command, permit: Permit) -> Outcome:
        result = TerminalCommand(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            terminal_session_id=given.terminal_session_id,
            observation=observation_of(command),
        )

        async def observe() -> Observation:
            terminal = self._lives.terminals.get(given.terminal_session_id)
            start = int(result.observation.start_cursor)
            text = terminal.stream.text.read(start, 4096, command.ended_at) if terminal else None
            lines = text.content.decode("utf-8", "replace").splitlines() if text else []
            shown = (f"exit code {command.exit_code}", *(line.rstrip() for line in lines[-40:]))
            return Observation(settled=True, lines=shown, truncated=len(lines) > 40)

        if command.exit_code is None:
            return Outcome(
                result=result, state=OperationState.OUTCOME_UNKNOWN, effect=EffectState.UNKNOWN, observe=observe
            )
        if permit.cancelling and command.exit_code == 130:
            state, effect = OperationState.CANCELLED, EffectState.PARTIAL
        elif command.exit_code == 0:
            state, effect = OperationState.SUCCEEDED, EffectState.COMPLETE
        else:
            state, effect = OperationState.FAILED, EffectState.COMPLETE
        return Outcome(result=result, state=state, effect=effect, observe=observe)

    async def input(self, call: Call[TerminalInputInput], permit: Permit) -> Outcome:
        """Type text or a key."""
        given, terminal = call.input, self._terminal(call)
        typed = given.input.text.encode() if isinstance(given.input, TypeText) else _KEYS[given.input.key]
        async with permit.effect():
            terminal.typed = int(given.input_sequence)
            await terminal.type(typed)
        ack = TerminalInputAck(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            terminal_session_id=given.terminal_session_id,
            input_sequence=given.input_sequence,
            dispatch="dispatched",
        )
        return Outcome(result=ack)

    async def interrupt(self, call: Call[TerminalInterruptInput], permit: Permit) -> Outcome:
        """One Ctrl+C for one running command."""
        given, terminal = call.input, self._terminal(call)
        command = terminal.commands.get(given.operation_id)
        if command is None:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/operationId")
        running = command.ended_at is None
        async with permit.effect():
            if running:
                await terminal.interrupt()
        return Outcome(
            result=TerminalInterrupt(
                workspace_id=given.workspace_id,
                panel_id=given.panel_id,
                terminal_session_id=given.terminal_session_id,
                target_operation_id=given.operation_id,
                dispatched=running,
            )
        )
