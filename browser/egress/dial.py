"""Turns a granted host into a connection: resolve once, judge every address, connect to one that was judged."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

from browser.egress.addresses import Address, address_kind
from browser.egress.grant import Admission, Admitter, RefusedError
from browser.egress.names import Resolve
from browser.egress.origin import is_localhost

FailureReason: TypeAlias = Literal[
    "name_not_resolved", "connect_failed", "connect_timeout", "empty_response", "invalid_response", "grant_changed"
]

End = TypeVar("End", bound=asyncio.Protocol)


class DialError(Exception):
    """Raised when a granted place cannot be reached."""

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason: FailureReason = reason


class AddressRefusedError(Exception):
    """Raised when a name led only to addresses that the grant does not admit."""

    def __init__(self, refused: RefusedError, address: Address) -> None:
        super().__init__(f"{refused.reason} {address}")
        self.refused = refused
        self.address = address


class AdmitterSource(Protocol):
    """Whatever holds the grant in force."""

    @property
    def admitter(self) -> Admitter:
        """The grant in force now."""


async def system_resolve(host: str, port: int) -> Sequence[Address]:
    """Ask the system's resolver, in a thread.

    Raises:
        OSError: The name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def belongs_to_this_machine(address: Address) -> bool:
    """Say whether a connection to `address` would end on this machine. Sends nothing."""
    if address_kind(address) in ("loopback", "unspecified"):
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))
        except OSError:
            return False
        return ipaddress.ip_address(probe.getsockname()[0].partition("%")[0]) == address


async def addresses_of(host: str, port: int, resolve: Resolve) -> Sequence[Address]:
    """Return where `host` leads: itself if it is an address, loopback for localhost, else what `resolve` says.

    Raises:
        DialError: The name has no address.
    """
    try:
        return (ipaddress.ip_address(host),)
    except ValueError:
        pass
    if is_localhost(host):
        return (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
    try:
        found = await resolve(host, port)
    except (OSError, UnicodeError):
        raise DialError("name_not_resolved") from None
    if not found:
        raise DialError("name_not_resolved")
    return found


def admitted_addresses(
    admitter: Admitter, admission: Admission, found: Sequence[Address], port: int
) -> Sequence[Address]:
    """Keep the addresses that the grant admits.

    Raises:
        AddressRefusedError: It admits none; carries the last refusal.
    """
    admitted: list[Address] = []
    refused: AddressRefusedError | None = None
    for address in found:
        ours = port in admitter.grant.refused_ports and belongs_to_this_machine(address)
        try:
            admitter.admit_address(admission, address, port, ours=ours)
        except RefusedError as refusal:
            refused = AddressRefusedError(refusal, address)
        else:
            admitted.append(address)
    if not admitted and refused is not None:
        raise refused
    return admitted


async def dial(
    host: str,
    port: int,
    admission: Admission,
    *,
    source: AdmitterSource,
    resolve: Resolve,
    connect_s: float,
    protocol: Callable[[], End],
) -> tuple[End, Address]:
    """Connect to the first admitted address of `host` that answers, trying each for at most `connect_s` seconds.

    Raises:
        AddressRefusedError: No address of the host is admitted.
        DialError: The name has no address, or none of the admitted ones answers.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(connect_s):
            found = await addresses_of(host, port, resolve)
    except TimeoutError:
        raise DialError("name_not_resolved") from None
    failure: FailureReason = "connect_failed"
    for address in admitted_addresses(source.admitter, admission, found, port):
        try:
            async with asyncio.timeout(connect_s):
                # A literal address with its family given is never resolved again.
                family = socket.AF_INET if address.version == 4 else socket.AF_INET6
                _, end = await loop.create_connection(protocol, str(address), port, family=family)
        except TimeoutError:
            failure = "connect_timeout"
        except OSError:
            failure = "connect_failed"
        else:
            return end, address
    raise DialError(failure)
