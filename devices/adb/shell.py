"""Shell calls on a device: quoting, one-shot calls, and a lane that keeps one shell open for the hot paths."""

import asyncio
import struct
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass

from devices.adb.wire import AdbClient, AdbStream
from devices.faults import ChannelLost
from devices.world import World

_STDIN, _STDOUT, _STDERR, _EXIT = 0, 1, 2, 3
_HEAD = struct.Struct("<BI")
_KEPT_SHELL = "shell,v2,raw:"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a device command wrote and its exit code."""

    out: bytes
    err: bytes
    code: int

    @property
    def text(self) -> str:
        """Standard output decoded with replacement characters."""
        return self.out.decode("utf-8", "replace")

    @property
    def words(self) -> str:
        """Both outputs, for messages and matching of failures."""
        return f"{self.text}\n{self.err.decode('utf-8', 'replace')}".strip()


def quote(word: str) -> str:
    """One literal argument for the device's shell, whatever it holds.

    Raises:
        ValueError: NUL and line breaks cannot be passed through a line-driven shell.
    """
    if any(char in word for char in "\0\n\r"):
        raise ValueError("a device argument holds NUL or a line break")
    return "'" + word.replace("'", "'\\''") + "'"


class ShellLane:
    """One shell of one device kept open; commands run one after the other, in arrival order.

    A command that outlives its deadline, or whose caller goes away, takes the shell with it: the next command opens a
    fresh one. Nothing is ever sent twice.
    """

    def __init__(self, client: AdbClient, serial: str, world: World) -> None:
        self._client = client
        self._serial = serial
        self._world = world
        self._turn = asyncio.Lock()
        self._stack: AsyncExitStack | None = None
        self._stream: AdbStream | None = None

    async def run(
        self,
        line: str,
        *,
        within: float,
        limit: int = 1 << 20,
        effect: AbstractAsyncContextManager[None] | None = None,
        check: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Run one shell line and answer with its outputs and exit code.

        `effect` is entered when the shell is ready and the next thing is the command's first byte; `check` judges the
        answer before it is left.

        Raises:
            ChannelLost: effect none when the shell could not be opened, unknown once the line was sent.
        """
        async with self._turn:
            stream = await self._ready()
            mark = f"~{self._world.token()}~"
            clean = True
            try:
                async with effect or nullcontext():
                    clean = False
                    # $? must be read before anything else; the second echo lines up the two outputs.
                    command = f"{line}\necho {mark}$?\necho {mark} >&2\n".encode()
                    stream.writer.write(_HEAD.pack(_STDIN, len(command)) + command)
                    answer = await self._answer(stream, mark.encode(), within=within, limit=limit)
                    clean = True
                    if check is not None:
                        check(answer)
                    return answer
            finally:
                if not clean:
                    await self._drop()

    async def close(self) -> None:
        """Close the kept shell; waits for a running command."""
        async with self._turn:
            await self._drop()

    def abandon(self) -> None:
        """Cut the kept shell at once; a running command fails with channel_lost."""
        if self._stream is not None:
            self._stream.writer.close()

    async def _ready(self) -> AdbStream:
        if self._stream is not None and (self._stream.reader.at_eof() or self._stream.writer.is_closing()):
            await self._drop()
        if self._stream is None:
            stack = AsyncExitStack()
            self._stream = await stack.enter_async_context(self._client.open(self._serial, _KEPT_SHELL))
            self._stack = stack
        return self._stream

    async def _drop(self) -> None:
        stack, self._stack, self._stream = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def _answer(self, stream: AdbStream, mark: bytes, *, within: float, limit: int) -> Answer:
        collected = {_STDOUT: bytearray(), _STDERR: bytearray()}
        try:
            async with asyncio.timeout(within):
                await stream.writer.drain()
                while True:
                    kind, body = await _packet(stream, most=limit + 256)
                    if kind == _EXIT:
                        raise ChannelLost("channel_lost", "the device's shell ended", effect="unknown")
                    if kind not in collected:
                        continue
                    collected[kind] += body
                    if len(collected[kind]) > limit + 256:
                        raise ChannelLost("channel_lost", "more output than allowed", effect="unknown")
                    if (done := _finished(collected[_STDOUT], collected[_STDERR], mark)) is not None:
                        return done
        except TimeoutError:
            raise ChannelLost("adb_timeout", "no answer in time", effect="unknown") from None
        except (asyncio.IncompleteReadError, OSError) as broken:
            raise ChannelLost("channel_lost", f"the stream broke: {broken}", effect="unknown") from broken


async def _packet(stream: AdbStream, *, most: int) -> tuple[int, bytes]:
    kind, size = _HEAD.unpack(await stream.reader.readexactly(_HEAD.size))
    if size > most:
        raise ChannelLost("channel_lost", "more output than allowed", effect="unknown")
    return kind, await stream.reader.readexactly(size)


def _only(body: bytes) -> int:
    if len(body) != 1:
        raise ChannelLost("channel_lost", "an exit code of another length", effect="unknown")
    return body[0]


def _finished(out: bytearray, err: bytearray, mark: bytes) -> Answer | None:
    """The answer once both outputs carry the mark; only the tail is searched, as the mark comes last."""
    tail = bytes(out[-(len(mark) + 8) :])
    at = tail.rfind(mark)
    if at < 0 or not tail.endswith(b"\n") or mark not in err[-(len(mark) + 2) :]:
        return None
    code = tail[at + len(mark) :].strip()
    if not code.isdigit():
        raise ChannelLost("channel_lost", "an exit code that is no number", effect="unknown")
    return Answer(bytes(out[: len(out) - len(tail) + at]), bytes(err[: err.rfind(mark)]), int(code))


async def run_once(client: AdbClient, serial: str, line: str, *, within: float, limit: int = 1 << 20) -> Answer:
    """Run one shell line on a connection of its own: for rare and long calls.

    Raises:
        ChannelLost: effect none before the service opened, unknown afterwards.
    """
    out, err = bytearray(), bytearray()
    async with client.open(serial, f"shell,v2,raw:{line}") as stream:
        try:
            async with asyncio.timeout(within):
                while True:
                    kind, body = await _packet(stream, most=limit)
                    if kind == _EXIT:
                        return Answer(bytes(out), bytes(err), _only(body))
                    (out if kind == _STDOUT else err).extend(body)
                    if len(out) + len(err) > limit:
                        raise ChannelLost("channel_lost", "more output than allowed", effect="unknown")
        except TimeoutError:
            raise ChannelLost("adb_timeout", "no answer in time", effect="unknown") from None
        except (asyncio.IncompleteReadError, OSError) as broken:
            raise ChannelLost("channel_lost", f"the stream broke: {broken}", effect="unknown") from broken
