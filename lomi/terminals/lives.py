"""Terminals as the broker asks about them (the port's `Runtimes` of kind terminal)."""

from typing import Any

from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import RuntimeState
from lomi.core.ids import GenerationId, LeaseId
from lomi.core.port import Call, Ledger, Permit, ResourceKey
from lomi.core.refusal import Refusal
from lomi.terminals.rooms import Terminals
from lomi.terminals.terminal import Terminal


class Lives:
    """Terminals against generations."""

    kind: ResourceKind = "terminal"

    def __init__(self, terminals: Terminals, ledger: Ledger) -> None:
        self.terminals = terminals
        self._ledger = ledger

    def terminal(self, call: Call[Any]) -> Terminal:
        """The terminal that a call names.

        Raises:
            Refusal: STALE_GENERATION.
        """
        terminal = self.terminals.get(call.generation)
        if terminal is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/terminalSessionId")
        return terminal

    def check_alive(self, call: Call[Any]) -> None:
        """The shell must still run."""
        if self.terminal(call).exited:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/terminalSessionId")

    def check_prompt(self, call: Call[Any]) -> None:
        """A command is only typed at a prompt that is known to be idle."""
        self.check_alive(call)
        prompt = self.terminal(call).prompt
        if prompt == "editing":
            raise Refusal(ErrorCode.TARGET_BUSY, "prompt_editing")
        if prompt == "running":
            raise Refusal(ErrorCode.TARGET_BUSY, "prompt_busy")
        if prompt != "ready" and not self.terminal(call).prompt_coming:
            raise Refusal(ErrorCode.PROMPT_STATE_UNKNOWN, "prompt_unknown")

    def state(self, resource: ResourceKey) -> RuntimeState:
        """How a terminal stands."""
        terminal = self.terminals.get(self._ledger.current(resource))
        if terminal is None:
            return "not_started"
        if terminal.exited:
            return "exited"
        return "ready" if terminal.prompt == "ready" else "running"

    def process(self, resource: ResourceKey) -> int | None:
        """The shell."""
        terminal = self.terminals.get(self._ledger.current(resource))
        return terminal.process.name.pid if terminal is not None and terminal.process is not None else None

    def check_claim(self, call: Call[Any]) -> None:
        """A terminal is claimed at an idle prompt only."""
        self.check_prompt(call)

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        """Nothing is held down in a terminal; the next lease counts its input from 1."""
        del lease_id
        terminal = self.terminals.get(generation)
        if terminal is not None:
            terminal.typed = 0

    def owner_gone(self, generation: GenerationId) -> None:
        """A shell lives by its user's rights, not by a grant: it stays for whoever claims it next."""

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        """End the shell."""
        del permit
        generation = self._ledger.current(resource)
        if generation is not None:
            await self.terminals.end(generation)
