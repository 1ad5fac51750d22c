"""The broker of a run: one that runs already, or a headless one of the run's own, started by whoever needs it first."""

import fcntl
import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import lomi
from lomi.client.errors import ToolError
from lomi.client.lab import Lab
from lomi.lab.plugin.stations import keeper_lives
from lomi.link.errors import BrokerAbsentError, LinkError

LABEL = "pytest"
READY_S = 60.0
_SCOPES = (
    *("workspace.read", "panel.create", "panel.focus", "panel.close", "files.read", "artifact.import"),
    *("android.*", "android.manage", "terminal.execute", "terminal.read"),
)
_PAGE_SCOPES = (
    *("browser.navigate", "browser.read", "browser.interact"),
    *("browser.capture_composite", "browser.download"),
)
_DECIDED = ("lomi_android_install_apk", "lomi_android_device_manage")


class NoBrokerError(Exception):
    """Raised when the run's own broker did not start; the message holds its last words."""


class NoImageError(Exception):
    """Raised when the run's phone was to be of an image that there is not; the message names those there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBroker:
    """What a broker of the run's own is to offer: phones of one image, and origins that pages may load."""

    image: str
    phones: int
    origins: tuple[str, ...]
    project: Path
    home: Path | None

    def names(self) -> tuple[str, ...]:
        """What its phones are called."""
        return tuple(f"{self.image}-{number}" for number in range(1, self.phones + 1))


def policy_text(wanted: OwnBroker, token: str) -> str:
    """The policy: phones, and one client that may use them, the origins, and terminals in the project."""
    lines = ["version = 1"]
    for name in wanted.names():
        lines += ["[[device]]", f"name = {json.dumps(name)}", f"image = {json.dumps(wanted.image)}"]
    scopes = [*_SCOPES, *(_PAGE_SCOPES if wanted.origins else ())]
    fields: Mapping[str, object] = {
        "label": LABEL,
        "token_sha256": hashlib.sha256(token.encode()).hexdigest(),
        "scopes": scopes,
        "devices": ["*"],
        "packages": ["*"],
        "origins": list(wanted.origins),
        "terminal_profile": "bash",
        "decide": list(_DECIDED),
    }
    lines += ["[[client]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items())]
    return "\n".join(lines) + "\n"


class Place:
    """How a process of the run reaches its broker; the first that finds none starts one for all."""

    def __init__(self, root: Path, run_pid: int, wanted: OwnBroker, environment: Mapping[str, str]) -> None:
        self._root = root
        self._run_pid = run_pid
        self._wanted = wanted
        self._environment = environment
        self._own: bool | None = None

    @property
    def own(self) -> bool:
        """Whether the broker is the run's own; false before the first connection."""
        return bool(self._own)

    @property
    def _home(self) -> Path:
        return self._wanted.home or self._root / "h"

    @contextmanager
    def connecting(self) -> Iterator[Lab]:
        """A connection to the broker that was found at first, or to the run's own, started if it does not run.

        Raises:
            LinkError: the broker that was found is gone, or does not accept us.
            NoBrokerError: the run's own did not start.
            ToolError: not paired, or nothing granted.
        """
        with ExitStack() as opened:
            lab = self._found(opened)
            if lab is None:
                self._own = True
                self._have_own()
                own = lomi.connect(label=LABEL, token=self._token(), home=self._home, environment=self._environment)
                lab = opened.enter_context(own)
            yield lab

    def _found(self, opened: ExitStack) -> Lab | None:
        """A connection to a broker that ran before; None where the run's own is to be used."""
        if self._own or self._begun():
            return None
        try:
            lab = opened.enter_context(lomi.connect(home=self._wanted.home, environment=self._environment))
        except BrokerAbsentError:
            # In a worker of `lomi lab run` the broker is the lab's: one that is gone is an error of the lab.
            if self._own is False or "LOMI_LAB_LEFT" in self._environment:
                raise
            return None
        except (LinkError, ToolError):
            # Another process of the run may have begun the run's own meanwhile, which takes nobody without its token.
            if self._own is False or not self._begun():
                raise
            return None
        self._own = False
        return lab

    def _begun(self) -> bool:
        """Whether a process of this run has begun to start the run's own broker."""
        return (self._root / "own").exists()

    def _token(self) -> str:
        """The token of the run's own broker. pytest shows what a failing function holds: so none of ours holds it."""
        return (self._root / "token").read_text(encoding="ascii")

    def _have_own(self) -> None:
        """See that the run's own broker runs."""
        self._root.mkdir(mode=0o700, exist_ok=True)
        (self._root / "own").touch()
        with (self._root / "start").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            token_file = self._root / "token"
            if not token_file.exists():
                _write_private(token_file, secrets.token_urlsafe(32))
            if not keeper_lives(self._root):
                self._start()

    def _start(self) -> None:
        from lomi.demo.broker import lomi_command  # noqa: PLC0415  where a broker runs already nobody needs it

        policy, ready = self._root / "policy.toml", self._root / "ready"
        policy.unlink(missing_ok=True)
        _write_private(policy, policy_text(self._wanted, self._token()))
        ready.unlink(missing_ok=True)
        (self._root / "errors").unlink(missing_ok=True)
        scratch = self._root / "t"
        scratch.mkdir(mode=0o700, exist_ok=True)
        dropped = ("PYTHONDONTWRITEBYTECODE", "LOMI_CLIENT_LABEL", "LOMI_CLIENT_TOKEN")
        kept = {name: value for name, value in self._environment.items() if name not in dropped}
        up = ["up", "--headless", "--policy", str(policy), "--project", str(self._wanted.project), "--json"]
        keeper_file = Path(__file__).with_name("keeper.py")
        keeper = subprocess.Popen(
            [sys.executable, "-I", str(keeper_file), str(self._run_pid), str(self._root), *lomi_command(), *up],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**kept, "LOMI_HOME": str(self._home), "TMPDIR": str(scratch)},
            start_new_session=True,
        )
        end = time.monotonic() + READY_S
        while not (ready.exists() and ready.read_bytes().endswith(b"\n")):
            if keeper.poll() is not None or time.monotonic() > end:
                said = _last_words(self._root / "errors")
                if (unknown := _NO_IMAGE.search(said)) is not None:
                    raise NoImageError(f"lomi: --phone: {unknown[0]}")
                raise NoBrokerError(f"the broker of this run did not start: {said}")
            time.sleep(0.01)
        _keepers.append(keeper)


_NO_IMAGE = re.compile(r"no image is named '[^|]*[^| ]")
_keepers: list["subprocess.Popen[bytes]"] = []
"""Those that this process started: kept, so that they are no unawaited children when they are garbage."""


def reap_keepers() -> None:
    """Take in those that have ended."""
    _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(text)


def _last_words(path: Path) -> str:
    try:
        said = path.read_text("utf-8", "replace").strip().splitlines()[-6:]
    except OSError:
        said = []
    return " | ".join(said) or "it said nothing"
