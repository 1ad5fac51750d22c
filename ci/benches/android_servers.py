"""One simulated phone and the three who drive it: Lomi over MCP, raw adb, and `@mobilenext/mobile-mcp`."""

import asyncio
import io
import json
import os
import secrets
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import adbutils
from PIL import Image

from benches.broker import Broker, Session
from benches.peers import Peers
from benches.stdio import BenchFailedError, Stdio, text_of
from devices.processes import MARKER_VARIABLE, carriers, end_processes
from devices.world import World

PACKAGE = "lomi.paper.form"
BOX = "agree"
"""The name of the check box that is tapped: each tap changes one line of the screen."""
EDGE = 640
"""Longest side of the bounded picture, in pixels; half of the phone's, so that it must be made."""


class Lomi:
    """`lomi-mcp` with a phone that runs and is leased, the form app on its screen."""

    def __init__(self, broker: Broker) -> None:
        self.stdio = Session(broker)
        self.stdio.connect()
        listed = self.stdio.data(self.stdio.read("lomi_android_list"))
        device = listed["devices"]["items"][0]["deviceId"]
        panel = self.stdio.revised("lomi_android_open", deviceId=device)["result"]["panelId"]
        target = {"panelId": panel, "deviceId": device}
        booted = self.stdio.revised("lomi_android_start", **target, waitMs=15000)
        self._target = {**target, "generation": booted["result"]["generation"]}
        claimed = self.stdio.revised("lomi_panel_control", **self._target, action="claim")
        self._lease = claimed["result"]["leaseId"]
        self._sequence = 0
        self._snapshot = self._ref = ""
        self.point = (0, 0)
        self.stdio.revised("lomi_android_launch", **self._target, packageName=PACKAGE)

    def find(self) -> None:
        """Take a snapshot and keep the box's ref and centre."""
        for _ in range(50):
            seen = self.stdio.data(self.stdio.read("lomi_android_snapshot", **self._target, form="elements"))
            for node in seen["nodes"]:
                if node["resourceId"].endswith(f"/{BOX}"):
                    left, top, right, bottom = node["bounds"]
                    self._snapshot, self._ref = seen["snapshotId"], str(node["id"])
                    self.point = ((left + right) // 2, (top + bottom) // 2)
                    return
        raise BenchFailedError("the form app did not appear")

    def snapshot(self) -> None:
        """Look."""
        result = self.stdio.read("lomi_android_snapshot", **self._target, form="outline")
        self._snapshot = self.stdio.data(result)["snapshotId"]

    def tap_ref(self) -> None:
        """Tap the box by its ref, and see what changed."""
        self._tap({"snapshotId": self._snapshot, "ref": self._ref})

    def tap_point(self) -> None:
        """Tap the box by its place, and see what changed."""
        x, y = self.point
        self._tap({"space": "hardware_display", "x": x, "y": y})

    def _tap(self, at: Mapping[str, Any]) -> None:
        self._sequence += 1
        done = self.stdio.acted(
            "lomi_android_input",
            **self._target,
            leaseId=self._lease,
            inputSequence=str(self._sequence),
            event={"type": "tap", "at": at},
            waitMs=10000,
        )
        seen = done["observation"]
        if not seen["settled"] or not seen["lines"]:
            raise BenchFailedError(f"the tap was not seen: {json.dumps(seen)[:400]}")
        self._snapshot = seen["snapshotId"]

    def capture(self) -> None:
        """Take a picture: the full one is stored, a bounded one comes along."""
        self.stdio.read("lomi_android_screenshot", **self._target, maxEdge=EDGE)


class RawAdb:
    """The adb command of the adbutils wheel, before the same adb server."""

    def __init__(self, broker: Broker) -> None:
        found = list((broker.root / "home").rglob("adb.sock"))
        if not found:
            raise BenchFailedError("the broker's adb server has no socket")
        self.socket = found[0]
        self.binary = Path(adbutils.__file__).resolve().parent / "binaries" / "adb"
        self.environment = {**os.environ, "ADB_SERVER_SOCKET": f"localfilesystem:{self.socket}"}
        self.serial = self._run("devices").split(b"\n")[1].split(b"\t")[0].decode()
        self._threads = ThreadPoolExecutor(1)

    def _run(self, *words: str) -> bytes:
        done = subprocess.run(
            [self.binary, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode:
            raise BenchFailedError(f"adb {' '.join(words)}: {done.stderr.decode(errors='replace')[:400]}")
        return done.stdout

    def _on_phone(self, *words: str) -> bytes:
        return self._run("-s", self.serial, *words)

    def shell(self) -> None:
        """One shell call."""
        self._on_phone("shell", "true")

    def snapshot(self) -> bytes:
        """One dump."""
        return self._on_phone("exec-out", "uiautomator", "dump", "/dev/tty")

    def tap_and_look(self, point: tuple[int, int]) -> None:
        """Tap, then dump."""
        self._on_phone("shell", "input", "tap", str(point[0]), str(point[1]))
        self.snapshot()

    def capture(self) -> None:
        """A picture, decoded, resized and encoded in a thread."""
        self._threads.submit(_shrunk, self._on_phone("exec-out", "screencap", "-p")).result()


class MobileMcp:
    """`@mobilenext/mobile-mcp` in its adb mode; the other one pushes an agent to the phone, which paper can't run."""

    def __init__(self, peers: Peers, raw: RawAdb, directory: Path) -> None:
        tools = directory / "sdk" / "platform-tools"
        tools.mkdir(parents=True)
        (tools / "adb").symlink_to(raw.binary)
        self._marker = secrets.token_hex(16)
        environment = {
            **raw.environment,
            MARKER_VARIABLE: self._marker,
            "ANDROID_HOME": str(tools.parent),
            "HOME": str(directory),
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "MOBILEMCP_DISABLE_TELEMETRY": "1",
            "MOBILEMCP_LEGACY_ROBOT": "1",
        }
        self.stdio = Stdio(peers.mobile_mcp, environment=environment, directory=directory)
        listed = json.loads(text_of(self.stdio.call("mobile_list_available_devices")))
        self._device = listed["devices"][0]["id"]

    def snapshot(self) -> int:
        """List the elements; the bytes of the answer."""
        said = text_of(self.stdio.call("mobile_list_elements_on_screen", device=self._device))
        if BOX not in said:
            raise BenchFailedError(f"mobile-mcp listed no box: {said[:400]}")
        return self.stdio.bytes

    def tap_and_list(self, point: tuple[int, int]) -> int:
        """Tap, then list; the bytes of both answers."""
        x, y = point
        self.stdio.call("mobile_click_on_screen_at_coordinates", device=self._device, x=x, y=y)
        tapped = self.stdio.bytes
        return tapped + self.snapshot()

    def capture(self) -> None:
        """Take a picture."""
        self.stdio.call("mobile_take_screenshot", device=self._device, maxSize=EDGE)

    def close(self) -> None:
        """End the server, and the daemon that it starts and leaves running."""
        self.stdio.close()
        asyncio.run(end_processes(carriers(self._marker), world=World(), term_s=3.0, kill_s=3.0))


def _shrunk(png: bytes) -> bytes:
    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGB")
    scale = EDGE / max(image.size)
    small = image.resize((int(image.width * scale), int(image.height * scale)), Image.Resampling.BILINEAR)
    out = io.BytesIO()
    small.save(out, "PNG", compress_level=1)
    return out.getvalue()
