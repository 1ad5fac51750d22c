"""What the MCP session itself costs: the helper before a broker that only echoes, beside the SDK's own stdio server.

Link and MCP session are the product's, behind them is nothing (`tests/wire/mcp_broker_process.py`). The whole way, with
a real broker, is in `spine`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from benches import processes
from benches.rows import Report, row
from benches.stdio import Stdio

ECHO = [sys.executable, "-P", str(Path(__file__).with_name("sdk_echo.py"))]
_WIRE = Path(__file__).resolve().parent.parent.parent / "tests" / "wire"
_WARM = 60


def run(options: argparse.Namespace) -> Report:
    """All rows."""
    report = Report("mcp")
    with _stand_in() as helper:
        for modern in (False, True):
            _calls(report, helper, options.calls, modern=modern)
        with closing(Stdio(helper)) as ours:
            report.rows.append(row("a picture of 1 MiB", [ours.timed("picture") for _ in range(options.calls // 10)]))
    return report


def _calls(report: Report, helper: list[str], count: int, *, modern: bool) -> None:
    with ExitStack() as stack:
        ours = stack.enter_context(closing(Stdio(helper, modern=modern)))
        echo = stack.enter_context(closing(Stdio(ECHO, modern=modern)))
        for _ in range(_WARM):
            ours.call("echo")
            echo.call("echo")
        pairs = [(ours.timed("echo"), echo.timed("echo")) for _ in range(count)]
        resident = [[processes.rss_kib(server.process.pid) / 1024] for server in (ours, echo)]
        ends = []
        for server in (ours, echo):
            began = time.perf_counter()
            server.close()
            ends.append([(time.perf_counter() - began) * 1e3])
    through, beside = zip(*pairs, strict=True)
    era = "2026-07-28" if modern else "2025-11-25"
    report.rows.append(row(f"echo, {era}", through, ("SDK echo server", beside), target=2.0))
    report.rows.append(row("  resident", resident[0], ("SDK echo server", resident[1]), unit="MiB"))
    report.rows.append(row("  exit after the end of input", ends[0], ("SDK echo server", ends[1])))


@contextmanager
def _stand_in() -> Iterator[list[str]]:
    """Yields the helper's command."""
    with tempfile.TemporaryDirectory(prefix="lomi-bench-") as home:
        command = [sys.executable, str(_WIRE / "mcp_broker_process.py"), home, "bench"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
            assert broker.stdin is not None
            assert broker.stdout is not None
            try:
                file, key = json.loads(broker.stdout.readline())
                yield [sys.executable, "-m", "lomi.mcp.helper", "--discovery-file", file, "--discovery-key", key]
            finally:
                broker.stdin.close()


def add_options(parser: argparse._ActionsContainer) -> None:
    """How many calls."""
    parser.add_argument("--calls", type=int, default=500)
