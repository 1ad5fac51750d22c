"""What kind of address this is: the question that decides whether a grant has to name it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
AddressKind: TypeAlias = Literal[
    "public", "loopback", "unspecified", "link_local", "private", "shared", "multicast", "reserved"
]

_SHARED = IPv4Network("100.64.0.0/10")
_RELAY = IPv4Network("192.88.99.0/24")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
# Prefixes that route to an IPv4 host chosen by the name's owner, or only inside a site: never taken for public.
_TUNNELS = (IPv6Network("64:ff9b:1::/48"), IPv6Network("2002::/16"), IPv6Network("2001::/32"), IPv6Network("5f00::/16"))


def embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 host a mapped, NAT64 or IPv4-compatible address leads to, or None."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def address_kind(address: Address) -> AddressKind:
    """Return the kind of `address`, judged by the host it really leads to."""
    if isinstance(address, IPv6Address):
        inner = embedded_ipv4(address)
        if inner is not None:
            return address_kind(inner)
        if any(address in tunnel for tunnel in _TUNNELS) or address.is_site_local:
            return "reserved"
    elif address in _SHARED:
        return "shared"
    elif address in _RELAY or int(address) >> 24 == 0:
        return "unspecified" if address.is_unspecified else "reserved"
    if address.is_unspecified:
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    if address.is_multicast:
        return "multicast"
    if address.is_link_local:
        return "link_local"
    if address.is_reserved:
        return "reserved"
    return "public" if address.is_global else "private"
