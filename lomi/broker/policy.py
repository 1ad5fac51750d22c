"""The policy file of a headless broker. TOML, closed, checked as a whole before anything starts."""

import errno
import ipaddress
import os
import re
import shlex
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from lomi.contract.limits import LAB, Limits
from lomi.contract.scopes import NEVER_BY_WILDCARD, SCOPES, missing_dependencies
from lomi.core.grant import EVERY, origin_of
from lomi.core.toml_text import MalformedTomlError, read_toml

DECIDABLE = frozenset(
    {
        "lomi_panel_control",
        "lomi_project_open",
        "lomi_settings_update",
        "lomi_browser_upload",
        "lomi_android_install_apk",
        "lomi_android_setup_apply",
        "lomi_android_device_manage",
        "lomi_git_mutate",
        "lomi_chat_send",
        "lomi_files_mutate",
    }
)
MOST_BYTES = 256 * 1024
MAY_BE_ZERO = frozenset({"queue_over_bound_s"})
"""Limits whose zero means something: nothing waits."""
MOST_SECONDS = 10 * 366 * 86_400
MOST_SIZE = 1 << 50
MOST_STORED = 100_000_000
MOST_AT_ONCE = 10_000
STORED = frozenset({"receipts", "epochs", "artifacts"})
"""Limits on what lies on disk; every other count is of what is there at one time."""
_SHOWN = 80
_DEVICE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOST = r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)"
_PLACE = re.compile(_HOST + r":(?P<port>\d{1,5})", re.ASCII)
_ORIGIN = re.compile(r"(?i:https?)://" + _HOST + r"(?::(?P<port>\d{1,5}))?/?", re.ASCII)


class PolicyError(Exception):
    """Raised when a policy file can't be used; the message says where and what to do."""


class DevicePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device that the broker keeps: its name (its UUID is derived from it), and the image that it runs."""

    name: str
    image: str


class ClientPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client with this label may do, and how it proves that it is the one."""

    label: str
    scopes: tuple[str, ...]
    token_sha256: str | None = None
    any_same_user: bool = False
    workspaces: tuple[str, ...] = (EVERY,)
    devices: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    terminal_profile: str | None = None
    lease_idle_s: int = 0
    decide: tuple[str, ...] = ()

    def decided_tools(self) -> frozenset[str]:
        """The tools whose decisions the policy takes; a file may leave `lomi_` out."""
        return frozenset(name if name.startswith("lomi_") else f"lomi_{name}" for name in self.decide)

    def expanded_scopes(self) -> frozenset[str]:
        """The scopes with wildcards written out; those never bring setup, manage, settings.write or git."""
        found: set[str] = set()
        for scope in self.scopes:
            if scope in SCOPES:
                found.add(scope)
            elif scope == EVERY or scope.endswith(".*"):
                prefix = "" if scope == EVERY else scope[:-1]
                found.update(s for s in SCOPES if s.startswith(prefix) and s not in NEVER_BY_WILDCARD)
        return frozenset(found)

    def normal_origins(self) -> frozenset[str]:
        """The origins in their one spelling."""
        return frozenset(origin_of(origin) or origin for origin in self.origins)


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    version: int
    limits: Limits = LAB
    device: tuple[DevicePolicy, ...] = ()
    client: tuple[ClientPolicy, ...] = ()


def is_origin(text: str) -> bool:
    """Whether a text is an origin and nothing more: no path, query, fragment or user, and no wildcard in its host.

    A host is written as browsers write it, in ASCII.
    """
    return _is_reachable(_ORIGIN.fullmatch(text)) and origin_of(text) is not None


def _is_reachable(match: re.Match[str] | None) -> bool:
    """Whether a written host and port are of those that there can be."""
    if match is None or not 1 <= int(match["port"] or 1) <= 65_535:
        return False
    try:
        return match["address"] is None or ipaddress.IPv6Address(match["address"]) is not None
    except ValueError:
        return False


