"""Policies as text, from values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from lomi.contract.scopes import NEVER_BY_WILDCARD, SCOPES

ALL_SCOPES = tuple(scope for scope in SCOPES if scope not in NEVER_BY_WILDCARD)
"""What a wildcard gives."""


@dataclass(frozen=True, kw_only=True)
class ClientEntry:
    """One `[[client]]`. Without a token any process of this user may be it."""

    label: str
    scopes: Sequence[str] = ("*",)
    token_sha256: str | None = None
    workspaces: Sequence[str] = ("*",)
    devices: Sequence[str] = ()
    packages: Sequence[str] = ("*",)
    origins: Sequence[str] = ("http://127.0.0.1:9",)
    decide: Sequence[str] = ()
    lease_idle_s: int = 0

    def text(self) -> str:
        """The TOML of this entry. Strings of JSON are strings of TOML too."""
        browses = any(scope == "*" or scope.startswith("browser.") for scope in self.scopes)
        proof = "any_same_user = true" if self.token_sha256 is None else f'token_sha256 = "{self.token_sha256}"'
        lines = [
            "[[client]]",
            f"label = {json.dumps(self.label)}",
            f"scopes = {json.dumps(list(self.scopes))}",
            proof,
            f"workspaces = {json.dumps(list(self.workspaces))}",
            f"devices = {json.dumps(list(self.devices))}",
            f"packages = {json.dumps(list(self.packages))}",
            f"origins = {json.dumps(list(self.origins) if browses else [])}",
            f"decide = {json.dumps(list(self.decide))}",
            f"lease_idle_s = {self.lease_idle_s}",
        ]
        return "\n".join(lines) + "\n"


def policy_text(*clients: ClientEntry, phones: Sequence[str] = (), limits: dict[str, int] | None = None) -> str:
    """A whole policy; phones are `paper-36`."""
    parts = ["version = 1\n"]
    if limits:
        parts.append("[limits]\n" + "".join(f"{name} = {value}\n" for name, value in limits.items()))
    parts += [f'[[device]]\nname = "{name}"\nimage = "paper-36"\n' for name in phones]
    parts += [client.text() for client in clients]
    return "\n".join(parts)
