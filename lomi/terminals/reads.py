"""Reads of terminals: a page of a ring, or of one command's output."""

import base64
from typing import Any

from lomi.contract.codes import ErrorCode
from lomi.contract.terminal import (
    CommandObservation,
    TerminalOutput,
    TerminalRaw,
    TerminalReadInput,
)
from lomi.core.port import Call, Ledger, Reply
from lomi.core.refusal import Refusal
from lomi.terminals.lives import Lives
from lomi.terminals.ring import whole_characters
from lomi.terminals.terminal import Command, Terminal


def observation_of(command: Command) -> CommandObservation:
    """What the shell's marks said of a command."""
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


class TerminalReads:
    """Handlers that observe."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger

    def _terminal(self, call: Call[Any]) -> Terminal:
        return self._lives.terminal(call)

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
            position = int(observation_of(command).start_cursor)
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
            command=observation_of(command) if command else None,
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
