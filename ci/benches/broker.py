"""A headless broker in a home of its own, and sessions before it."""

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benches.folders import short_parent
from benches.stdio import BenchFailedError, Stdio

LABEL = "bench"


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker. `root` holds all that is its own; `environment` is that of its clients, with their token."""

    root: Path
    pid: int
    environment: Mapping[str, str]
    discovery_file: Path
    discovery_key: str
    token: str


@contextmanager
def opened_broker(
    *,
    scopes: Sequence[str],
    origins: Sequence[str] = (),
    phones: Sequence[str] = (),
    image: str = "paper-36",
    more: Mapping[str, str] | None = None,
) -> Iterator[Broker]:
    """Start `lomi up --headless` with a policy for one client; it is ended with the context."""
    with tempfile.TemporaryDirectory(prefix="lb-", dir=short_parent()) as name:
        root, token = Path(name).resolve(), secrets.token_urlsafe(32)
        for folder in ("project", "home", "run"):
            (root / folder).mkdir(mode=0o700)
        policy = root / "policy.toml"
        policy.write_text(_policy(token, scopes, origins, phones, image), encoding="utf-8")
        policy.chmod(0o600)
        environment = _environment(root)
        command = [str(Path(sys.executable).with_name("lomi")), "up", "--headless", "--json"]
        command += ["--policy", str(policy), "--project", str(root / "project")]
        log = root / "broker.log"
        with (
            log.open("wb") as errors,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**environment, **(more or {})},
            ) as process,
        ):
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    raise BenchFailedError(f"the broker did not start: {log.read_text(errors='replace')[-800:]}")
                ready = json.loads(line)
                client = {**environment, "LOMI_CLIENT_LABEL": LABEL, "LOMI_CLIENT_TOKEN": token}
                yield Broker(root, process.pid, client, Path(ready["discoveryFile"]), ready["discoveryKey"], token)
            finally:
                process.terminate()
                try:
                    process.wait(40)
                except subprocess.TimeoutExpired:
                    process.kill()


def _environment(root: Path) -> dict[str, str]:
    # Without bytecode every start would compile the whole program.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        and not name.startswith(("LOMI_", "PAPER_", "ANDROID_"))
    }
    return {**kept, "LOMI_HOME": str(root / "home"), "XDG_RUNTIME_DIR": str(root / "run")}


def _policy(token: str, scopes: Sequence[str], origins: Sequence[str], phones: Sequence[str], image: str) -> str:
    lines = ["version = 1"]
    for phone in phones:
        lines += ["[[device]]", f'name = "{phone}"', f'image = "{image}"']
    lines += ["[[client]]", f'label = "{LABEL}"', f'token_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"']
    lines += [f"scopes = {json.dumps(list(scopes))}", 'workspaces = ["*"]']
    if origins:
        lines.append(f"origins = {json.dumps(list(origins))}")
    if phones:
        lines += [f"devices = {json.dumps(list(phones))}", 'packages = ["*"]']
    return "\n".join(lines) + "\n"


def helper_command() -> list[str]:
    """What an agent host starts."""
    return [str(Path(sys.executable).with_name("lomi-mcp"))]


class Session(Stdio):
    """`lomi-mcp` before a broker. Fills in what every call of a session repeats."""

    def __init__(self, broker: Broker, *, modern: bool = False, profile: str | None = None) -> None:
        command = helper_command() + (["--profile", profile] if profile else [])
        super().__init__(command, environment=broker.environment, directory=broker.root, modern=modern)
        self._count = 0
        self.revision = "0"
        self.epoch = ""
        self.workspace = ""

    @staticmethod
    def data(result: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a result's envelope."""
        data: dict[str, Any] = result["structuredContent"]["data"]
        return data

    def connect(self) -> None:
        """Find the workspace and begin to write."""
        listed = self.data(self.call("lomi_workspace_list"))
        self.workspace = listed["items"][0]["id"]
        self.revision = listed["domainRevision"]
        self.epoch = self.data(self.call("lomi_connect", workspaceId=self.workspace))["retryEpoch"]

    def read(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a call that only looks."""
        return self.call(tool, workspaceId=self.workspace, **arguments)

    def act(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The receipt of a call that acts, under a request key of its own; it must succeed."""
        self._count += 1
        return self.acted(tool, requestKey=f"k{self._count}", **arguments)

    def revised(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """As `act`, against the revision that was last seen."""
        return self.act(tool, expectedRevision=self.revision, **arguments)

    def acted(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The receipt of a call whose retry identity is in its own arguments; it must succeed."""
        data = self.data(self.call(tool, workspaceId=self.workspace, retryEpoch=self.epoch, **arguments))
        if data["state"] != "succeeded":
            raise BenchFailedError(f"{tool}: {json.dumps(data)[:800]}")
        revision = (data.get("observation") or {}).get("domainRevision")
        self.revision = revision or self.revision
        return data
