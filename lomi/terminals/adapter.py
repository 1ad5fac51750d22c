"""Ties terminals to the port: create, read, run, input, interrupt."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from lomi.core.port import Act, Adapter, AdapterFactory, Ledger, Read
from lomi.terminals.actions import TerminalActs
from lomi.terminals.lives import Lives
from lomi.terminals.reads import TerminalReads
from lomi.terminals.rooms import open_terminals


def terminal_adapter(state: Path, environment: Mapping[str, str]) -> AdapterFactory:
    """The adapter, for the composition root."""

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return _open(state, ledger, environment)

    return factory


@asynccontextmanager
async def _open(state: Path, ledger: Ledger, environment: Mapping[str, str]) -> AsyncIterator[Adapter]:
    async with open_terminals(state, ledger, environment) as terminals:
        lives = Lives(terminals, ledger)
        reads, acts = TerminalReads(lives, ledger), TerminalActs(lives, ledger)
        yield Adapter(
            family="terminal",
            tools=(
                Act(tool="lomi_terminal_create", act=acts.create),
                Read(tool="lomi_terminal_read", read=reads.read),
                Act(tool="lomi_terminal_run", act=acts.run, check=lives.check_prompt),
                Act(tool="lomi_terminal_input", act=acts.input, check=lives.check_alive),
                Act(tool="lomi_terminal_interrupt", act=acts.interrupt, check=lives.check_alive),
            ),
            runtimes=lives,
            limitations=("terminals are bash only; no rendered screen yet",),
        )
