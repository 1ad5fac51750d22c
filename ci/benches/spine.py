"""What every call pays: the way through helper and broker, a durable mutation, a connect, idleness, a long run."""

import argparse
import asyncio
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from benches import bare_tls, peers, processes
from benches.broker import Broker, Session, helper_command, opened_broker
from benches.peers import Peers
from benches.rows import Report, row
from benches.stdio import Stdio
from lomi.link.client import connect

ECHO = [sys.executable, "-P", str(Path(__file__).with_name("sdk_echo.py"))]
SCOPES = ("workspace.read", "workspace.write", "panel.create", "panel.focus")
PHONE_SCOPES = ("android.read", "android.control", "android.interact", "android.observe")
_WARM = 60
_FULL = 1100
"""Mutations after which a session keeps no more of them in memory."""


def run(options: argparse.Namespace) -> Report:
    """All rows."""
    report = Report("spine")
    try:
        there = peers.installed(options.peers)
    except peers.PeersMissingError as missing:
        report.notes.append(f"without peers: {missing}")
        there = None
    with opened_broker(scopes=SCOPES) as broker:
        _starts(report, broker, there, options.starts)
        for modern in (False, True):
            _calls(report, broker, options.calls, modern=modern)
        _mutations(report, broker, options.calls)
        asyncio.run(_connects(report, broker, options.connects))
        _long_run(report, broker, options.long)
    with opened_broker(scopes=SCOPES) as broker:
        _idle(report, broker, options.idle)
    with opened_broker(scopes=(*SCOPES, *PHONE_SCOPES), phones=("phone-1",)) as broker:
        _claims(report, broker, options.claims)
    return report


def _starts(report: Report, broker: Broker, there: Peers | None, count: int) -> None:
    commands = {"lomi": helper_command(), "SDK echo server": ECHO}
    if there is not None:
        commands["@playwright/mcp"] = [*there.playwright_mcp, "--headless", "--isolated"]
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(count + 1):
        for name, command in commands.items():
            server = Stdio(command, environment=broker.environment, directory=broker.root)
            taken[name].append(server.start_ms)
            server.close()
    # The first of each reads its program from the disk.
    warm = {name: values[1:] for name, values in taken.items()}
    report.rows.append(
        row("helper ready (spawn to initialize)", warm["lomi"], ("SDK echo server", warm["SDK echo server"]))
    )
    if there is not None:
        beside = ("@playwright/mcp", warm["@playwright/mcp"])
        report.rows.append(row("helper ready (spawn to initialize)", warm["lomi"], beside, target=1.0))


def _calls(report: Report, broker: Broker, count: int, *, modern: bool) -> None:
    with ExitStack() as stack:
        ours = stack.enter_context(closing(Session(broker, modern=modern)))
        echo = stack.enter_context(closing(Stdio(ECHO, modern=modern)))
        for _ in range(_WARM):
            ours.call("lomi_status")
            echo.call("echo")
        pairs = [(ours.timed("lomi_status"), echo.timed("echo")) for _ in range(count)]
    through, beside = zip(*pairs, strict=True)
    era = "2026-07-28" if modern else "2025-11-25"
    report.rows.append(row(f"lomi_status over MCP stdio, {era}", through, ("SDK echo server", beside), target=2.0))


@contextmanager
def _bare_commits(place: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(place / "bare.sqlite3", isolation_level=None)) as opened:
        for line in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)",
        ):
            opened.execute(line)
        yield opened


def _commit(opened: sqlite3.Connection) -> float:
    began = time.perf_counter()
    opened.execute("INSERT INTO rows (body) VALUES (?)", (bytes(600),))
    return (time.perf_counter() - began) * 1e3


def _mutations(report: Report, broker: Broker, count: int) -> None:
    with ExitStack() as stack:
        ours = stack.enter_context(closing(Session(broker)))
        echo = stack.enter_context(closing(Stdio(ECHO)))
        bare = stack.enter_context(_bare_commits(broker.root))
        ours.connect()

        def rename(number: int) -> float:
            began = time.perf_counter()
            ours.revised("lomi_workspace_update", name=f"name {number}")
            return (time.perf_counter() - began) * 1e3

        for number in range(_WARM):
            rename(number)
            echo.call("echo")
        rounds = [(rename(number), _commit(bare), echo.timed("echo")) for number in range(count)]
    renames, commits, echoes = zip(*rounds, strict=True)
    both = [commit + said for commit, said in zip(commits, echoes, strict=True)]
    report.rows.append(
        row("durable mutation (rename a workspace)", renames, ("WAL+FULL commit + echo", both), target=5.0)
    )
    report.rows.append(row("  its bare commit, for comparison", commits))


