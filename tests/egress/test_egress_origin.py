"""Hosts, origins and addresses: one spelling, and what counts as public."""

from __future__ import annotations

import ipaddress

import pytest

from browser.egress import HostPort, HostSpellingError, Origin
from browser.egress.addresses import address_kind
from browser.egress.origin import canonical_host


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Example.COM", "example.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::FFFF:127.0.0.1]", str(ipaddress.ip_address("::ffff:7f00:1"))),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a_b-c.example", "a_b-c.example"),
        ("1.example", "1.example"),
    ],
)
def test_a_host_has_one_spelling(text: str, canonical: str) -> None:
    """Case and the length of an IPv6 address make no difference."""
    assert canonical_host(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.",
        "localhost.",
        "example.com.", "example..com", ".example", "", "[::1%lo]", "[::1", "::1", "bücher.example", "a b", "a@b",
        "*.a",
        "a/b", "a\\b", "-a.example", "a-.example", "x" * 64, "1.2.3.4.5", "256.1.1.1", "%31.example", "foo.0x7f",
        "foo.1",
        "１２７.0.0.1",
    ],
)  # fmt: skip
def test_odd_spellings_are_refused(text: str) -> None:
    """Decimal, octal, hexadecimal, short, dotted-end, scoped and non-ASCII spellings never reach a resolver."""
    with pytest.raises(HostSpellingError):
        canonical_host(text)


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port"),
    [
        ("http://example.com", "http", "example.com", 80),
        ("https://Example.com", "https", "example.com", 443),
        ("http://127.0.0.1:8000", "http", "127.0.0.1", 8000),
        ("HTTPS://[::1]:8443", "https", "::1", 8443),
    ],
)
def test_an_origin_is_scheme_host_and_effective_port(text: str, scheme: str, host: str, port: int) -> None:
    """The default port is filled in, and the text of an origin reads back as the same one."""
    origin = Origin.parse(text)
    assert (origin.scheme, origin.host, origin.port) == (scheme, host, port)
    assert Origin.parse(str(origin)) == origin


@pytest.mark.parametrize(
    "text",
    [
        "ftp://a", "//a", "a", "http://", "http://a/", "http://a?b", "http://a#b", "http://u@a", "http://u:p@a",
        "http://*", "http://a:0", "http://a:65536", "http://a:", "http://a:1:2", "ws://a", "tauri://a", "http://[::1]x",
    ],
)  # fmt: skip
def test_other_texts_are_no_origin(text: str) -> None:
    """A path, query, userinfo, wildcard, bad port or other scheme is refused."""
    with pytest.raises(HostSpellingError):
        Origin.parse(text)


def test_a_place_needs_its_port() -> None:
    """`host:port` reads back as itself, and a host alone is no place."""
    assert str(HostPort.parse("[::1]:80")) == "[::1]:80"
    with pytest.raises(HostSpellingError):
        HostPort.parse("example.com")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("93.184.216.34", "public"), ("2606:4700::1111", "public"), ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("::1", "loopback"), ("0.0.0.0", "unspecified"), ("::", "unspecified"), ("0.1.2.3", "reserved"),
        ("10.0.0.1", "private"), ("172.16.0.1", "private"), ("192.168.1.1", "private"), ("fd00::2", "private"),
        ("169.254.169.254", "link_local"), ("fe80::1", "link_local"), ("100.64.0.1", "shared"),
        ("224.0.0.1", "multicast"), ("ff02::1", "multicast"), ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("::ffff:127.0.0.1", "loopback"), ("::ffff:10.0.0.1", "private"), ("::ffff:93.184.216.34", "public"),
        ("64:ff9b::7f00:1", "loopback"), ("64:ff9b::a9fe:a9fe", "link_local"), ("64:ff9b::5db8:d822", "public"),
        ("64:ff9b:1::1", "reserved"), ("2002:7f00:1::", "reserved"), ("2001:0:1::1", "reserved"),
        ("::127.0.0.1", "loopback"), ("fec0::1", "reserved"), ("2001:db8::1", "private"), ("192.88.99.1", "reserved"),
        ("198.18.0.1", "private"), ("192.0.2.1", "private"),
    ],
)  # fmt: skip
def test_an_address_is_judged_by_where_it_leads(text: str, kind: str) -> None:
    """Mapped and translated addresses count as the IPv4 host behind them."""
    assert address_kind(ipaddress.ip_address(text)) == kind
