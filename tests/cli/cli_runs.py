"""Runs the real `lomi` as a process: with pipes, at a terminal, or in the background."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Agent, World

from lomi.client.errors import ConnectionLostError

LOMI = str(Path(sys.executable).with_name("lomi"))
WAIT_S = 40.0


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.out)


def lomi(world: World, *arguments: str, **more: str) -> Ran:
    """Run one command in a session of its own, so that it has no terminal."""
    return lomi_in(world.environment(**more), *arguments, cwd=world.root)


def lomi_in(environment: Mapping[str, str], *arguments: str, cwd: Path, said: str | None = None) -> Ran:
    """The same with any environment; `said` is its standard input."""
    ran = subprocess.run(
        [LOMI, *arguments],
        env=dict(environment),
        cwd=cwd,
        input=said or "",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        start_new_session=True,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def at_terminal(world: World, *arguments: str, answers: Sequence[tuple[str, str]] = (), **more: str) -> Ran:
    """Run one command at a terminal of its own; each answer is typed once its question has been printed."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(world.root)
        os.execve(LOMI, [LOMI, *arguments], world.environment(**more))
    printed, waiting, end = b"", list(answers), time.monotonic() + WAIT_S
    try:
        while True:
            readable, _, _ = select.select([screen], [], [], max(0.0, end - time.monotonic()))
            assert readable, f"it hung after printing {printed!r}"
            try:
                piece = os.read(screen, 4096)
            except OSError:
                break
            if not piece:
                break
            printed += piece
            if waiting and waiting[0][0].encode() in printed:
                os.write(screen, waiting.pop(0)[1].encode() + b"\n")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(screen)
    assert waiting == [], f"never asked: {printed!r}"
    return Ran(code, printed.decode(errors="replace").replace("\r\n", "\n"))


async def assert_revoked(session: Agent) -> None:
    """Its authority has ended: it is told so, or was cut off."""
    try:
        assert (await session.call("lomi_workspace_list", {})).code == "CONTROL_REVOKED"
    except ConnectionLostError:
        return


class Following:
    """A command that goes on until Ctrl-C; its lines are read as they come."""

    def __init__(self, world: World, *arguments: str, **more: str) -> None:
        self._process = subprocess.Popen(
            [LOMI, *arguments],
            env=world.environment(**more),
            cwd=world.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._read = b""

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        # By its descriptor: a buffered reader takes several lines at once, of which `select` knows nothing.
        while b"\n" not in self._read:
            readable, _, _ = select.select([self._process.stdout], [], [], WAIT_S)
            piece = os.read(self._process.stdout.fileno(), 65536) if readable else b""
            assert piece, "it printed nothing more"
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def begin(self) -> None:
        """Wait until it prints, and read nothing of it yet."""
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], WAIT_S)[0], "it printed nothing"

    def interrupt(self) -> Ran:
        """Press Ctrl-C and wait for its end."""
        self._process.send_signal(signal.SIGINT)
        out, err = self._process.communicate(timeout=WAIT_S)
        return Ran(self._process.returncode, (self._read + out).decode(), err.decode())
