"""A process on a PTY: started in a session of its own.

Named by pid and start time, ended as a group and observed gone.
"""

import asyncio
import errno
import fcntl
import os
import signal
import struct
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lomi.core.processes import ProcessName, ignores, is_alive, kernel_boot, name_of, session_members

WRITE_CHUNK = 4096
HANGUP_S = 2.0
FIRST_PAUSE_S = 0.02
PAUSE_S = 0.1
EMPTY_LOOKS = 2


def signal_group(name: ProcessName, number: int) -> None:
    """Signal the process group of a process that is proven to be the one meant; a group that is gone is fine."""
    if is_alive(name):
        try:
            os.killpg(name.pid, number)
        except ProcessLookupError:
            return


class _Job(NamedTuple):
    """A process that hears a hang-up, its group, and the program that it runs, where that shows."""

    name: ProcessName
    group: int
    program: str


def _jobs(leader: ProcessName, mark: str | None) -> set[_Job]:
    """What hears a hang-up in a session, but for its leader, and for groups of which some process ignores it."""
    members = set(session_members(leader))
    spared = {member.group for member in members if ignores(member.name.pid, signal.SIGHUP)}
    found = set()
    for name, group in members:
        if group not in spared and _is_ours(name, mark):
            program = ""
            with suppress(OSError):  # it guards its memory, as ssh-agent does
                program = str(Path(f"/proc/{name.pid}/exe").readlink())
            found.add(_Job(name, group, program))
    return found


def _is_ours(name: ProcessName, mark: str | None) -> bool:
    """Whether it may be signalled and, with a mark, was started with that in its environment."""
    try:
        os.kill(name.pid, 0)
        return mark is None or f"{mark}=".encode() in Path(f"/proc/{name.pid}/environ").read_bytes()
    except ProcessLookupError:
        return mark is None  # its group may go on
    except OSError:
        return False


def _signal(name: ProcessName, *numbers: int) -> None:
    for number in numbers:
        if is_alive(name):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(name.pid, number)


async def end_session(leader: ProcessName, mark: str | None = None) -> None:
    """Hang up on what a shell has left in its session; what is still there after 2 s is killed, for 2 s at the most.

    A shell that is killed tells its jobs nothing, and a job that has just been forked may lose the hang-up on its way
    to the program that it is to run: so each program hears it. What ignores it (nohup) stays with its process group,
    and what has left the session (setsid).

    Args:
        leader: the shell, which has just been seen to end.
        mark: where that was long ago, so that its session may have ended too and another one bear its number: a
            variable that a process must have in its environment to be taken for one of it.
    """
    told: set[_Job] = set()
    empty = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(HANGUP_S):
            # What forks and ends again and again is easily missed by one look.
            while empty < EMPTY_LOOKS:
                left = await asyncio.to_thread(_jobs, leader, mark)
                empty = 0 if left else empty + 1
                for job in left - told:
                    _signal(job.name, signal.SIGHUP, signal.SIGCONT)
                await asyncio.sleep(FIRST_PAUSE_S if left - told or empty else PAUSE_S)
                told |= left
    with suppress(TimeoutError):
        async with asyncio.timeout(HANGUP_S):
            while told:
                # With its group: by its own pid such a program is never met.
                for group in {job.group for job in told}:
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(group, signal.SIGKILL)
                await asyncio.sleep(FIRST_PAUSE_S)
                told = await asyncio.to_thread(_jobs, leader, mark)


class PtyProcess:
    """A running child and our end of its PTY. `received` gets every piece of output, `ended` the exit code once."""

    def __init__(self, master: int, slave: int, child: asyncio.subprocess.Process, name: ProcessName) -> None:
        self._master = master
        # The child opens its side by name; until it writes, ours keeps the PTY from hanging up.
        self._slave = slave
        self._child = child
        self.name = name
        self.exit_code: int | None = None
        self._sweeping = asyncio.Lock()
        self._swept = False
        self._writing = asyncio.Lock()
        self._writable = asyncio.Event()

    @classmethod
    async def start(
        cls, command: Sequence[str], *, directory: Path, environment: Mapping[str, str], columns: int, rows: int
    ) -> "PtyProcess":
        """Start `command` on a new PTY.

        Raises:
            OSError: no PTY, or no such program or directory.
        """
        master, slave = os.openpty()
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.set_blocking(master, False)
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                str(Path(__file__).with_name("pty_child.py")),
                os.ttyname(slave),
                *command,
                cwd=directory,
                env=dict(environment),
                start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except BaseException:
            os.close(master)
            os.close(slave)
            raise
        name = name_of(child.pid) or ProcessName(child.pid, 0, kernel_boot())
        return cls(master, slave, child, name)

    async def watch(self, received: Callable[[bytes], None]) -> int:
        """Pass output on until the process ends; returns its exit code (128 + n for signal n)."""
        loop = asyncio.get_running_loop()

        def take() -> None:
            try:
                content = os.read(self._master, 65536)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                content = b""
            if content:
                self._let_go_of_slave()
                received(content)
            else:
                loop.remove_reader(self._master)

        loop.add_reader(self._master, take)
        try:
            code = await self._child.wait()
            take()
            self.exit_code = code if code >= 0 else 128 - code
            return self.exit_code
        finally:
            loop.remove_reader(self._master)

    async def write(self, content: bytes) -> None:
        """Write all of it, in chunks, as the terminal takes it.

        Raises:
            OSError: the PTY is closed.
        """
        async with self._writing:
            for start in range(0, len(content), WRITE_CHUNK):
                await self._write_chunk(content[start : start + WRITE_CHUNK])

    async def _write_chunk(self, chunk: bytes) -> None:
        loop = asyncio.get_running_loop()
        while chunk:
            try:
                chunk = chunk[os.write(self._master, chunk) :]
            except BlockingIOError:
                self._writable.clear()
                loop.add_writer(self._master, self._writable.set)
                try:
                    await self._writable.wait()
                finally:
                    self._forget_writer()

    async def end(self) -> None:
        """Hang up, then kill the group; returns when the child is reaped and its session is ended (`end_session`)."""
        if self._child.returncode is None:
            signal_group(self.name, signal.SIGHUP)
            signal_group(self.name, signal.SIGCONT)
            try:
                async with asyncio.timeout(HANGUP_S):
                    await self._child.wait()
            except TimeoutError:
                signal_group(self.name, signal.SIGKILL)
                await self._child.wait()
        async with self._sweeping:
            # Once, and right after its end: later its session may be another's.
            if not self._swept:
                await end_session(self.name)
                self._swept = True

    def _let_go_of_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1

    def _forget_writer(self) -> None:
        if self._master >= 0:
            asyncio.get_running_loop().remove_writer(self._master)

    def close(self) -> None:
        """Close our end; what still runs in the session gets a hang-up from the kernel, a write that waits an error."""
        self._let_go_of_slave()
        if self._master >= 0:
            self._forget_writer()
            os.close(self._master)
            self._master = -1
            self._writable.set()
