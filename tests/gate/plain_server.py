"""A tool server that is not Lomi, as small as can be: a page's text over HTTP, a phone's screen and taps over adb."""

import html
import json
import os
import re
import subprocess
import urllib.request

from mcp.server import MCPServer

server = MCPServer("plain", instructions="Look, then tap.")
shown = {"url": "about:blank"}


def adb(*words: str) -> str:
    """What a shell command of the only phone prints."""
    return subprocess.run(["adb", "shell", *words], capture_output=True, text=True, check=True, timeout=30).stdout


@server.tool()
def browser_navigate(url: str) -> str:
    """Go there."""
    shown["url"] = url
    return f"at {url}"


@server.tool()
def browser_snapshot() -> str:
    """The cells of the page's tables, one a line."""
    with urllib.request.urlopen(shown["url"], timeout=10) as answer:
        cells = re.findall(r"<td>(.*?)</td>", answer.read().decode())
    return "\n".join(f'- cell "{html.unescape(cell)}"' for cell in cells)


@server.tool(name="phone.screen")
def phone_screen() -> str:
    """UI Automator's XML."""
    return adb("uiautomator dump /data/local/tmp/w.xml >/dev/null && cat /data/local/tmp/w.xml")


@server.tool(name="phone.tap")
def phone_tap(x: int, y: int) -> str:
    """Tap a point."""
    adb(f"input tap {x} {y}")
    return "tapped"


def leave_daemon(note: str) -> None:
    """Start what outlives this server, and note its pid beside the names of this process's variables."""
    daemon = subprocess.Popen(
        ["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
    daemon.returncode = 0  # nobody here waits for it
    with open(note, "a", encoding="utf-8") as target:
        target.write(json.dumps({"daemon": daemon.pid, "variables": sorted(os.environ)}) + "\n")


if __name__ == "__main__":
    if "PLAIN_NOTE" in os.environ:
        leave_daemon(os.environ["PLAIN_NOTE"])
    server.run("stdio")
