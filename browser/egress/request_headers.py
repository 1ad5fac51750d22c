"""Reads the header lines of a proxy request in one pass: what frames it, what routes it, what is passed on."""

from __future__ import annotations

import re

import msgspec

from browser.egress.framing import CHUNKED, Framing

_BLOCK = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n")
# Chromium marks each navigation of a page or frame so; the second only towards places it trusts (https, loopback).
_DOCUMENT = re.compile(
    rb"^(?:upgrade-insecure-requests:[ \t]*1|sec-fetch-mode:[ \t]*(?:nested-)?navigate)[ \t]*\r$",
    re.IGNORECASE | re.MULTILINE,
)
_LENGTH = re.compile(rb"[0-9]{1,15}")
_BLANK = b" \t"

# Read by this hop and never passed on.
_HOP = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"te", b"upgrade", b"proxy-authorization"))
# Read by this hop and passed on.
_READ = frozenset((b"host", b"transfer-encoding", b"content-length"))


class MalformedHeadError(ValueError):
    """Raised when a request head is not one unambiguous HTTP/1.1 proxy request. `status` is the answer to give."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class RequestHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """What this hop takes from the header lines of one request.

    Attributes:
        host: The one Host value.
        forwarded: The lines to pass on, each with its line end.
        framing: How the body ends.
        bodied: A header speaks of a body, be it an empty one.
        document: The engine marked it as a navigation.
        authorization: The Proxy-Authorization value, or empty.
        close: The client asked for the connection to end after this exchange.
    """

    host: str
    forwarded: bytes
    framing: Framing
    bodied: bool
    document: bool
    authorization: bytes
    close: bool


def asks_for_document(lines: bytes) -> bool:
    """Say whether header lines mark a navigation of a page or a frame, embedded objects included."""
    return _DOCUMENT.search(lines) is not None


def read_request_headers(block: bytes, *, most: int = 256) -> RequestHeaders:
    """Read header lines, the empty line at their end included.

    Raises:
        MalformedHeadError: Bare line feeds, folded lines, control characters, more than `most` lines, none or several
            Host headers, two credentials, or a body that could be framed in two ways.
    """
    if _BLOCK.fullmatch(block) is None:
        raise MalformedHeadError("not header lines")
    lines = block[:-2].split(b"\r\n")[:-1]
    if len(lines) > most:
        raise MalformedHeadError("too many headers", 431)
    values: dict[bytes, list[bytes]] = {}
    kept: list[bytes] = []
    for line in lines:
        name, _, value = line.partition(b":")
        key = name.lower()
        hop = key in _HOP
        if hop or key in _READ:
            values.setdefault(key, []).append(value.strip(_BLANK))
        if not hop:
            kept.append(line)
    options = _connection_options(values)
    listed = options - {b"close", b"keep-alive", b""}
    if listed & _READ:
        raise MalformedHeadError("Connection names a header that frames or routes the request")
    if listed:
        kept = [line for line in kept if line.partition(b":")[0].lower() not in listed]
    hosts, credentials = values.get(b"host", []), values.get(b"proxy-authorization", [])
    if len(hosts) != 1 or len(credentials) > 1:
        raise MalformedHeadError("none or several Host headers, or several credentials")
    return RequestHeaders(
        host=hosts[0].decode("latin-1"),
        forwarded=b"\r\n".join([*kept, b""]),
        framing=_framing(values),
        bodied=b"content-length" in values or b"transfer-encoding" in values,
        document=asks_for_document(block),
        authorization=credentials[0] if credentials else b"",
        close=b"close" in options,
    )


def _connection_options(values: dict[bytes, list[bytes]]) -> set[bytes]:
    given = values.get(b"connection", []) + values.get(b"proxy-connection", [])
    return {option.strip(_BLANK).lower() for value in given for option in value.split(b",")}


def _framing(values: dict[bytes, list[bytes]]) -> Framing:
    lengths, codings = values.get(b"content-length", []), values.get(b"transfer-encoding", [])
    if codings:
        if lengths:
            raise MalformedHeadError("both Content-Length and Transfer-Encoding")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise MalformedHeadError("a Transfer-Encoding other than one `chunked`", 501)
        return CHUNKED
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise MalformedHeadError("more than one Content-Length, or not a number")
    return int(lengths[0])


class HeaderReader:
    """Reads header lines and remembers them: an engine sends the same ones again and again.

    One belongs to one context and goes with it, since what it remembers holds cookies and the credential.
    """

    __slots__ = ("_known",)

    _MOST_BLOCKS = 128
    _LONGEST_BLOCK = 4_096

    def __init__(self) -> None:
        self._known: dict[bytes, RequestHeaders] = {}

    def read(self, block: bytes) -> RequestHeaders:
        """See `read_request_headers`."""
        found = self._known.get(block)
        if found is None:
            found = read_request_headers(block)
            if len(block) <= self._LONGEST_BLOCK:
                if len(self._known) >= self._MOST_BLOCKS:
                    self._known.clear()
                self._known[block] = found
        return found
