"""What a call over MCP stdio costs through helper and broker beside the SDK's own server; how soon the helper is ready.

    python ci/bench/mcp_stdio.py [--calls N] [--starts N] [--playwright-mcp CLI.js [--node NODE]]

All figures of one line come from interleaved rounds of one run; compare only within it. Targets: a call at most 2x the
SDK's echo server, the helper ready no later than `@playwright/mcp`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WIRE = ROOT / "tests" / "wire"
ECHO = [sys.executable, str(Path(__file__).with_name("sdk_echo.py"))]
POLICY = """version = 1
[[client]]
label = "lomi-mcp"
any_same_user = true
scopes = ["workspace.read"]
workspaces = ["*"]
"""
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Peer:
    """A stdio MCP server, driven by hand, so that no client's cost is in the figures."""

    def __init__(self, *command: str, modern: bool = False) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self._buffer = b""
        self._number = 0
        self._modern = modern

    def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """One request, answered."""
        self._number += 1
        if self._modern:
            params = {**params, "_meta": META}
        self._write({"id": self._number, "method": method, "params": params})
        while True:
            head, end, rest = self._buffer.partition(b"\n")
            if not end:
                chunk = os.read(self._process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise SystemExit("the server ended")
                self._buffer += chunk
                continue
            self._buffer = rest
            answer = json.loads(head)
            if answer.get("id") == self._number:
                return answer

    def open(self) -> None:
        """Open a session: ready for calls when this returns."""
        if self._modern:
            self.ask("server/discover", {})
        else:
            self.ask("initialize", OPENING)
            self._write({"method": "notifications/initialized"})

    def call(self, name: str) -> float:
        """Milliseconds of one call."""
        start = time.perf_counter()
        answer = self.ask("tools/call", {"name": name, "arguments": {}})
        taken = (time.perf_counter() - start) * 1e3
        if "result" not in answer:
            raise SystemExit(f"{name}: {answer}")
        return taken

    def rss(self) -> float:
        """Resident MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def close(self) -> float:
        """Close stdin; milliseconds until the exit."""
        start = time.perf_counter()
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.wait()
        self._process.stdout.close()
        return (time.perf_counter() - start) * 1e3

    def _write(self, message: dict[str, object]) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def line(label: str, values: list[float], unit: str = "ms") -> float:
    """Print median and p95; return the median."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    print(f"  {label:44s} median {median:7.2f}  p95 {ordered[int(len(ordered) * 0.95)]:7.2f} {unit}")
    return median


def calls(helper: list[str], tool: str, count: int) -> None:
    """Interleaved calls of a small tool on both."""
    for modern in (False, True):
        ours, sdk = Peer(*helper, modern=modern), Peer(*ECHO, modern=modern)
        for peer, name in ((ours, tool), (sdk, "echo")):
            peer.open()
            for _ in range(100):
                peer.call(name)
        through, echo = [], []
        for _ in range(count):
            through.append(ours.call(tool))
            echo.append(sdk.call("echo"))
        print(f"calls, {'2026-07-28' if modern else '2025-11-25'} ({count} each, alternating)")
        ratio = line(f"{tool} through the helper", through) / line("SDK echo server (its stdio_server)", echo)
        print(f"  ratio {ratio:.2f} (target <= 2); helper RSS {ours.rss():.0f} MiB, SDK server {sdk.rss():.0f} MiB")
        print(f"  exit after end of input: helper {ours.close():.0f} ms, SDK server {sdk.close():.0f} ms")


def pictures(helper: list[str]) -> None:
    """What a large picture costs."""
    peer = Peer(*helper)
    peer.open()
    line("1 MiB picture through helper and broker", [peer.call("picture") for _ in range(50)])
    peer.close()


def starts(helper: list[str], count: int, other: list[str] | None) -> None:
    """From spawn to the answer of `initialize`."""
    commands = {
        "helper ready (initialize answered)": helper,
        "SDK echo server": ECHO,
    }
    if other:
        commands["@playwright/mcp"] = other
    taken: dict[str, list[float]] = {label: [] for label in commands}
    for _ in range(count):
        for label, command in commands.items():
            start = time.perf_counter()
            peer = Peer(*command)
            peer.open()
            taken[label].append((time.perf_counter() - start) * 1e3)
            peer.close()
    print(f"starts ({count} each, alternating)")
    for label, values in taken.items():
        line(label, values)


def main() -> None:
    """Start a broker-like server and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--playwright-mcp", metavar="CLI.js")
    parser.add_argument("--node", default="node")
    options = parser.parse_args()
    other = None
    if options.playwright_mcp:
        other = [options.node, options.playwright_mcp, "--headless", "--isolated"]
    with real_broker():
        helper = [sys.executable, "-m", "lomi.mcp.helper"]
        starts(helper, options.starts, other)
        print("a real broker:")
        calls(helper, "lomi_status", options.calls)
    with stand_in_broker() as helper:
        print("a broker that only echoes:")
        calls(helper, "echo", options.calls)
        pictures(helper)


@contextmanager
def real_broker() -> Iterator[None]:
    """A headless broker, whose home this process's environment names meanwhile."""
    with tempfile.TemporaryDirectory(prefix="lomi-bench-") as place:
        project, policy = Path(place) / "project", Path(place) / "policy.toml"
        project.mkdir()
        policy.write_text(POLICY)
        policy.chmod(0o600)
        os.environ["LOMI_HOME"] = str(Path(place) / "home")
        command = [Path(sys.executable).with_name("lomi"), "up", "--headless", "--json"]
        command += ["--policy", policy, "--project", project]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as broker:
            try:
                broker.stdout.readline()
                yield
            finally:
                broker.terminate()


@contextmanager
def stand_in_broker() -> Iterator[list[str]]:
    """The tests' stand-in: link and MCP session are the product's, behind them nothing. Yields the helper's command."""
    with tempfile.TemporaryDirectory(prefix="lomi-bench-") as home:
        command = [sys.executable, str(WIRE / "mcp_broker_process.py"), home, "bench"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
            file, key = json.loads(broker.stdout.readline())
            yield [sys.executable, "-m", "lomi.mcp.helper", "--discovery-file", file, "--discovery-key", key]
            broker.stdin.close()


if __name__ == "__main__":
    main()
