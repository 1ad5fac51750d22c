"""What a run ran on, and what in it is real: the lines that a reader needs to judge it."""

import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import version

from lomi.demo.apk import DemoApp
from lomi.demo.place import IMAGE
from lomi.demo.site import Request


def facts(requests: Iterable[Request], app: DemoApp, era: str) -> tuple[tuple[str, str], ...]:
    """Names and values; the engine is the one that the web server saw."""
    agents = {request.agent for request in requests if request.agent}
    engines = sorted({found for agent in agents for found in re.findall(r"\w*Chrome/[\d.]+", agent)})
    return (
        ("Lomi", version("lomi-lab")),
        ("MCP", f"{era}, Python SDK {version('mcp')}"),
        ("Phone", f"{IMAGE}, simulated"),
        ("Browser, as the server saw it", ", ".join(engines) or "none"),
        ("Installed app", f"{app.package}, {app.origin}, {len(app.content):,} bytes"),
        ("Its SHA-256", app.sha256),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("Machine", f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores"),
    )


def simulated(app: DemoApp) -> tuple[str, ...]:
    """What is not what it looks like, in plain words."""
    kind = "a tiny APK that the demo made itself, since it fetched none" if app.made else "a real APK"
    phone = (
        "Simulated: the phone. It is paper, a Python process that speaks the Android emulator's console and adbd's "
        "side of the adb protocol. It is no Android, and its screen says SIMULATED."
    )
    installed = (
        f"Simulated: what the installed app shows. {app.package} is {kind}; it was checked, sent and registered, "
        "but its code was not run."
    )
    real = "Real: adb, Chromium and its input, the egress proxy, MCP over stdio, TLS, the receipts, the processes."
    boxes = (
        "Boxes in a picture stand for characters that the fonts at hand can't draw. The records were compared "
        "character by character."
    )
    return phone, installed, real, boxes
