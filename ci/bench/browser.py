"""What an agent waits for in a browser: Lomi through helper and broker beside the peers, over MCP stdio, in one run.

    python ci/bench/browser.py --modules DIR/node_modules [--chromium PATH] [--rounds N] [--node NODE]

DIR holds `npm i @playwright/mcp chrome-devtools-mcp`. Every round calls each server once, in turn, so that the
machine's other load falls on all alike: compare the ratios of one run, never figures of two. Tokens are bytes / 4.
Nothing leaves 127.0.0.1.
"""

import argparse
import contextlib
import hashlib
import http.server
import json
import os
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

ROWS = "".join(
    f"<tr><td>{i}</td><td><a href='#r{i}'>Order {i} — customer Ünï {i}</a></td>"
    f"<td><button>Approve {i}</button></td><td><input aria-label='note {i}'></td></tr>"
    for i in range(1000)
)
SMALL = """<title>small</title><h1>Hello</h1><button onclick="out.textContent = 'pressed ' + ++n">Press</button>
<label>Name <input></label><p id=out></p><script>let n = 0</script>"""
PAGES = {"/small.html": SMALL, "/big.html": f"<title>big</title><h1>Orders</h1><table>{ROWS}</table>"}
SCOPES = ["workspace.read", "panel.create", "browser.navigate", "browser.read", "browser.interact"]
SCOPES += ["browser.capture_composite"]
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
TEXT = "héllo 世界 🙂"


