"""What a person granted to one session, as a frozen value, and the questions the broker asks of it."""

from urllib.parse import urlsplit

import msgspec

EVERY = "*"
_DEFAULT_PORT = {"http": 80, "https": 443}


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Scopes and targets of one session. A `*` in a set of targets stands for every present and future one.

    `resources` are hosts (`host:port`, or `public`) that pages may load sub-resources from. `lease_idle_s` 0
    means never. `decide` are the tools whose decisions the policy takes. `decider` says who granted: prompt,
    workbench, policy.
    """

    scopes: frozenset[str]
    workspaces: frozenset[str]
    devices: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    conversations: frozenset[str] = frozenset()
    terminal_profile: str | None = None
    lease_idle_s: int = 0
    decide: frozenset[str] = frozenset()
    decider: str = "policy"

    def admits_workspace(self, workspace_id: str) -> bool:
        """Whether the workspace is in sight."""
        return EVERY in self.workspaces or workspace_id in self.workspaces

    def admits_device(self, device_id: str) -> bool:
        """Whether the phone is in sight."""
        return EVERY in self.devices or device_id in self.devices

    def admits_package(self, package: str) -> bool:
        """Whether an app may be launched or its log read."""
        return EVERY in self.packages or package in self.packages

    def admits_origin(self, url: str) -> bool:
        """Whether a page of this URL may be opened: `about:blank`, or an exact origin of the grant."""
        if url == "about:blank":
            return True
        origin = origin_of(url)
        return origin is not None and (EVERY in self.origins or origin in self.origins)


def origin_of(url: str) -> str | None:
    """`scheme://host[:port]` with the default port left out, or None where the URL has no plain http(s) origin."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if (
        parts.scheme not in _DEFAULT_PORT
        or not parts.hostname
        or parts.username is not None
        or parts.password is not None
    ):
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _DEFAULT_PORT[parts.scheme]) else f":{port}")
