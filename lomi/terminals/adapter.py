"""Ties terminals to the port: create, read, run, input, interrupt."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.contract.definition import ResourceKind
from lomi.contract.model import Observation
from lomi.contract.panel import RuntimeState
from lomi.contract.terminal import (
    CommandObservation,
    TerminalCommand,
    TerminalCreated,
    TerminalCreateInput,
    TerminalInputAck,
    TerminalInputInput,
    TerminalInterrupt,
    TerminalInterruptInput,
    TerminalOutput,
    TerminalRaw,
    TerminalReadInput,
    TerminalRunInput,
    TypeText,
)
from lomi.core.ids import GenerationId, LeaseId
from lomi.core.port import Act, Adapter, AdapterFactory, Call, Ledger, Outcome, Permit, Read, Reply, ResourceKey
from lomi.core.refusal import Refusal
from lomi.terminals.folder import folder_in_project
from lomi.terminals.ring import whole_characters
from lomi.terminals.rooms import Terminals, open_terminals
from lomi.terminals.terminal import Command, Terminal

_KEYS = {"enter": b"\r", "tab": b"\t", "escape": b"\x1b", "backspace": b"\x7f", "ctrl_c": b"\x03", "ctrl_d": b"\x04"}


def _observation(command: Command) -> CommandObservation:
    completed = command.ended_at is not None
    return CommandObservation(
        operation_id=command.operation_id,
        started_observed=command.started_at is not None,
        completed=completed,
        exit_code=command.exit_code,
        source="shell_integration" if command.exit_code is not None or not completed else "unknown",
        start_cursor=str(command.started_at if command.started_at is not None else command.submitted_at),
        end_cursor=str(command.ended_at) if command.ended_at is not None else None,
    )


class TerminalAdapter:
    """Handlers over `Terminals`, and the runtimes of kind `terminal`."""

    kind: ResourceKind = "terminal"

    def __init__(self, terminals: Terminals, ledger: Ledger) -> None:
        self._terminals = terminals
        self._ledger = ledger

    def _terminal(self, call: Call[Any]) -> Terminal:
        terminal = self._terminals.get(call.generation)
        if terminal is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/terminalSessionId")
        return terminal

    def check_alive(self, call: Call[Any]) -> None:
        """The shell must still run."""
        if self._terminal(call).exited:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/terminalSessionId")

    def check_prompt(self, call: Call[Any]) -> None:
        """A command is only typed at a prompt that is known to be idle."""
        self.check_alive(call)
        prompt = self._terminal(call).prompt
        if prompt == "editing":
            raise Refusal(ErrorCode.TARGET_BUSY, "prompt_editing")
        if prompt == "running":
            raise Refusal(ErrorCode.TARGET_BUSY, "prompt_busy")
        if prompt != "ready":
            raise Refusal(ErrorCode.PROMPT_STATE_UNKNOWN, "prompt_unknown")

    async def create(self, call: Call[TerminalCreateInput], permit: Permit) -> Outcome:
        """A new terminal in a new panel, leased to its creator."""
        given, project = call.input, call.project
        assert project is not None
        if call.grant.terminal_profile not in (None, "bash") or given.profile_id not in (None, "bash"):
            raise Refusal(ErrorCode.SCOPE_DENIED, "profile_not_granted", field="/profileId")
        directory = await asyncio.to_thread(folder_in_project, project, given.cwd_relative)
        async with permit.effect():
            panel = await self._ledger.open_panel(call.workspace.id, "terminal", given.title, None)  # type: ignore[union-attr]
            assert panel.resource is not None
            generation, terminal = await self._terminals.start(panel.resource, directory)
            self._ledger.grant_lease(generation, call.session_id)
        return Outcome(
            result=TerminalCreated(
                workspace_id=given.workspace_id,
                panel_id=panel.id,
                terminal_session_id=generation,
                lease_id=None,
                ready=terminal.prompt == "ready",
            )
        )

    async def read(self, call: Call[TerminalReadInput]) -> Reply:
        """A page of one of the two rings, or of one command's output."""
        given, terminal = call.input, self._terminal(call)
        position = int(given.cursor or 0)
        common = {
            "workspace_id": given.workspace_id,
            "panel_id": given.panel_id,
            "terminal_session_id": given.terminal_session_id,
        }
        stream = terminal.stream
        if given.mode == "screen":
            raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "adapter_absent", field="/mode")
        if given.mode == "raw":
            piece = stream.raw.read(position, given.max_bytes)
            raw = TerminalRaw(
                **common,
                base64=base64.b64encode(piece.content).decode(),
                next_cursor=str(piece.next),
                available_from=str(stream.raw.start),
                gap=piece.gap,
                stream_sequence=str(stream.raw.end),
            )
            return Reply(data=raw)
        command = self._command(terminal, given)
        if command is not None and given.cursor is None:
            position = int(_observation(command).start_cursor)
        piece = stream.text.read(position, given.max_bytes, command.ended_at if command else None)
        content = whole_characters(piece.content)
        lease = self._ledger.lease(call.generation) if call.generation else None
        output = TerminalOutput(
            **common,
            mode=given.mode,
            text=content.decode("utf-8", "replace"),
            next_cursor=str(piece.start + len(content)),
            available_from=str(stream.text.start),
            gap=piece.gap,
            prompt=terminal.prompt,
            lease_id=lease.id if lease and lease.session_id == call.session_id else None,
            command=_observation(command) if command else None,
            exited=terminal.exited,
            shell_exit_code=terminal.process.exit_code if terminal.process else None,
            next_input_sequence=str(terminal.typed + 1),
            stream_sequence=str(stream.raw.end),
            parsed_sequence=str(stream.raw.end),
        )
        return Reply(data=output, text=f"prompt {output.prompt}, next cursor {output.next_cursor}\n{output.text}")

    def _command(self, terminal: Terminal, given: TerminalReadInput) -> Command | None:
        if given.mode != "command":
            return None
        command = terminal.commands.get(given.operation_id or "")
        if command is None:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/operationId")
        return command

    async def run(self, call: Call[TerminalRunInput], permit: Permit) -> Outcome:
        """Type the command, let later work on this terminal start, and wait for the shell to say how it ended."""
        given, terminal = call.input, self._terminal(call)
        command = await terminal.run(permit.operation_id, given.command, permit.effect())
        permit.yield_turn()
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(command.ended.wait())
            asked = group.create_task(self._interrupt_when_asked(terminal, permit))
            await ended
            asked.cancel()
        return self._ended(given, command, permit)

    async def _interrupt_when_asked(self, terminal: Terminal, permit: Permit) -> None:
        await permit.cancel_requested()
        await terminal.interrupt()

    def _ended(self, given: TerminalRunInput, command: Command, permit: Permit) -> Outcome:
        result = TerminalCommand(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            terminal_session_id=given.terminal_session_id,
            observation=_observation(command),
        )

        async def observe() -> Observation:
            terminal = self._terminals.get(given.terminal_session_id)
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

    def state(self, resource: ResourceKey) -> RuntimeState:
        """How a terminal stands."""
        terminal = self._terminals.get(self._ledger.current(resource))
        if terminal is None:
            return "not_started"
        if terminal.exited:
            return "exited"
        return "ready" if terminal.prompt == "ready" else "running"

    def check_claim(self, call: Call[Any]) -> None:
        """A terminal is claimed at an idle prompt only."""
        self.check_prompt(call)

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        """Nothing is held down in a terminal."""

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        """End the shell."""
        del permit
        generation = self._ledger.current(resource)
        if generation is not None:
            await self._terminals.end(generation)


def terminal_adapter(state: Path, environment: Mapping[str, str]) -> AdapterFactory:
    """The adapter, for the composition root."""

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return _open(state, ledger, environment)

    return factory


@asynccontextmanager
async def _open(state: Path, ledger: Ledger, environment: Mapping[str, str]) -> AsyncIterator[Adapter]:
    async with open_terminals(state, ledger, environment) as terminals:
        adapter = TerminalAdapter(terminals, ledger)
        yield Adapter(
            family="terminal",
            tools=(
                Act(tool="lomi_terminal_create", act=adapter.create),
                Read(tool="lomi_terminal_read", read=adapter.read),
                Act(tool="lomi_terminal_run", act=adapter.run, check=adapter.check_prompt),
                Act(tool="lomi_terminal_input", act=adapter.input, check=adapter.check_alive),
                Act(tool="lomi_terminal_interrupt", act=adapter.interrupt, check=adapter.check_alive),
            ),
            runtimes=adapter,
            limitations=("terminals are bash only; no rendered screen yet",),
        )