def _short(value: object) -> str:
    """A wrong value on one line, cut."""
    said = repr(value)
    return said if len(said) <= _SHOWN else said[:_SHOWN] + "…"


def _is_place(text: str) -> bool:
    """Whether a text is `public`, or a host and a port."""
    return text == "public" or _is_reachable(_PLACE.fullmatch(text))


def _most(limit: str) -> int:
    """What a limit may be at most: more is a typing error, and no machine has it."""
    if limit.endswith("_bytes"):
        return MOST_SIZE
    if limit.endswith("_s"):
        return MOST_SECONDS
    return MOST_STORED if limit in STORED else MOST_AT_ONCE


def _twice(names: list[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _faults_of_limits(limits: Limits) -> list[str]:
    faults = []
    for name, value in msgspec.to_builtins(limits).items():
        least = 0 if name in MAY_BE_ZERO else 1
        if not isinstance(value, bool) and value < least:
            faults.append(f"limits: {name} must be at least {least}, not {_short(value)}")
        elif not isinstance(value, bool) and value > _most(name):
            faults.append(f"limits: {name} must be at most {_most(name)}, not {_short(value)}")
    return faults


def _faults_of_client(client: ClientPolicy, place: str, devices: frozenset[str]) -> list[str]:
    faults: list[str] = []
    if not 1 <= len(client.label) <= 80 or any(ord(c) < 32 or ord(c) == 127 for c in client.label):
        faults.append(f"{place}: label must be 1 to 80 characters without control characters")
    if (client.token_sha256 is None) == (not client.any_same_user):
        faults.append(f"{place}: give either token_sha256 (see `lomi policy token`) or any_same_user = true")
    if client.token_sha256 is not None and (
        len(client.token_sha256) != 64 or set(client.token_sha256) - set("0123456789abcdef")
    ):
        faults.append(f"{place}: token_sha256 must be 64 lower-case hex digits; `lomi policy token` prints one")
    if client.any_same_user and client.decide:
        faults.append(f"{place}: decide can't stand with any_same_user; give the client a token")
    known = {EVERY} | {scope.split(".")[0] + ".*" for scope in SCOPES} | set(SCOPES)
    faults += [f"{place}: unknown scope {_short(scope)}" for scope in client.scopes if scope not in known]
    scopes = client.expanded_scopes()
    if "workspace.read" not in scopes:
        faults.append(f"{place}: workspace.read is needed by every client")
    faults += [f"{place}: {s} also needs {', '.join(m)}" for s, m in missing_dependencies(scopes).items()]
    faults += [f"{place}: {tool} takes no decision" for tool in sorted(client.decided_tools() - DECIDABLE)]
    faults += [
        f"{place}: no [[device]] is named {_short(n)}" for n in client.devices if n != EVERY and n not in devices
    ]
    faults += [
        f"{place}: {_short(origin)} is no origin; write scheme://host[:port]"
        for origin in client.origins
        if not is_origin(origin)
    ]
    browses = any(scope.startswith("browser.") for scope in scopes)
    if browses != bool(client.origins):
        faults.append(
            f"{place}: browser scopes and origins go together; " + ("add origins" if browses else "add scopes")
        )
    faults += [
        f"{place}: {_short(resource)} is no resource; write host:port, or public"
        for resource in client.resources
        if not _is_place(resource)
    ]
    if client.resources and not browses:
        faults.append(f"{place}: resources go with browser scopes; add scopes")
    if client.lease_idle_s < 0:
        faults.append(f"{place}: lease_idle_s must be 0 (never) or more")
    if client.lease_idle_s > MOST_SECONDS:
        faults.append(f"{place}: lease_idle_s must be at most {MOST_SECONDS}, or 0 (never)")
    return faults


def faults_of(policy: Policy) -> list[str]:
    """Everything that is wrong with a well-formed policy, in the file's order; empty when it can be used."""
    faults: list[str] = []
    if policy.version != 1:
        faults.append(f"version {_short(policy.version)} is not known; this build reads version 1")
    faults += _faults_of_limits(policy.limits)
    if len(policy.device) > policy.limits.devices > 0:
        most = policy.limits.devices
        faults.append(
            f"there are {len(policy.device)} [[device]], but limits.devices is {most}; raise it under [limits]"
        )
    faults += [
        f"device {_short(device.name)}: a name is letters, digits, '.', '_' and '-', at most 64"
        for device in policy.device
        if not _DEVICE.fullmatch(device.name)
    ]
    names = [device.name for device in policy.device]
    faults += [f"two devices are named {_short(name)}" for name in _twice(names)]
    labels = [client.label for client in policy.client]
    faults += [f"two clients are labelled {_short(label)}" for label in _twice(labels)]
    for index, client in enumerate(policy.client):
        faults += _faults_of_client(client, f"client {index + 1} ({_short(client.label)})", frozenset(names))
    return faults


def _limits(table: Any) -> Any:
    """Overrides stand on the lab preset, so that a file states only what it changes."""
    if not isinstance(table, dict):
        return table
    return {**msgspec.to_builtins(LAB), **table}


def parse_policy(text: str) -> Policy:
    """Read a policy.

    Raises:
        PolicyError: not TOML, unknown keys, wrong types, or any fault of `faults_of`.
    """
    try:
        table = read_toml(text)
        if "limits" in table:
            table["limits"] = _limits(table["limits"])
        policy = msgspec.convert(table, type=Policy)
    except MalformedTomlError as error:
        raise PolicyError(f"not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise PolicyError(str(error)) from error
    faults = faults_of(policy)
    if faults:
        raise PolicyError("\n".join(faults))
    return policy


def read_policy(path: Path) -> Policy:
    """Read the policy file at `path`; blocking.

    Raises:
        PolicyError: it can't be read, is not a plain file of this user, can be written by others, or `parse_policy`.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        why = "is a link; name the file itself" if error.errno == errno.ELOOP else error.strerror
        raise PolicyError(f"{path}: {why}") from error
    except ValueError as error:
        raise PolicyError(f"{path!r}: no path has a null character") from error
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise PolicyError(f"{path}: not a regular file")
    with os.fdopen(fd, "rb") as file:
        if found.st_uid != os.getuid():
            raise PolicyError(f"{path}: belongs to another user; copy it to a file of your own")
        if found.st_mode & 0o022:
            raise PolicyError(f"{path}: others may write it; run: chmod go-w {shlex.quote(str(path))}")
        if found.st_size > MOST_BYTES:
            raise PolicyError(f"{path}: over {MOST_BYTES} bytes")
        body = file.read(MOST_BYTES)
    try:
        return parse_policy(body.decode())
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path}: not UTF-8") from error
    except PolicyError as error:
        raise PolicyError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from error


def explain(policy: Policy) -> list[str]:
    """The policy in words, one line each."""
    lines = [f"device {device.name!r} runs image {device.image!r}" for device in policy.device]
    for client in policy.client:
        who = "proves a token" if client.token_sha256 else "ANY process of this user with that label, without a secret"
        lines.append(f"client {client.label!r}: {who}")
        lines.append("  may: " + " ".join(s for s in SCOPES if s in client.expanded_scopes()))
        lines.append("  workspaces: " + ", ".join(client.workspaces))
        for name in ("devices", "packages", "origins", "resources"):
            values = getattr(client, name)
            if values:
                lines.append(f"  {name}: " + ", ".join(values))
        idle = f"{client.lease_idle_s} s without activity" if client.lease_idle_s else "never by time"
        lines.append(f"  leases end: {idle}")
        lines.append(
            "  decides itself: "
            + (", ".join(sorted(client.decided_tools())) or "nothing; every decision is refused at once")
        )
    return lines
