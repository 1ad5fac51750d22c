"""Where one run of one scenario lives, and the broker process in it."""

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ending.overseer import MARK

from lomi.client.find import own_broker
from lomi.demo.broker import lomi_command

READY_S = 60.0
GONE_S = 20.0
_KEPT = ("PATH", "LANG", "HOME", "USER", "LOGNAME", "SHELL", "PYTHONPATH", "ANDROID_HOME", "ANDROID_SDK_ROOT", MARK)
PHONE = "phone-1"
SCOPES = ["workspace.read", "panel.create", "panel.focus", "panel.close", "files.read", "android.*"]


class BrokerTroubleError(Exception):
    """Raised when the broker did not start, end, or die as the scenario has it."""


class Place:
    """A home, a project, a policy, and the present broker."""

    def __init__(self, root: Path, image: str, seed: int, clients: Sequence[str]) -> None:
        self.root = root
        self.tokens = {name: hashlib.sha256(f"{root}/{name}".encode()).hexdigest() for name in clients}
        self._image = image
        self._seed = seed
        self._armed = root / "failpoint"
        self._arms = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None
        for folder in ("h", "r", "p", "t"):
            (root / folder).mkdir(mode=0o700)
        policy = root / "policy.toml"
        policy.touch(mode=0o600)
        policy.write_text(self._policy(), encoding="utf-8")

    def _policy(self) -> str:
        clients = "".join(
            f"\n[[client]]\nlabel = {json.dumps(name)}\n"
            f'token_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
            f"scopes = {json.dumps(SCOPES)}\n"
            f'workspaces = ["*"]\ndevices = ["*"]\npackages = ["*"]\nlease_idle_s = 0\n'
            for name, token in self.tokens.items()
        )
        return f'version = 1\n\n[[device]]\nname = "{PHONE}"\nimage = {json.dumps(self._image)}\n{clients}'

    def environment(self) -> dict[str, str]:
        """What every process of this place inherits."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            **kept,
            "LOMI_HOME": str(self.root / "h"),
            "XDG_RUNTIME_DIR": str(self.root / "r"),
            "TMPDIR": str(self.root / "t"),
            "PAPER_SEED": str(self._seed),
        }

    def broker(self) -> tuple[Path, str]:
        """The discovery file and its key."""
        found = own_broker(self.environment())
        return found.discovery_file, found.discovery_key

    def arm(self, failpoint: str) -> None:
        """Arm the running broker; passes count from now on."""
        beside = self._armed.with_suffix(".new")
        beside.write_text(f"{failpoint} {next(self._arms)}", encoding="ascii")
        beside.replace(self._armed)

    async def start(self) -> None:
        """Start the next broker and wait until it is ready.

        Raises:
            BrokerTroubleError: it did not become ready.
        """
        self._armed.unlink(missing_ok=True)
        command = [*lomi_command(), "up", "--headless", "--policy", str(self.root / "policy.toml")]
        with (self.root / "broker.err").open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--project",
                str(self.root / "p"),
                "--json",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**self.environment(), "LOMI_FAILPOINT": f"@{self._armed}"},
                start_new_session=True,
            )
        self._process = process
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_S):
                line = await process.stdout.readline()
        except TimeoutError:
            line = b""
        if not line:
            said = await asyncio.to_thread((self.root / "broker.err").read_text, "utf-8", "replace")
            raise BrokerTroubleError(f"the broker did not start: {' | '.join(said.strip().splitlines()[-4:])}")

    async def end(self, number: int = signal.SIGTERM, *, send: bool = True) -> int:
        """Signal the broker (unless it is to die by itself) and return its exit code.

        Raises:
            BrokerTroubleError: it lives on.
        """
        process = self._process
        if process is None:
            return 0
        if send and process.returncode is None:
            process.send_signal(number)
        try:
            async with asyncio.timeout(GONE_S):
                code = await process.wait()
        except TimeoutError as error:
            raise BrokerTroubleError("the broker did not end") from error
        self._process = None
        return code

    def processes(self, word: str = "") -> list[int]:
        """Processes that name this place in their environment and `word` in their command line."""
        mark, found = os.fsencode(self.root), []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                command = (entry / "cmdline").read_bytes() if int(entry.name) != os.getpid() else b""
                if command and word.encode() in command and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found

    async def left(self) -> list[int]:
        """What still runs here after the time that it has to go away."""
        alive: list[int] = []
        for _ in range(500):
            alive = await asyncio.to_thread(self.processes)
            if not alive:
                break
            await asyncio.sleep(0.02)
        return alive

    def sweep(self) -> list[int]:
        """Kill what is left of this place; returns what had to be killed."""
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


@contextmanager
def opened_place(image: str, seed: int, clients: Sequence[str]) -> Iterator[Place]:
    """A fresh place, removed with the context together with every process that names it."""
    usual = tempfile.gettempdir()
    # Sockets below it must fit into 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="lr-", dir=usual if len(usual) <= 30 else "/tmp")).resolve()
    place = Place(root, image, seed, clients)
    try:
        yield place
    finally:
        place.sweep()
        shutil.rmtree(root, ignore_errors=True)
