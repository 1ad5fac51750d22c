"""The grant and its two questions, both pure: may this host be asked for, and may this address be connected to."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from browser.egress.addresses import Address, address_kind
from browser.egress.origin import HostPort, Origin, Scheme, is_localhost

RefusalReason: TypeAlias = Literal[
    "origin_not_granted",  # neither an origin nor a resource of the grant
    "document_not_granted",  # granted as a resource only, asked for as a document
    "scheme_not_granted",  # the host and port are granted under the other scheme
    "address_not_granted",  # the name led to a loopback, private or special address that the grant does not name
    "own_port",  # one of Lomi's own ports on this machine
]

_HOSTS = frozenset({"public", "loopback", "private", "shared"})
"""Kinds of address that a host of its own can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressGrant:
    """What one browser context may reach.

    Attributes:
        origins: Exact origins; documents and everything else.
        resources: Further hosts for sub-resources only, or "public": any host that leads to a public address.
        refused_ports: Lomi's own ports (workbench, broker, adb, emulators): refused on this machine even when granted.
        everywhere: Every origin, on this machine and in private networks too; what is no host's own address and our
            own ports stay refused.
    """

    origins: frozenset[Origin]
    resources: frozenset[HostPort] | Literal["public"] = frozenset()
    refused_ports: frozenset[int] = frozenset()
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """A host that may be asked for, and the addresses beyond the public ones it may lead to.

    Attributes:
        addresses: Non-public addresses granted by number, for the port in question.
        loopback: The name itself means this machine (`localhost`).
        resource: Granted for sub-resources only.
        everywhere: Any address that a host can have.
    """

    addresses: frozenset[Address] = field(default_factory=frozenset)
    loopback: bool = False
    resource: bool = False
    everywhere: bool = False


class RefusedError(Exception):
    """Raised when the grant does not admit a host or an address."""

    def __init__(self, reason: RefusalReason) -> None:
        super().__init__(reason)
        self.reason: RefusalReason = reason


class Admitter:
    """The compiled form of one grant: set look-ups for the hot path. Immutable."""

    __slots__ = ("_addresses", "_named", "_origins", "grant")

    def __init__(self, grant: EgressGrant) -> None:
        self.grant = grant
        self._origins: dict[tuple[str, int], frozenset[Scheme]] = {}
        for origin in grant.origins:
            known = self._origins.get((origin.host, origin.port), frozenset())
            self._origins[origin.host, origin.port] = known | {origin.scheme}
        resources = frozenset() if grant.resources == "public" else grant.resources
        self._named = frozenset((place.host, place.port) for place in resources)
        self._addresses: dict[int, frozenset[Address]] = {}
        for host, port in {*self._origins, *self._named}:
            try:
                address = ipaddress.ip_address(host)
            except ValueError:
                continue
            self._addresses[port] = self._addresses.get(port, frozenset()) | {address}

    def schemes(self, host: str, port: int) -> frozenset[Scheme]:
        """Return the schemes a tunnel to this place may speak: what its first bytes are held against."""
        if (host, port) in self._named or self.grant.resources == "public" or self.grant.everywhere:
            return frozenset[Scheme](("http", "https"))
        return self._origins.get((host, port), frozenset())

    def admit_host(self, scheme: Scheme | None, host: str, port: int, *, document: bool) -> Admission:
        """Judge a request before any name is resolved. `scheme` is None for a tunnel, `document` what is known.

        Raises:
            RefusedError: The grant holds no such origin and no such resource.
        """
        if self.grant.everywhere:
            return Admission(everywhere=True)
        granted = self._origins.get((host, port))
        if granted is not None and (scheme is None or scheme in granted):
            return Admission(self._addresses.get(port, frozenset()), is_localhost(host))
        named = (host, port) in self._named
        if not named and self.grant.resources != "public":
            raise RefusedError("origin_not_granted" if granted is None else "scheme_not_granted")
        if document:
            raise RefusedError("document_not_granted" if granted is None else "scheme_not_granted")
        if not named:
            return Admission(resource=True)
        return Admission(self._addresses.get(port, frozenset()), is_localhost(host), resource=True)

    def admit_address(self, admission: Admission, address: Address, port: int, *, ours: bool) -> None:
        """Judge the address a host led to. `ours` says that the address belongs to this machine.

        Raises:
            RefusedError: One of Lomi's own ports, or an address that needs a grant and has none.
        """
        if ours and port in self.grant.refused_ports:
            raise RefusedError("own_port")
        kind = address_kind(address)
        if admission.everywhere and kind in _HOSTS:
            return
        if kind == "public" or address in admission.addresses or (kind == "loopback" and admission.loopback):
            return
        raise RefusedError("address_not_granted")
