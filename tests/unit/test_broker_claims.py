"""Who may claim a terminal."""

import os
from pathlib import Path

from broker_room import open_room
from test_broker_closing import Phones

from lomi.core.ids import WorkspaceId


async def test_nobody_claims_the_terminal_that_hosts_it(tmp_path: Path) -> None:
    """A client below the shell of a terminal would type into its own host."""
    terminals = Phones()
    terminals.kind = "terminal"
    async with open_room(tmp_path / "h", runtimes=terminals, decide=frozenset({"lomi_panel_control"})) as room:
        ledger = room.broker.ledger
        panel = await ledger.open_panel(WorkspaceId(room.workspace), "terminal", "shell", None)
        assert panel.resource is not None
        generation = await ledger.begin_generation(panel.resource)
        room.session.peer_pid = os.getpid()
        given = {"terminalSessionId": generation, "panelId": panel.id, "action": "claim"}
        terminals.host = os.getppid()
        said = await room.mutate("lomi_panel_control", "a", **given)
        assert (said.get("code"), said.get("reason")) == ("PROTECTED_ORIGIN_TERMINAL", "hosts_the_agent")
        assert ledger.lease(generation) is None
        terminals.host = None
        said = await room.mutate("lomi_panel_control", "b", **given)
        assert said["data"]["state"] == "succeeded"
        assert ledger.lease(generation) is not None
