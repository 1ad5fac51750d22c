"""The demo's own temporary home and project, its policy, and the environment of the processes that it starts."""

import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LABEL = "demo"
PHONE = "phone-1"
IMAGE = "paper-36"
SCOPES = (
    *("workspace.read", "panel.create", "panel.focus", "panel.close", "files.read", "artifact.import"),
    *("android.read", "android.control", "android.interact", "android.observe", "android.capture"),
    *("android.launch", "android.logs", "android.install"),
    *("browser.navigate", "browser.read", "browser.interact", "browser.capture_composite"),
)
_MOST_ROOT = 24
"""Characters of the temporary folder's path: the sockets below the home must stay under the kernel's 107."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Folders of one run; `token` is the agent's, of which the policy holds only the hash."""

    root: Path
    token: str

    @property
    def home(self) -> Path:
        """The state of this run's broker."""
        return self.root / "home"

    @property
    def project(self) -> Path:
        """The project that the broker opens."""
        return self.root / "shop"

    @property
    def scratch(self) -> Path:
        """The temporary folder of the broker and what it starts; they must leave it empty."""
        return self.root / "t"

    @property
    def policy(self) -> Path:
        """The policy file."""
        return self.root / "policy.toml"

    @property
    def journal(self) -> Path:
        """The phone's own record."""
        return self.home / "devices" / "avd" / f"{PHONE}.avd" / "paper-journal.jsonl"

    def evidence(self) -> list[Path]:
        """Artifacts that are neither a picture nor the app: last words of an emulator that ended."""
        stored = (self.home / "agent-control" / "artifacts").glob("*")
        return [path for path in stored if path.is_file() and path.suffix not in (".png", ".apk")]

    def broker_environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment of the broker: ours with this home, and with bytecode allowed, else starts are slow."""
        kept = {n: v for n, v in given.items() if not n.startswith("LOMI_") and n != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "LOMI_HOME": str(self.home), "TMPDIR": str(self.scratch)}

    def agent_environment(self) -> dict[str, str]:
        """What an agent host passes to the helper, beside the few variables that the SDK passes on."""
        return {"LOMI_HOME": str(self.home), "LOMI_CLIENT_LABEL": LABEL, "LOMI_CLIENT_TOKEN": self.token}


def _policy_text(token: str, origin: str, packages: tuple[str, ...], scopes: tuple[str, ...], idle_s: int) -> str:
    digest = hashlib.sha256(token.encode()).hexdigest()
    return (
        f"version = 1\n\n[[device]]\nname = {json.dumps(PHONE)}\nimage = {json.dumps(IMAGE)}\n\n"
        f"[[client]]\nlabel = {json.dumps(LABEL)}\ntoken_sha256 = {json.dumps(digest)}\n"
        f'scopes = {json.dumps(list(scopes))}\nworkspaces = ["*"]\ndevices = {json.dumps([PHONE])}\n'
        f"packages = {json.dumps(list(packages))}\norigins = {json.dumps([origin])}\nlease_idle_s = {idle_s}\n"
        'decide = ["lomi_android_install_apk"]\n'
    )


def _parent() -> str:
    """The temporary folder, unless its path is so long that a socket below it would not fit."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _MOST_ROOT or not os.access("/tmp", os.W_OK) else "/tmp"  # noqa: S108 mkdtemp follows


@contextmanager
def opened_place() -> Iterator[Place]:
    """Make the folders; removed with the context."""
    root = Path(tempfile.mkdtemp(prefix="lomi-demo-", dir=_parent()))
    try:
        place = Place(root=root, token=secrets.token_urlsafe(32))
        place.home.mkdir(mode=0o700)
        place.project.mkdir()
        place.scratch.mkdir(mode=0o700)
        yield place
    finally:
        shutil.rmtree(root, ignore_errors=True)


def write_policy(
    place: Place, origin: str, packages: tuple[str, ...], *, scopes: tuple[str, ...] = SCOPES, lease_idle_s: int = 300
) -> None:
    """Write the policy file, for this user only.

    It has one phone, and one client that may use it, one web origin, and install what was asked for.
    """
    descriptor = os.open(place.policy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(_policy_text(place.token, origin, packages, scopes, lease_idle_s))
