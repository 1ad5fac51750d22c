"""What an agent waits for on a phone, and pays in tokens: Lomi over MCP beside raw adb and `@mobilenext/mobile-mcp`.

All drive one simulated phone through one adb server, in turns, with both latency profiles: `instant` shows what the
tools themselves cost, `device` what is left of it when the phone answers as slowly as a real one. Tokens are bytes of
the whole answers / 4. The phone is SIMULATED: no figure here is one of Android.
"""

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing

from benches import peers
from benches.android_servers import Lomi, MobileMcp, RawAdb
from benches.broker import opened_broker
from benches.rows import Report, row
from devices.adb.shell import ShellLane
from devices.adb.wire import AdbClient
from devices.world import World

SCOPES = ("workspace.read", "panel.create", "panel.focus", "android.read", "android.control", "android.interact")
SCOPES += ("android.observe", "android.capture", "android.launch")
_PROFILES = ("instant", "device")


class Board:
    """Values by name, in rounds."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)

    def take(self, name: str, work: Callable[[], object]) -> None:
        """Milliseconds of one piece of work."""
        began = time.perf_counter()
        work()
        self.values[name].append((time.perf_counter() - began) * 1e3)

    def note(self, name: str, value: float) -> None:
        """One value that was measured elsewhere."""
        self.values[name].append(value)


def run(options: argparse.Namespace) -> Report:
    """All rows.

    Raises:
        PeersMissingError: the peers can't be installed.
    """
    report = Report("android")
    there = peers.installed(options.peers)
    report.notes.append(f"phone: paper-36, SIMULATED; {peers.PACKAGES[2]} in its adb mode, telemetry off")
    for profile in _PROFILES:
        rounds = options.rounds if profile == "instant" else max(3, options.rounds // 2)
        board = Board()
        with (
            opened_broker(scopes=SCOPES, phones=("phone-1",), more={"PAPER_LATENCY": profile}) as broker,
            ExitStack() as stack,
        ):
            ours = Lomi(broker)
            stack.enter_context(closing(ours.stdio))
            raw = RawAdb(broker)
            theirs = MobileMcp(there, raw, broker.root)
            stack.enter_context(closing(theirs))
            _measure(board, ours, raw, theirs, rounds)
            asyncio.run(_shell_calls(board, raw, rounds))
        _judge(report, board, profile)
    return report


def _measure(board: Board, ours: Lomi, raw: RawAdb, theirs: MobileMcp, rounds: int) -> None:
    ours.find()
    theirs.tap_and_list(ours.point)
    for number in range(rounds + 2):
        if number == 2:
            board.values.clear()
        ours.snapshot()
        board.take("tap by ref", ours.tap_ref)
        board.note("tap by ref, tokens", ours.stdio.bytes / 4)
        board.take("tap", ours.tap_point)
        board.note("tap, tokens", ours.stdio.bytes / 4)
        board.take("adb tap + dump", lambda: raw.tap_and_look(ours.point))
        began = time.perf_counter()
        size = theirs.tap_and_list(ours.point)
        board.note("mobile-mcp tap + list", (time.perf_counter() - began) * 1e3)
        board.note("mobile-mcp tap + list, tokens", size / 4)
        board.take("snapshot", ours.snapshot)
        board.note("snapshot, tokens", ours.stdio.bytes / 4)
        board.take("adb dump", raw.snapshot)
        board.take("mobile-mcp list", theirs.snapshot)
        board.note("mobile-mcp list, tokens", theirs.stdio.bytes / 4)
        board.take("capture", ours.capture)
        board.take("adb screencap", raw.capture)
        board.take("mobile-mcp picture", theirs.capture)


async def _shell_calls(board: Board, raw: RawAdb, rounds: int) -> None:
    """The kept shell stream of the library beside a process of adb for each call."""
    lane = ShellLane(AdbClient(raw.socket), raw.serial, World())
    await lane.run("true", within=10)
    for _ in range(rounds):
        began = time.perf_counter()
        await lane.run("true", within=10)
        board.note("shell", (time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        await asyncio.to_thread(raw.shell)
        board.note("adb shell", (time.perf_counter() - began) * 1e3)
    await lane.close()


def _judge(report: Report, board: Board, profile: str) -> None:
    seen = board.values
    for what, ours, beside, target, unit in (
        ("tap and what changed", "tap", "mobile-mcp tap + list", 1.0, "ms"),
        ("tap by ref and what changed", "tap by ref", "mobile-mcp tap + list", 1.0, "ms"),
        ("tap and what changed", "tap", "adb tap + dump", None, "ms"),
        ("tap and what changed, tokens", "tap, tokens", "mobile-mcp tap + list, tokens", 1.0, "tokens"),
        ("tap by ref and what changed, tokens", "tap by ref, tokens", "mobile-mcp tap + list, tokens", 1.0, "tokens"),
        ("snapshot", "snapshot", "mobile-mcp list", None, "ms"),
        ("snapshot", "snapshot", "adb dump", None, "ms"),
        ("snapshot, tokens", "snapshot, tokens", "mobile-mcp list, tokens", None, "tokens"),
        ("capture, full and bounded", "capture", "adb screencap", 1.0, "ms"),
        ("capture, full and bounded", "capture", "mobile-mcp picture", None, "ms"),
        ("shell call (library)", "shell", "adb shell", None, "ms"),
    ):
        name = {"adb screencap": "adb screencap + shrink in a thread"}.get(beside, beside).removesuffix(", tokens")
        report.rows.append(row(f"{profile}: {what}", seen[ours], (name, seen[beside]), target=target, unit=unit))


def add_options(parser: argparse._ActionsContainer) -> None:
    """How often."""
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the instant profile; half of it for device")
