"""A foreground `lomi up` that has nobody to ask: what it says, and what its clients are told."""

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import World, opened_world

LOMI = Path(sys.executable).with_name("lomi")


@pytest.fixture
def world() -> Iterator[World]:
    """A home without a broker."""
    with opened_world("", start=False) as made:
        yield made


BEHIND = """
import os, signal, sys
shell = os.fork()
if shell == 0:
    os.setpgid(0, 0)
    os.execv(sys.argv[1], sys.argv[1:])
os.waitpid(shell, 0)
"""
"""A shell's `&`: the command in a process group behind the one that has the terminal."""


def _up(world: World, kind: str) -> "tuple[subprocess.Popen[str], list[int]]":
    command, opened, more = [str(LOMI), "up", str(world.project)], [], {}
    if kind == "closed":
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    elif kind == "pipe":
        read, write = os.pipe()
        os.close(write)
        opened, more = [read], {"stdin": read}
    elif kind == "background":
        master, slave = pty.openpty()
        # The outer process takes the terminal as its own and is in front.
        take = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n" + BEHIND
        command, opened, more = [sys.executable, "-c", take, *command], [master, slave], {"stdin": slave}
    else:
        path = "/dev/null" if kind == "null" else str(world.project / "lomi.txt")
        if kind == "file":
            Path(path).write_text("y\n" * 9, encoding="utf-8")
        file = os.open(path, os.O_RDONLY)
        opened, more = [file], {"stdin": file}
    return _started(world, command, more.get("stdin")), opened


def _started(world: World, command: list[str], given: int | None) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command,
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=world.environment(),
        start_new_session=True,
    )


class _Held:
    """One end of a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("null", "standard input is no terminal"),
        ("file", "standard input is no terminal"),
        ("closed", "standard input is closed"),
        ("background", "lomi up runs in the background"),
        ("pipe", "standard input has ended"),
    ],
)
async def test_where_nobody_can_be_asked_every_client_is_declined(world: World, kind: str, why: str) -> None:
    """It says so with a hint when it is up; the first client and the second read "declined"; nothing is a fault."""
    process, opened = _up(world, kind)
    try:
        assert process.stdout is not None
        assert "Lomi is up" in process.stdout.readline()
        for _ in range(2):
            ran = world.command("call", "lomi_workspace_list")
            assert ran.code == 1
            assert ran.err.splitlines()[-2:] == [
                "Error: the pairing was declined, or nobody answered in time",
                "hint: ask the person at the broker, then try again",
            ]
        assert world.command("down").code == 0
        _, said = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait(10)
        for descriptor in opened:
            os.close(descriptor)
    assert "does not document" not in said
    assert said.count("declined\n") == 1
    assert f"nobody can be asked, {why}: every pairing is declined\nhint: `lomi up --headless --policy FILE`" in said
    assert said.count(f"declined: nobody can be asked, {why}\n") == 2


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_input_that_ends_under_a_question_declines_it_at_once(world: World, kind: str) -> None:
    """The other end goes while the question stands: it is declined with the cause, and so is the next client."""
    ours, theirs = socket.socketpair() if kind == "socket" else map(_Held, reversed(os.pipe()))
    process = _started(world, [str(LOMI), "up", str(world.project)], theirs.fileno())
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "Lomi is up" in process.stdout.readline()
        asking = world.launch(("call", "lomi_workspace_list"))
        said = ""
        while "Approve?" not in said:
            said += process.stderr.readline()
        ours.close()
        assert asking.wait() == 1
        assert asking.stderr().splitlines()[-2] == "Error: the pairing was declined, or nobody answered in time"
        assert world.command("call", "lomi_workspace_list").code == 1
        assert world.command("down").code == 0
        rest = process.communicate(timeout=20)[1]
    finally:
        process.kill()
        process.wait(10)
        theirs.close()
    assert rest.count("declined: nobody can be asked, standard input has ended\n") == 2