async def _connects(report: Report, broker: Broker, count: int) -> None:
    server, client = bare_tls.make_pair(broker.root)
    socket = str(broker.root / "bare.sock")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        bare_tls.__file__,
        socket,
        str(server),
        str(client),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    ours, bare = [], []
    for _ in range(count + 5):
        began = time.perf_counter()
        async with connect(broker.discovery_file, broker.discovery_key, label="bench", token=broker.token):
            ours.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        await bare_tls.connect(socket, str(client), str(server))
        bare.append((time.perf_counter() - began) * 1e3)
    process.stdin.close()
    await process.wait()
    report.rows.append(row("connect + welcome", ours[5:], ("mutual TLS connect", bare[5:]), target=2.0))


def _long_run(report: Report, broker: Broker, count: int) -> None:
    """Growth of the broker over many calls, a third of them mutations, once a session remembers all that it may."""
    with closing(Session(broker)) as ours:
        ours.connect()

        def step(number: int) -> None:
            if number % 3 == 0:
                ours.revised("lomi_workspace_update", name=f"name {number}")
            else:
                ours.call("lomi_status" if number % 3 == 1 else "lomi_workspace_list")

        for number in range(_FULL):
            ours.revised("lomi_workspace_update", name=f"name {number}")
        for number in range(count // 4):
            step(number)
        before = processes.rss_kib(broker.pid), processes.descriptors(broker.pid)
        seen = []
        for number in range(count):
            step(number)
            if number % 50 == 49:
                seen.append((number + 1, processes.rss_kib(broker.pid)))
        after = processes.rss_kib(broker.pid), processes.descriptors(broker.pid)
    slope = statistics.linear_regression([at for at, _ in seen], [kib for _, kib in seen]).slope
    percent = 100 * slope * count / before[0]
    what = f"broker over {count} calls"
    report.rows.append(
        row(f"{what}: growth of RSS (slope)", [percent], unit="%", target=2.0, note=f"{before[0]} to {after[0]} KiB")
    )
    report.rows.append(row(f"{what}: more descriptors", [float(after[1] - before[1])], unit="fds", target=0.0))


def _idle(report: Report, broker: Broker, seconds: float) -> None:
    """Nothing may tick while nothing is asked."""
    with closing(Session(broker)) as paired:
        paired.connect()
        paired.revised("lomi_workspace_update", name="idle")
        time.sleep(2)
        helper = paired.process.pid
        before = [(processes.cpu_s(pid), processes.wakings(pid)) for pid in (broker.pid, helper)]
        time.sleep(seconds)
        after = [(processes.cpu_s(pid), processes.wakings(pid)) for pid in (broker.pid, helper)]
    cpu = [100 * (late[0] - early[0]) / seconds for early, late in zip(before, after, strict=True)]
    woken = [float(late[1] - early[1]) for early, late in zip(before, after, strict=True)]
    what = f"idle for {seconds:.0f} s"
    report.rows.append(row(f"{what}: broker CPU", cpu[:1], unit="% of a core", target=0.5))
    report.rows.append(row(f"{what}: broker wakings", woken[:1], unit="times", target=0.0))
    report.rows.append(row(f"{what}: helper wakings", woken[1:], unit="times", target=0.0))


def _claims(report: Report, broker: Broker, count: int) -> None:
    """A pool hit: the lease of a phone that already runs."""
    with ExitStack() as stack:
        ours = stack.enter_context(closing(Session(broker)))
        echo = stack.enter_context(closing(Stdio(ECHO)))
        bare = stack.enter_context(_bare_commits(broker.root))
        ours.connect()
        listed = ours.data(ours.read("lomi_android_list"))
        device = listed["devices"]["items"][0]["deviceId"]
        panel = ours.revised("lomi_android_open", deviceId=device)["result"]["panelId"]
        booted = ours.revised("lomi_android_start", panelId=panel, deviceId=device, waitMs=15000)
        target = {"panelId": panel, "deviceId": device, "generation": booted["result"]["generation"]}

        def claim() -> float:
            began = time.perf_counter()
            ours.revised("lomi_panel_control", **target, action="claim")
            taken = (time.perf_counter() - began) * 1e3
            ours.revised("lomi_panel_control", **target, action="release")
            return taken

        for _ in range(_WARM // 3):
            claim()
            echo.call("echo")
        rounds = [
            (claim(), echo.timed("echo") + echo.timed("echo") + _commit(bare) + _commit(bare)) for _ in range(count)
        ]
        ours.revised("lomi_android_stop", **target, waitMs=15000)
    claims, beside = zip(*rounds, strict=True)
    report.rows.append(row("lease of a running phone", claims, ("2 echoes + 2 commits", beside), target=1.0))


def add_options(parser: argparse._ActionsContainer) -> None:
    """How much of each."""
    parser.add_argument("--calls", type=int, default=400, help="calls of each kind")
    parser.add_argument("--starts", type=int, default=12, help="starts of each server")
    parser.add_argument("--connects", type=int, default=100)
    parser.add_argument("--long", type=int, default=2000, help="calls over which nothing may grow")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds in which nothing may tick")
    parser.add_argument("--claims", type=int, default=100)
