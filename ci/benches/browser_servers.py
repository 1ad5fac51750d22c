"""Lomi and its peers of the browser bench, each driven through its own tools to the same end."""

import os
import re
from pathlib import Path
from typing import Any, Protocol

from benches.broker import Broker, Session
from benches.peers import Peers
from benches.stdio import Stdio, text_of

TEXT = "héllo 世界 🙂"
_BUTTON = r'button "(?:Press|Approve 0)"'


class Server(Protocol):
    """What is asked of each.

    Attributes:
        name: as the table shows it.
        stdio: its process.
        roots: the processes whose families are its whole.
    """

    name: str
    stdio: Stdio
    roots: list[int]

    def navigate(self, path: str) -> None:
        """Go to a page; the first time opens the browser or a context of its own."""

    def snapshot(self) -> None:
        """Look at the page, and keep the refs of its first button and field."""

    def click(self) -> None:
        """Click the button and see what changed."""

    def fill(self) -> None:
        """Fill the field."""

    def screenshot(self) -> None:
        """Take a picture of the viewport."""


class PlaywrightMcp:
    """`@playwright/mcp`; with `settle` 0 its click shows nothing, so that a snapshot follows it."""

    def __init__(self, peers: Peers, chromium: str, base: str, directory: Path, *, settle: int | None) -> None:
        command = [*peers.playwright_mcp, "--headless", "--isolated", "--no-sandbox", "--browser", "chromium"]
        command += ["--executable-path", chromium, "--viewport-size", "1280x720"]
        command += [] if settle is None else ["--timeout-settle", str(settle)]
        self._base = base
        self._settle = settle
        self._refs: dict[str, str] = {}
        self.name = "playwright-mcp" if settle is None else f"playwright-mcp settle {settle}"
        self.stdio = Stdio(command, directory=directory, environment=os.environ)
        self.roots = [self.stdio.process.pid]

    def navigate(self, path: str) -> None:
        """Go to a page."""
        self.stdio.call("browser_navigate", url=self._base + path)

    def snapshot(self) -> None:
        """Look."""
        text = text_of(self.stdio.call("browser_snapshot"))
        _keep(self._refs, text, button=_BUTTON + r".*?\[ref=(\w+)\]", box=r"textbox.*?\[ref=(\w+)\]")

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


class DevtoolsMcp:
    """`chrome-devtools-mcp`; its click answers without what changed."""

    name = "chrome-devtools-mcp"

    def __init__(self, peers: Peers, chromium: str, base: str, directory: Path) -> None:
        command = [*peers.devtools_mcp, "--headless", "--isolated", "--executablePath", chromium]
        command += ["--chromeArg=--no-sandbox", "--viewport", "1280x720", "--no-usage-statistics"]
        self._base = base
        self._refs: dict[str, str] = {}
        self.stdio = Stdio(command, directory=directory, environment=os.environ)
        self.roots = [self.stdio.process.pid]

    def navigate(self, path: str) -> None:
        """Go to a page."""
        self.stdio.call("navigate_page", pageId=1, url=self._base + path)

    def snapshot(self) -> None:
        """Look."""
        text = text_of(self.stdio.call("take_snapshot", pageId=1))
        _keep(self._refs, text, button=r"uid=(\S+) " + _BUTTON, box=r"uid=(\S+) textbox")

    def click(self) -> None:
        """Click."""
        self.stdio.call("click", pageId=1, uid=self._refs["button"])

    def fill(self) -> None:
        """Fill the field."""
        self.stdio.call("fill", pageId=1, uid=self._refs["box"], value=TEXT)

    def screenshot(self) -> None:
        """Take a picture."""
        self.stdio.call("take_screenshot", pageId=1)


class Lomi:
    """`lomi-mcp` before a headless broker, which outlives sessions as it does in use."""

    name = "lomi"

    def __init__(self, broker: Broker, base: str) -> None:
        self._base = base
        self._refs: dict[str, str] = {}
        self._page: dict[str, str] = {}
        self._lease = self._navigation = self._snapshot = ""
        self.stdio: Session = Session(broker)
        self.roots = [broker.pid, self.stdio.process.pid]

    def navigate(self, path: str) -> None:
        """Go to a page."""
        url = self._base + path
        if not self._page:
            self.stdio.connect()
            told = self.stdio.revised("lomi_browser_open", url=url, waitMs=15000)["result"]
            self._page = {"panelId": told["panelId"], "browserGeneration": told["browserGeneration"]}
            self._lease, self._navigation = told["leaseId"], told["navigationId"]
            return
        went = self.stdio.act("lomi_browser_navigate", **self._page, leaseId=self._lease, url=url, waitMs=15000)
        self._navigation = went["result"]["navigationId"]

    def snapshot(self) -> None:
        """Look."""
        result = self.stdio.read("lomi_browser_snapshot", **self._page, form="outline")
        data = self.stdio.data(result)
        self._snapshot, self._navigation = data["snapshotId"], data["navigationId"]
        _keep(self._refs, text_of(result), button=r"(\S+-e\d+) " + _BUTTON, box=r"(\S+-e\d+) textbox")

    def click(self) -> None:
        """Click and see what changed."""
        self.stdio.act("lomi_browser_click", **self._pointed("button"))

    def fill(self) -> None:
        """Fill the field."""
        self.stdio.act("lomi_browser_fill", **self._pointed("box"), text=TEXT)

    def screenshot(self) -> None:
        """Take a picture."""
        self.stdio.read("lomi_browser_screenshot", **self._page, navigationId=self._navigation)

    def _pointed(self, what: str) -> dict[str, Any]:
        target = {"leaseId": self._lease, "navigationId": self._navigation, "snapshotId": self._snapshot}
        return {**self._page, **target, "elementRef": self._refs[what]}


def _keep(refs: dict[str, str], text: str, **patterns: str) -> None:
    for name, pattern in patterns.items():
        if found := re.search(pattern, text):
            refs[name] = found[1]
