"""What an agent waits for in a browser, and pays in tokens: Lomi beside its peers over MCP stdio on the same pages.

Every round calls each server once, in an order of its own, so that the machine's other load falls on all alike. Tokens
are bytes of the whole answer / 4. Nothing leaves 127.0.0.1.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from benches import peers, processes
from benches.broker import opened_broker
from benches.browser_servers import DevtoolsMcp, Lomi, PlaywrightMcp, Server
from benches.pages import BIG, SMALL, served
from benches.rows import Report, row

SCOPES = ("workspace.read", "panel.create", "browser.navigate", "browser.read", "browser.interact")
SCOPES += ("browser.capture_composite",)
_DEFAULT, _BARE, _DEVTOOLS = "playwright-mcp", "playwright-mcp settle 0", "chrome-devtools-mcp"
_PEERS = (_DEFAULT, _BARE, _DEVTOOLS)
_ALL = ("lomi", *_PEERS)
_STEPS = {"navigate": 1, "snapshot": 10, "click": 1, "fill": 4, "screenshot": 4}
"""How many times the rounds of each: those that take a few milliseconds are the noisiest, and cost the least."""


class Board:
    """Values by step and server, in rounds."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def take(self, step: str, server: Server, action: str, *arguments: str) -> None:
        """Measure one call: its milliseconds, and the tokens of its answer."""
        began = time.perf_counter()
        getattr(server, action)(*arguments)
        self.note(step, server, (time.perf_counter() - began) * 1e3)
        self.note(f"{step}, tokens", server, server.stdio.bytes / 4)

    def note(self, step: str, server: Server, value: float) -> None:
        """One value that was measured elsewhere."""
        self._taken[step][server.name].append(value)

    def of(self, step: str, name: str) -> tuple[str, Sequence[float]]:
        """The values of one server."""
        return name, self._taken[step][name]

    def best(self, step: str) -> tuple[str, Sequence[float]]:
        """The values of the peer with the least median."""
        return min((self.of(step, name) for name in _PEERS), key=lambda one: statistics.median(one[1]))


def run(options: argparse.Namespace) -> Report:
    """All rows.

    Raises:
        PeersMissingError: the peers can't be installed.
    """
    report = Report("browser")
    there = peers.installed(options.peers)
    chromium = options.chromium or _chromium()
    report.notes.append(f"one engine for all: {chromium}; {', '.join(peers.PACKAGES[:2])}")
    report.notes.append("rounds: " + ", ".join(f"{step} {options.rounds * times}" for step, times in _STEPS.items()))
    board = Board()
    with served() as base, tempfile.TemporaryDirectory(prefix="lb-") as place:

        def started(name: str, stack: ExitStack, *, warm: bool) -> Server:
            if name == "lomi":
                broker = stack.enter_context(opened_broker(scopes=SCOPES, origins=(base,)))
                if warm:
                    # The broker outlives sessions: an earlier one has opened a page and left.
                    earlier = Lomi(broker, base)
                    with closing(earlier.stdio):
                        earlier.navigate(SMALL)
                server: Server = Lomi(broker, base)
            elif name == _DEVTOOLS:
                server = DevtoolsMcp(there, chromium, base, Path(place))
            else:
                server = PlaywrightMcp(there, chromium, base, Path(place), settle=0 if name == _BARE else None)
            stack.enter_context(closing(server.stdio))
            return server

        for name in _ALL:  # One after the other: side by side they would share the engine's pages in memory.
            with ExitStack() as stack:
                alone = started(name, stack, warm=False)
                alone.navigate(SMALL)
                board.note("memory", alone, processes.tree_mib(alone.roots))
        with ExitStack() as stack:
            _measure(board, [started(name, stack, warm=True) for name in _ALL], options.rounds)
    _judge(report, board)
    return report


def _measure(board: Board, servers: Sequence[Server], rounds: int) -> None:
    for server in servers:
        board.note("start", server, server.stdio.start_ms)
        board.take("first page", server, "navigate", SMALL)
        server.snapshot()
    # Whoever comes next pays for what the engine of the one before still does: the order is another in each round.
    order = random.Random(7)
    for step, times in _STEPS.items():
        for _ in range(rounds * times):
            for server in order.sample(servers, len(servers)):
                board.take(step, server, step, *([SMALL] if step == "navigate" else []))
    for _ in range(max(2, rounds // 5)):
        for server in servers:
            board.take("navigate, 1,000 rows", server, "navigate", BIG)
            board.take("snapshot, 1,000 rows", server, "snapshot")


def _judge(report: Report, board: Board) -> None:
    def ours(step: str) -> Sequence[float]:
        return board.of(step, "lomi")[1]

    rows = report.rows
    for peer, target in ((_DEVTOOLS, 0.5), (_DEFAULT, 0.25)):
        rows.append(row("click and what changed", ours("click"), board.of("click", peer), target=target))
    beside = board.of("click", _BARE)
    rows.append(row("click and what changed", ours("click"), (f"{_BARE} + snapshot", beside[1]), target=1.0))
    for step in ("navigate", "fill", "snapshot", "screenshot", "navigate, 1,000 rows", "snapshot, 1,000 rows"):
        target = None if step.startswith("navigate,") else 1.0
        rows.append(row(step, ours(step), board.best(step), target=target))
    big = "snapshot, 1,000 rows, tokens"
    rows.append(row(big, ours(big), board.best(big), target=1 / 20, unit="tokens"))
    for step in ("snapshot", "click"):
        tokens = f"{step}, tokens"
        rows.append(row(tokens, ours(tokens), board.best(tokens), unit="tokens"))
    what = "warm new session, its first page"
    rows.append(row(what, ours("first page"), board.best("first page"), target=0.5))
    rows.append(row("start to initialize", ours("start"), board.best("start")))
    rows.append(row("memory of the whole tree, one page", ours("memory"), board.best("memory"), target=1.0, unit="MiB"))


def _chromium() -> str:
    beside = Path("/usr/lib/chromium/chromium-headless-shell")
    found = str(beside) if beside.exists() else shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        raise peers.PeersMissingError("no Chromium for the peers: give --chromium")
    return found


def add_options(parser: argparse._ActionsContainer) -> None:
    """Which engine, how often."""
    parser.add_argument("--chromium", help="the engine of all (default: the system's headless shell)")
    parser.add_argument("--rounds", type=int, default=15)