class Site(http.server.BaseHTTPRequestHandler):
    """The two pages."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request."""
        body = PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Stdio:
    """A stdio MCP server, driven by hand, so that no client's cost is in the figures."""

    def __init__(self, command: list[str], directory: Path, environment: Mapping[str, str]) -> None:
        started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=environment,
            bufsize=0,
        )
        self._buffer = b""
        self._number = 0
        self.bytes = 0
        self.ask("initialize", OPENING)
        self._write({"method": "notifications/initialized"})
        self.start_ms = (time.perf_counter() - started) * 1e3

    def _write(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request, answered."""
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        while True:
            while b"\n" not in self._buffer:
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise SystemExit("a server ended")
                self._buffer += chunk
            head, _, self._buffer = self._buffer.partition(b"\n")
            answer = json.loads(head)
            if answer.get("id") == self._number and "method" not in answer:
                self.bytes = len(head)
                return answer

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """One tool call that must succeed."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        result = answer.get("result", {})
        if "error" in answer or result.get("isError"):
            raise SystemExit(f"{name}: {json.dumps(answer)[:600]}")
        return result

    def close(self) -> None:
        """End it."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def text_of(result: dict[str, Any]) -> str:
    """The text blocks of a result."""
    return "".join(part.get("text", "") for part in result["content"])


class PlaywrightMcp:
    """`@playwright/mcp`; with `settle` 0 its click is followed by a snapshot: it shows nothing of its own."""

    def __init__(self, options: argparse.Namespace, base: str, directory: Path, *, settle: int | None) -> None:
        command = [
            options.node,
            f"{options.modules}/@playwright/mcp/cli.js",
            "--headless",
            "--isolated",
            "--no-sandbox",
        ]
        command += ["--browser", "chromium", "--executable-path", options.chromium, "--viewport-size", "1280x720"]
        command += [] if settle is None else ["--timeout-settle", str(settle)]
        self._base = base
        self._settle = settle
        self.name = "playwright-mcp" if settle is None else f"playwright-mcp settle {settle}"
        self.stdio = Stdio(command, directory, os.environ)
        self.roots = [self.stdio.process.pid]
        self._refs: dict[str, str] = {}

    def navigate(self, path: str) -> None:
        """Go to a page."""
        self.stdio.call("browser_navigate", url=self._base + path)

    def snapshot(self) -> None:
        """Look."""
        text = text_of(self.stdio.call("browser_snapshot"))
        for key, pattern in (
            ("button", r'button "(?:Press|Approve 0)".*?\[ref=(\w+)\]'),
            ("box", r"textbox.*?\[ref=(\w+)\]"),
        ):
            if found := re.search(pattern, text):
                self._refs[key] = found[1]

    def click(self) -> None:
        """Click and see what changed."""
        self.stdio.call("browser_click", target=self._refs["button"], element="Press")
        if self._settle == 0:
            self.stdio.call("browser_snapshot")

    def fill(self) -> None:
        """Type into the field."""
        self.stdio.call("browser_type", target=self._refs["box"], element="Name", text=TEXT)

    def screenshot(self) -> None:
        """Take a picture."""
        self.stdio.call("browser_take_screenshot", type="png")

    def close(self) -> None:
        """End it."""
        self.stdio.close()


class DevtoolsMcp:
    """`chrome-devtools-mcp`."""

    name = "chrome-devtools-mcp"

    def __init__(self, options: argparse.Namespace, base: str, directory: Path) -> None:
        command = [options.node, f"{options.modules}/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"]
        command += ["--headless", "--isolated", "--executablePath", options.chromium, "--chromeArg=--no-sandbox"]
        command += ["--viewport", "1280x720", "--no-usage-statistics"]
        self._base = base
        self.stdio = Stdio(command, directory, os.environ)
        self.roots = [self.stdio.process.pid]
        self._refs: dict[str, str] = {}

    def navigate(self, path: str) -> None:
        """Go to a page."""
        self.stdio.call("navigate_page", pageId=1, url=self._base + path)

    def snapshot(self) -> None:
        """Look."""
        text = text_of(self.stdio.call("take_snapshot", pageId=1))
        for key, pattern in (("button", r'uid=(\S+) button "(?:Press|Approve 0)"'), ("box", r"uid=(\S+) textbox")):
            if found := re.search(pattern, text):
                self._refs[key] = found[1]

    def click(self) -> None:
        """Click."""
        self.stdio.call("click", pageId=1, uid=self._refs["button"])

    def fill(self) -> None:
        """Fill the field."""
        self.stdio.call("fill", pageId=1, uid=self._refs["box"], value=TEXT)

    def screenshot(self) -> None:
        """Take a picture."""
        self.stdio.call("take_screenshot", pageId=1)

    def close(self) -> None:
        """End it."""
        self.stdio.close()


class Lomi:
    """`lomi mcp` before a headless broker. `warm` opens and closes a page first: the broker outlives sessions."""

    name = "lomi"

    def __init__(self, base: str, directory: Path, *, warm: bool) -> None:
        self._base = base
        self._token = secrets.token_urlsafe(32)
        (directory / "project").mkdir()
        self._environment = {
            n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE" and not n.startswith("LOMI_")
        }
        self._environment["LOMI_HOME"] = str(directory / "home")
        (directory / "home").mkdir(mode=0o700)
        self._broker = self._started(directory)
        self._count = 0
        if warm:
            self._begin(directory)
            self.navigate("/small.html")
            self.stdio.close()
        self._begin(directory)
        self.roots = [self._broker.pid, self.stdio.process.pid]

    def _started(self, directory: Path) -> subprocess.Popen[bytes]:
        policy = directory / "policy.toml"
        digest = hashlib.sha256(self._token.encode()).hexdigest()
        lines = ["version = 1", "[[client]]", 'label = "bench"', f'token_sha256 = "{digest}"']
        lines += [f"scopes = {json.dumps(SCOPES)}", 'workspaces = ["*"]', f"origins = {json.dumps([self._base])}"]
        policy.write_text("\n".join(lines) + "\n")
        policy.chmod(0o600)
        command = [str(Path(sys.executable).with_name("lomi")), "up", "--headless", "--json"]
        command += ["--policy", str(policy), "--project", str(directory / "project")]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._environment)
        if not broker.stdout.readline():
            raise SystemExit("the broker did not start")
        return broker

    def _begin(self, directory: Path) -> None:
        helper = [str(Path(sys.executable).with_name("lomi-mcp"))]
        secret = {"LOMI_CLIENT_LABEL": "bench", "LOMI_CLIENT_TOKEN": self._token}
        self.stdio = Stdio(helper, directory, {**self._environment, **secret})
        self._page: dict[str, str] = {}
        self._refs: dict[str, str] = {}
        self._snapshot = ""
        self._workspace = ""

    def _connect(self) -> None:
        listed = self._data(self.stdio.call("lomi_workspace_list"))
        self._workspace = listed["items"][0]["id"]
        self._revision = listed["domainRevision"]
        self._epoch = self._data(self.stdio.call("lomi_connect", workspaceId=self._workspace))["retryEpoch"]

    @staticmethod
    def _data(result: dict[str, Any]) -> dict[str, Any]:
        return result["structuredContent"]["data"]

    def _act(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self._count += 1
        result = self.stdio.call(
            tool, workspaceId=self._workspace, retryEpoch=self._epoch, requestKey=f"k{self._count}", **arguments
        )
        data = self._data(result)
        if data["state"] != "succeeded":
            raise SystemExit(f"{tool}: {json.dumps(data)[:600]}")
        return data

    def navigate(self, path: str) -> None:
        """Go to a page; the first time in a context of its own."""
        if not self._workspace:
            self._connect()
            opened = self._act(
                "lomi_browser_open", url=self._base + path, expectedRevision=self._revision, waitMs=15000
            )
            told = opened["result"]
            self._page = {"panelId": told["panelId"], "browserGeneration": told["browserGeneration"]}
            self._lease, self._navigation = told["leaseId"], told["navigationId"]
            return
        went = self._act(
            "lomi_browser_navigate", **self._page, leaseId=self._lease, url=self._base + path, waitMs=15000
        )
        self._navigation = went["result"]["navigationId"]

    def snapshot(self) -> None:
        """Look."""
        result = self.stdio.call("lomi_browser_snapshot", workspaceId=self._workspace, **self._page, form="outline")
        data, text = self._data(result), text_of(result)
        self._snapshot, self._navigation = data["snapshotId"], data["navigationId"]
        for key, pattern in (("button", r'(\S+-e\d+) button "(?:Press|Approve 0)"'), ("box", r"(\S+-e\d+) textbox")):
            if found := re.search(pattern, text):
                self._refs[key] = found[1]

    def _pointed(self, ref: str) -> dict[str, str]:
        target = {"leaseId": self._lease, "navigationId": self._navigation, "snapshotId": self._snapshot}
        return {**self._page, **target, "elementRef": ref}

    def click(self) -> None:
        """Click and see what changed."""
        self._act("lomi_browser_click", **self._pointed(self._refs["button"]))

    def fill(self) -> None:
        """Fill the field."""
        self._act("lomi_browser_fill", **self._pointed(self._refs["box"]), text=TEXT)

    def screenshot(self) -> None:
        """Take a picture."""
        self.stdio.call(
            "lomi_browser_screenshot", workspaceId=self._workspace, **self._page, navigationId=self._navigation
        )

    def close(self) -> None:
        """End helper and broker."""
        self.stdio.close()
        self._broker.terminate()
        self._broker.wait()
        self._broker.stdout.close()


def memory(roots: list[int]) -> float:
    """Proportional MiB of processes and all below them."""
    waiting, total = list(roots), 0.0
    while waiting:
        place = Path("/proc") / str(waiting.pop())
        try:
            rollup = (place / "smaps_rollup").read_text()
            waiting += [int(child) for task in place.glob("task/*/children") for child in task.read_text().split()]
        except OSError:
            continue
        if found := re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE):
            total += int(found[1]) / 1024
    return total


class Board:
    """Figures by step and server."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._bytes: dict[str, dict[str, int]] = defaultdict(dict)

    def take(self, step: str, server: Any, action: str, *arguments: Any) -> None:
        """Measure one call."""
        began = time.perf_counter()
        getattr(server, action)(*arguments)
        self._times[step][server.name].append((time.perf_counter() - began) * 1e3)
        self._bytes[step][server.name] = server.stdio.bytes

    def note(self, step: str, name: str, value: float) -> None:
        """One figure that was measured elsewhere."""
        self._times[step][name].append(value)

    def median(self, step: str, name: str) -> float:
        """The median of a step."""
        return statistics.median(self._times[step][name])

    def show(self) -> None:
        """All medians."""
        print(f"{'median ms (reply tokens)':26s}" + "".join(f"{name:>26s}" for name in self.names))
        for step in self._times:
            cells = []
            for name in self.names:
                tokens = self._bytes[step].get(name)
                cells.append(f"{self.median(step, name):10.1f}" + (f" ({tokens // 4})" if tokens else ""))
            print(f"{step:26s}" + "".join(f"{cell:>26s}" for cell in cells))

    def tokens(self, step: str, name: str) -> float:
        """Tokens of a step's last reply."""
        return self._bytes[step][name] / 4


def judge(board: Board) -> bool:
    """Print each target with its ratio; whether all are met."""
    default, bare, devtools = "playwright-mcp", "playwright-mcp settle 0", "chrome-devtools-mcp"
    peers = (default, bare, devtools)

    def best(step: str) -> float:
        return min(board.median(step, peer) for peer in peers)

    rows = [
        ("click with diff / chrome-devtools-mcp", board.median("click", "lomi") / board.median("click", devtools), 0.5),
        ("click with diff / playwright-mcp", board.median("click", "lomi") / board.median("click", default), 0.25),
        ("click with diff / settle 0 + snapshot", board.median("click", "lomi") / board.median("click", bare), 1.0),
        *(
            (f"{step} / better peer", board.median(step, "lomi") / best(step), 1.0)
            for step in ("navigate", "fill", "snapshot", "screenshot")
        ),
        (
            "1,000 rows, tokens / better peer",
            board.tokens("snapshot 1,000 rows", "lomi") / min(board.tokens("snapshot 1,000 rows", p) for p in peers),
            1 / 20,
        ),
        ("new session, warm / first navigate", board.median("first page", "lomi") / best("first page"), 0.5),
        ("memory with one page, MiB / lightest peer", board.median("memory, MiB", "lomi") / best("memory, MiB"), 1.0),
    ]
    for label, ratio, most in rows:
        print(f"  {'ok  ' if ratio <= most else 'MISS'} {label:44s} {ratio:6.2f}  (at most {most:.2f})")
    return all(ratio <= most for _, ratio, most in rows)


@contextmanager
def served() -> Iterator[str]:
    """The pages on a port of their own."""
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    site.daemon_threads = True
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{site.server_port}"
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def measure(options: argparse.Namespace, base: str, place: Path) -> Board:
    """All rounds."""

    def room(name: str) -> Path:
        directory = place / name
        directory.mkdir()
        return directory

    def makers(names: str) -> list[Callable[[], Any]]:
        first, second, third, fourth = (partial(room, name) for name in names)
        return [
            lambda: Lomi(base, first(), warm=True),
            lambda: PlaywrightMcp(options, base, second(), settle=None),
            lambda: PlaywrightMcp(options, base, third(), settle=0),
            lambda: DevtoolsMcp(options, base, fourth()),
        ]

    weights: dict[str, float] = {}
    for make in makers("wxyz"):  # one after the other: side by side they would share the engine's pages
        with contextlib.closing(make()) as alone:
            alone.navigate("/small.html")
            weights[alone.name] = memory(alone.roots)
    with ExitStack() as stack:
        servers: list[Any] = [make() for make in makers("lpqd")]
        for server in servers:
            stack.callback(server.close)
        board = Board([server.name for server in servers])
        for server in servers:
            board.note("start to initialize", server.name, server.stdio.start_ms)
            board.take("first page", server, "navigate", "/small.html")
        for server in servers:
            board.note("memory, MiB", server.name, weights[server.name])
            server.snapshot()
        for step, rounds in (("navigate", options.rounds), ("snapshot", options.rounds)):
            for _ in range(rounds):
                for server in servers:
                    board.take(step, server, step, *(["/small.html"] if step == "navigate" else []))
        for step in ("click", "fill", "screenshot"):
            for _ in range(options.rounds):
                for server in servers:
                    board.take(step, server, step)
        for _ in range(max(2, options.rounds // 5)):
            for server in servers:
                board.take("navigate 1,000 rows", server, "navigate", "/big.html")
                board.take("snapshot 1,000 rows", server, "snapshot")
        return board


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", required=True, type=os.path.abspath, help="the peers' node_modules directory")
    parser.add_argument("--chromium", help="the one engine for all (default: the system's headless shell)")
    parser.add_argument("--node", default="node")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.chromium is None:
        beside = Path("/usr/lib/chromium/chromium-headless-shell")
        options.chromium = str(beside) if beside.exists() else shutil.which("chromium")
    parent = "/tmp" if os.access("/tmp", os.W_OK) else None  # sockets below the home need a short path
    with tempfile.TemporaryDirectory(prefix="lb-", dir=parent) as place, served() as base:
        board = measure(options, base, Path(place))
    board.show()
    return 0 if judge(board) else 1


if __name__ == "__main__":
    sys.exit(main())
