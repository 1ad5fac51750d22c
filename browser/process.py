"""The engine as an operating system process: where it is, who it is, and that it never outlives us."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

HEADLESS_SHELLS = ("/usr/lib/chromium/chromium-headless-shell", "/usr/bin/chromium-headless-shell")
CHROMIUMS = (
    "/usr/lib/chromium/chromium",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
    "/usr/bin/google-chrome-stable",
)

# Waits for the end of its input, which is our end, however it comes; grants the engine two seconds to go by itself,
# then kills what is left of exactly that process group (pid and start time must both still fit) and removes the
# engine's throw-away profile, in which the engine's own helpers may still write for an instant.
_WATCH = """
read -r _
n=0
while [ $n -lt 20 ] && [ -d /proc/"$1" ]; do sleep 0.1; n=$((n + 1)); done
if [ "$(sed 's/.*) //' /proc/"$1"/stat 2>/dev/null | cut -d' ' -f20)" = "$2" ]; then kill -9 -"$1"; fi
case "$3" in */lomi-engine-*) for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$3" && break; sleep 0.1; done;; esac
"""


class EngineProcess(NamedTuple):
    """Identity of an engine.

    Pid, start time in clock ticks since boot, its process group, its throw-away profile directory.
    """

    pid: int
    started: int
    group: int
    profile: str


def limitations() -> tuple[str, ...]:
    """What whoever uses an engine of this process must know."""
    if os.geteuid() != 0:
        return ()
    return ("Chromium runs without its sandbox, since the broker runs as root: run the broker as an ordinary user",)


def find_engine(
    *, headed: bool, chosen: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """The engine that was chosen, else the system's, else the newest one that Playwright has fetched."""
    if chosen is not None:
        return chosen if chosen.exists() else None
    places = CHROMIUMS if headed else HEADLESS_SHELLS + CHROMIUMS
    for place in places:
        if Path(place).exists():
            return Path(place)
    found = shutil.which("chromium") or shutil.which("google-chrome")
    return Path(found) if found else _fetched(headed=headed, environment=environment)


def _fetched(*, headed: bool, environment: Mapping[str, str]) -> Path | None:
    """What ``playwright install chromium`` has left."""
    chosen = environment.get("PLAYWRIGHT_BROWSERS_PATH", "")
    cache = Path(chosen) if chosen and chosen != "0" else Path.home() / ".cache" / "ms-playwright"
    whole, shell = "chromium-*/chrome-linux*/chrome", "chromium_headless_shell-*/chrome-*/*headless*shell"
    for pattern in (whole,) if headed else (shell, whole):
        there = [path for path in cache.glob(pattern) if os.access(path, os.X_OK)]
        if there:
            return max(there, key=lambda path: path.stat().st_mtime)
    return None


def identify(pid: int, profile: str, root: Path = Path("/proc")) -> EngineProcess | None:
    """Who a process with this profile is now; None when it is gone, or dead and not yet collected."""
    try:
        fields = (root / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return EngineProcess(pid, int(fields[19]), int(fields[2]), profile)


def memory_available(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes the machine can still give; a very large number where that can't be read."""
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 1 << 62


class Watch:
    """A tiny process that ends the engine when we are gone, even after kill -9."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def over(cls, engine: EngineProcess, environment: Mapping[str, str] = os.environ) -> "Watch":
        """Start to watch over one engine."""
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _WATCH,
            "lomi-engine-watch",
            str(engine.pid),
            str(engine.started),
            engine.profile,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": environment.get("PATH", "/usr/bin:/bin")},
        )
        return cls(process)

    async def finish(self) -> None:
        """Let it see the engine off; returns when engine and watch are gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
