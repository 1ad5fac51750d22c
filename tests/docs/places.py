"""Commands of a page that serve until its end, each in its home, and those that a person types at a terminal."""

import contextlib
import os
import pty
import random
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from harness import World
from pages import Fence

SHELL = ["bash", "-euo", "pipefail", "-c"]
READY_S = 60.0
ADDRESS, JOIN = "10.0.0.1:8786", "8787"
"""The scheduler's address and port as the pages write them."""


def named(text: str, names: Mapping[str, str]) -> str:
    """A fence's text with this machine's names for the page's."""
    for name, value in names.items():
        text = text.replace(name, value)
    return text


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, and that the system gives to nobody who asks for any: they are used much later."""
    found: set[int] = set()
    while len(found) < count:
        port = random.SystemRandom().randrange(12_000, 20_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.add(port)
    return list(found)


class Places:
    """What runs beside a page's fences. `names` are this machine's addresses, and what was printed meanwhile."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: list[tuple[Fence, subprocess.Popen[bytes]]] = []
        port, joining = free_ports(2)
        self.names = {ADDRESS: f"127.0.0.1:{port}", JOIN: str(joining)}

    def stay(self, fence: Fence, environment: Mapping[str, str]) -> None:
        """Start a command, and wait for its word; a token that it prints is what the page calls TOKEN."""
        log = self._world.root / f"stays-{len(self._running)}"
        with log.open("wb") as told:
            process = subprocess.Popen(
                [*SHELL, "exec " + named(fence.text, self.names).strip()],
                cwd=self._world.project,
                env=self._home(fence, environment),
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append((fence, process))
        said = self._heard(process, log, fence)
        if "--join " in said:
            self.names["TOKEN"] = said.partition("--join ")[2].split()[0]

    def _home(self, fence: Fence, environment: Mapping[str, str]) -> dict[str, str]:
        if (name := fence.word("home")) is None:
            return dict(environment)
        places = {"LOMI_HOME": self._world.root / f"{name}-h", "XDG_RUNTIME_DIR": self._world.root / f"{name}-r"}
        for place in places.values():
            place.mkdir(mode=0o700, exist_ok=True)
        return {**environment, **{variable: str(place) for variable, place in places.items()}}

    @staticmethod
    def _heard(process: subprocess.Popen[bytes], log: Path, fence: Fence) -> str:
        end, word = time.monotonic() + READY_S, str(fence.word("stays"))
        while word not in (said := log.read_text(encoding="utf-8", errors="replace")):
            assert process.poll() is None, f"{fence.place} ended with {process.returncode}:\n{said}"
            assert time.monotonic() < end, f"{fence.place} never said {word!r}:\n{said}"
            time.sleep(0.05)
        return said

    def type(self, fence: Fence, environment: Mapping[str, str]) -> None:
        """Run a command at a terminal and type its word; what it switches on is switched off again."""
        assert self._at_terminal(fence.text, str(fence.word("typed")), environment) == 0, fence.place
        switched = fence.text.strip()
        if switched.endswith(" on"):
            assert self._at_terminal(switched.removesuffix("on") + "off", "", environment) == 0, fence.place

    def _at_terminal(self, text: str, word: str, environment: Mapping[str, str]) -> int:
        ours, theirs = pty.openpty()
        try:
            with subprocess.Popen(
                [*SHELL, text],
                cwd=self._world.project,
                env=dict(environment),
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            ) as process:
                os.close(theirs)
                printed = b""
                while (piece := _read(ours)) != b"":
                    printed += piece
                    if word and f"Type {word}".encode() in printed:
                        os.write(ours, word.encode() + b"\n")
                        word = ""
                return process.wait(READY_S)
        finally:
            os.close(ours)

    def end(self) -> None:
        """End what stays, the last first."""
        for fence, process in reversed(self._running):
            process.send_signal(signal.SIGTERM)
            assert process.wait(READY_S) == 0, fence.place


def _read(screen: int) -> bytes:
    readable, _, _ = select.select([screen], [], [], READY_S)
    assert readable, "it hung at its terminal"
    try:
        return os.read(screen, 4096)
    except OSError:
        return b""
