"""The headless broker of the demo, as a process, and what is left of it and its children after its end."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from lomi.core.processes import start_ticks
from lomi.demo.record import DemoFailedError

READY_S = 60.0
END_S = 30.0
GONE_S = 15.0
"""How long its children's end may trail the broker's own: the kernel reaps a browser's processes one by one."""


def lomi_command() -> list[str]:
    """The `lomi` of this interpreter's environment."""
    beside = Path(sys.executable).with_name("lomi")
    return [str(beside)] if beside.exists() else [sys.executable, "-c", "from lomi.cli.main import main; main()"]


class Broker:
    """A running broker; `left` names its processes that still lived after its end."""

    def __init__(self, process: asyncio.subprocess.Process, instance_id: str) -> None:
        self._process = process
        self.instance_id = instance_id
        self.exit_code: int | None = None
        self.left: tuple[str, ...] = ()

    async def gone(self) -> None:
        """Wait until it has ended, by itself or since it was asked to."""
        await self._process.wait()

    async def end(self) -> None:
        """Ask it to end and wait; the second call does nothing.

        Raises:
            DemoFailedError: it had to be killed.
        """
        if self.exit_code is not None:
            return
        family = descendants(self._process.pid)
        names = {pid: _name(pid) for pid in family}
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                self.exit_code = await self._process.wait()
        except TimeoutError as error:
            self._process.kill()
            self.exit_code = await self._process.wait()
            raise DemoFailedError(f"the broker did not end within {END_S:.0f} s and was killed") from error
        finally:
            self.left = await _left_of(family, names)


async def _left_of(family: Mapping[int, int], names: Mapping[int, str]) -> tuple[str, ...]:
    """Who of a family is still there once it has had its time, by pid and name."""
    alive = dict(family)
    for _ in range(round(GONE_S / 0.02)):
        alive = {pid: started for pid, started in alive.items() if start_ticks(pid) == started}
        if not alive:
            break
        await asyncio.sleep(0.02)
    return tuple(f"process {pid} ({names[pid]})" for pid in sorted(alive))


def _name(pid: int, root: Path = Path("/proc")) -> str:
    try:
        return (root / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:120]
    except OSError:
        return "gone since"


def descendants(pid: int, root: Path = Path("/proc")) -> dict[int, int]:
    """The living descendants of a process with their start times. Empty where there is no /proc."""
    found: dict[int, int] = {}
    waiting = [pid]
    while waiting:
        for listed in (root / str(waiting.pop())).glob("task/*/children"):
            try:
                children = [int(word) for word in listed.read_text().split()]
            except OSError:
                continue
            # One that has ended and was not waited for has no start time, and once gone would be taken for itself.
            found.update({child: ticks for child in children if (ticks := start_ticks(child, root)) is not None})
            waiting.extend(children)
    return found


@asynccontextmanager
async def opened_broker(
    policy: Path, project: Path, environment: Mapping[str, str], log: Path, *, dies_with_us: bool = False
) -> AsyncIterator[Broker]:
    """Start `lomi up --headless` and wait until it is ready; it ends with the context. Its words go to `log`.

    With `dies_with_us` it also ends when this process is killed (on Linux).

    Raises:
        DemoFailedError: it did not become ready.
    """
    before = [sys.executable, "-m", "lomi.demo.dying"] if dies_with_us else []
    command = [
        *before,
        *lomi_command(),
        "up",
        "--headless",
        "--policy",
        str(policy),
        "--project",
        str(project),
        "--json",
    ]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            start_new_session=True,
        )
    broker = Broker(process, "")
    try:
        broker.instance_id = await _ready(process, log)
        yield broker
    finally:
        await broker.end()


async def _ready(process: asyncio.subprocess.Process, log: Path) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_S):
            line = await process.stdout.readline()
    except TimeoutError as error:
        raise DemoFailedError(f"the broker was not ready within {READY_S:.0f} s") from error
    if not line:
        said = await asyncio.to_thread(log.read_text, "utf-8", "replace")
        raise DemoFailedError(f"the broker did not start: {' | '.join(said.strip().splitlines()[-4:])}")
    return str(json.loads(line)["instanceId"])
