"""Hosts and origins in the one spelling that is compared: lower case, no trailing dot, no odd forms of an address."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

Scheme: TypeAlias = Literal["http", "https"]

DEFAULT_PORTS: dict[Scheme, int] = {"http": 80, "https": 443}

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/?#@\\]+)(?::([0-9]{1,5}))?")


class HostSpellingError(ValueError):
    """Raised when a host or an origin is not in a spelling that can be compared safely."""


def canonical_host(text: str) -> str:
    """Return `text` as the host that is compared: lower case; an IPv6 address without its brackets.

    Raises:
        HostSpellingError: The host is empty, too long, ends in a dot, holds other than ASCII letters, digits, `-` and
            `_`, or is an address in decimal, octal, hexadecimal, short or scoped form.
    """
    if text.startswith("[") and text.endswith("]") and "%" not in text:
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise HostSpellingError(f"not an IPv6 address: {text!r}") from None
    host = text.lower()
    if not host.isascii():
        raise HostSpellingError(f"write the host in its xn-- form: {text!r}")
    if not host or len(host) > 253 or host.endswith("."):
        raise HostSpellingError(f"empty, too long, or ends in a dot: {text!r}")
    labels = host.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise HostSpellingError(f"not a host name: {text!r}")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise HostSpellingError(f"not an IPv4 address of four decimal numbers: {text!r}") from None
    return host


@lru_cache(maxsize=1_024)
def split_authority(text: str, default_port: int | None) -> tuple[str, int]:
    """Return the canonical host and the port of `host[:port]`.

    Raises:
        HostSpellingError: No port where `default_port` is None, a port outside 1..65535, userinfo, or a bad host.
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise HostSpellingError(f"not host and port: {text!r}")
    port = int(match[2]) if match[2] else default_port
    if port is None or not 0 < port < 65536:
        raise HostSpellingError(f"no usable port: {text!r}")
    return canonical_host(match[1]), port


def bracketed(host: str) -> str:
    """Return `host` as it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_localhost(host: str) -> bool:
    """Say whether the name means this machine by definition, whatever a name server answers (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """A canonical host and a port in 1..65535."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> HostPort:
        """Read `host:port`, an IPv6 host in brackets.

        Raises:
            HostSpellingError: As `split_authority`.
        """
        return cls(*split_authority(text, None))

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """An exact web origin: scheme, canonical host and effective port."""

    scheme: Scheme
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Origin:
        """Read `http(s)://host[:port]`: no path, query, userinfo or wildcard.

        Raises:
            HostSpellingError: Any other text.
        """
        head, separator, authority = text.partition("://")
        scheme = head.lower()
        if not separator or scheme not in DEFAULT_PORTS:
            raise HostSpellingError(f"not an http or https origin: {text!r}")
        known: Scheme = "http" if scheme == "http" else "https"
        return cls(known, *split_authority(authority, DEFAULT_PORTS[known]))

    def __str__(self) -> str:
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{bracketed(self.host)}{port}"
