"""The engine as a program: its arguments, its start on a private pair of sockets, its end."""

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

DIRECTORY_PREFIX = "lomi-engine-"

_FEATURES_OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    # Preflighted redirects to another origin would be aborted while documents are held.
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    # A new host for a frame with every document of one site: a quarter of a navigation, a seventh of a picture.
    "RenderDocument",
    "NetworkTimeServiceQuerying",
    "PreconnectToSearch",
)
_FIXED = (
    "--disable-field-trial-config",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # A document that history brings back is held against the grant like any other.
    "--disable-back-forward-cache",
    "--disable-breakpad",
    # Else a large image that is decoded aside is missing from a picture, of the display or drawn anew.
    "--disable-checker-imaging",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-features=" + ",".join(_FEATURES_OFF),
    "--allow-pre-commit-input",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-search-engine-choice-screen",
    "--disable-smooth-scrolling",
    "--enable-automation",
    "--enable-unsafe-swiftshader",
    "--force-color-profile=srgb",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-pings",
    "--no-service-autorun",
    "--password-store=basic",
    "--use-mock-keychain",
    "--unsafely-disable-devtools-self-xss-warnings",
    "--remote-debugging-pipe",
    "--no-startup-window",
)
_HEADLESS = (
    "--headless",
    "--hide-scrollbars",
    "--mute-audio",
    # A mouse: it hovers and points finely.
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
)
# The engine talks on descriptors 3 and 4; its other ones lead nowhere.
_START = 'exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null'
_TAIL_BYTES = 4096
_SEND_BYTES = 1 << 20
_REMOVALS = 10
_REMOVAL_PAUSE_S = 0.1


class Program:
    """A started engine.

    Attributes:
        pid: of the engine itself, leader of its own process group.
        directory: its throw-away profile, with the downloads beside it; removed by `end`.
    """

    def __init__(self, process: asyncio.subprocess.Process, ours: socket.socket, directory: Path) -> None:
        self.pid = process.pid
        self.socket = ours
        self.directory = directory
        self.tail = b""
        self._process = process

    @classmethod
    async def start(
        cls, path: Path, arguments: Sequence[str], *, headed: bool, sandbox: bool, environment: Mapping[str, str]
    ) -> "Program":
        """Start an engine.

        Raises:
            OSError: it can't be started.
        """
        directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=DIRECTORY_PREFIX))
        command = [str(path), *_FIXED, *(() if headed else _HEADLESS), *(() if sandbox else ("--no-sandbox",))]
        command += [*arguments, f"--user-data-dir={directory}"]
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                # A picture goes through in one piece: each further one waits for both processes to be scheduled.
                theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
                process = await asyncio.create_subprocess_exec(
                    "/bin/sh",
                    "-c",
                    _START,
                    "lomi-engine",
                    *command,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=asyncio.subprocess.PIPE,
                    start_new_session=True,
                    env=environment,
                )
        except BaseException:
            ours.close()
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return cls(process, ours, directory)

    async def read_errors(self) -> None:
        """Keep the last of what it complains of, until its end."""
        if self._process.stderr is not None:
            while chunk := await self._process.stderr.read(_TAIL_BYTES):
                self.tail = (self.tail + chunk)[-_TAIL_BYTES:]

    async def end(self, seconds: float = 3.0) -> None:
        """Wait until it is gone, kill what is not, and remove its directory."""
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            await self._process.wait()
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        # Helpers of the engine may still write for an instant after it has gone.
        shutil.rmtree(self.directory, ignore_errors=True)
        for _ in range(_REMOVALS):
            if not self.directory.exists():
                return
            time.sleep(_REMOVAL_PAUSE_S)
            shutil.rmtree(self.directory, ignore_errors=True)
