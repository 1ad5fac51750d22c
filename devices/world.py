"""What the device library takes from outside: time, sleep, randomness and process spawning."""

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self


class Child(Protocol):
    """A process we started; `wait` returns its exit code, negative for a signal."""

    @property
    def pid(self) -> int:
        """The process id."""

    @property
    def returncode(self) -> int | None:
        """The exit code, None while it runs."""

    async def wait(self) -> int:
        """Wait for the process itself, never for its pipes."""


class Spawn(Protocol):
    """Starts a process in a session of its own with stdout and stderr on the descriptor `output`."""

    async def __call__(
        self, argv: Sequence[str], *, environment: Mapping[str, str], output: int, directory: Path
    ) -> Child:
        """Start `argv`.

        Raises:
            OSError: the command cannot be started.
        """


async def spawn_process(argv: Sequence[str], *, environment: Mapping[str, str], output: int, directory: Path) -> Child:
    """Start `argv` with exactly `environment` in a session of its own; stdin is empty.

    Raises:
        OSError: the command cannot be started.
    """
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=dict(environment),
        cwd=directory,
        start_new_session=True,
    )


@dataclass(frozen=True, slots=True)
class World:
    """The outside world of the library; times are seconds, `token` gives 32 fresh hex digits."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spawn: Spawn = spawn_process
    token: Callable[[], str] = lambda: secrets.token_hex(16)


class OutputTail:
    """Reads a child's output for as long as anyone holds the pipe, and keeps only the last `limit` bytes.

    The child gets the descriptor `child_end`; whoever spawns closes it with `handed_over`. Nothing ever waits for end
    of file here: a grandchild (crashpad_handler) may hold the pipe long after the emulator is gone.
    """

    def __init__(self, limit: int = 65536) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._transport: asyncio.ReadTransport | None = None
        self._read_end, self.child_end = os.pipe()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        reader = os.fdopen(self._read_end, "rb", buffering=0)
        self._transport, _ = await loop.connect_read_pipe(lambda: _TailProtocol(self._keep), reader)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def handed_over(self) -> None:
        """Close our copy of the child's end, once."""
        if self.child_end >= 0:
            os.close(self.child_end)
            self.child_end = -1

    def close(self) -> None:
        """Stop reading and close both ends."""
        self.handed_over()
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def drain(self) -> None:
        """Take what lies in the pipe now: last words may be there before the loop has told of them."""
        if self._transport is None or self._transport.is_closing():
            return
        try:
            while chunk := os.read(self._read_end, 65536):
                self._keep(chunk)
        except (BlockingIOError, OSError):
            return

    def text(self) -> str:
        """What was kept, decoded with replacement characters."""
        return self._kept.decode("utf-8", "replace")

    def _keep(self, chunk: bytes) -> None:
        self._kept += chunk
        if len(self._kept) > self._limit:
            del self._kept[: len(self._kept) - self._limit]


class _TailProtocol(asyncio.Protocol):
    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._keep = keep

    def data_received(self, data: bytes) -> None:
        self._keep(data)
