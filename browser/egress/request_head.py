"""Reads the head of a proxy request, strictly: what could be read in two ways is refused, not guessed."""

from __future__ import annotations

import re

import msgspec

from browser.egress.framing import CHUNKED, Framing
from browser.egress.origin import DEFAULT_PORTS, HostSpellingError, split_authority

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(
    rb"(" + _TOKEN + rb") ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])\r\n"
    rb"((?:" + _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n"
)
_ABSOLUTE = re.compile(rb"(?i:http)://([^/?#@\\]+)(/[^#]*)?")
# Chromium marks each navigation of a page or frame so; the second only towards places it trusts (https, loopback).
_DOCUMENT = re.compile(
    rb"^(?:upgrade-insecure-requests:[ \t]*1|sec-fetch-mode:[ \t]*(?:nested-)?navigate)[ \t]*\r$",
    re.IGNORECASE | re.MULTILINE,
)
_LENGTH = re.compile(rb"[0-9]{1,15}")

# Read by this hop and never passed on.
_HOP = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"te", b"upgrade", b"proxy-authorization"))
# Read by this hop and passed on.
_READ = frozenset((b"host", b"transfer-encoding", b"content-length"))


class MalformedHeadError(ValueError):
    """Raised when a request head is not one unambiguous HTTP/1.1 proxy request. `status` is the answer to give."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class RequestHead(msgspec.Struct, frozen=True, kw_only=True):
    """One request, ready to be judged and passed on.

    Attributes:
        method: As sent.
        host: Canonical host.
        port: Effective port.
        authority: Host and port as sent.
        path: Origin form of the target; empty for CONNECT.
        forwarded: The header lines to pass on, each with its line end.
        framing: How the body ends.
        document: The engine marked it as a navigation.
        authorization: The Proxy-Authorization value, or empty.
        close: The client asked for the connection to end after this exchange.
    """

    method: str
    host: str
    port: int
    authority: str
    path: str
    forwarded: bytes
    framing: Framing
    document: bool
    authorization: bytes
    close: bool

    @property
    def tunnel(self) -> bool:
        """Whether this asks for a tunnel."""
        return self.method == "CONNECT"

    def wire(self) -> bytes:
        """Return the head as it goes to the server."""
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (self.method.encode(), self.path.encode(), self.forwarded)


class _Headers:
    """The headers this hop reads, gathered in one pass over the lines."""

    __slots__ = ("authorization", "close", "hosts", "kept", "lengths", "listed", "transfer")

    def __init__(self, block: bytes) -> None:
        self.hosts: list[bytes] = []
        self.lengths: list[bytes] = []
        self.transfer: list[bytes] = []
        self.listed: set[bytes] = set()
        self.authorization = b""
        self.close = False
        kept = []
        for line in block.split(b"\r\n"):
            name, _, value = line.partition(b":")
            key = name.lower()
            if key in _HOP:
                self._read_hop(key, value.strip(b" \t"))
                continue
            if key in _READ:
                self._read(key, value.strip(b" \t"))
            kept.append(line)
        if self.listed:
            kept = [line for line in kept if line.partition(b":")[0].lower() not in self.listed]
        self.kept = b"\r\n".join(kept)

    def _read_hop(self, key: bytes, value: bytes) -> None:
        if key == b"proxy-authorization":
            if self.authorization:
                raise MalformedHeadError("two Proxy-Authorization headers")
            self.authorization = value
        elif key in (b"connection", b"proxy-connection"):
            options = {option.strip(b" \t").lower() for option in value.split(b",")}
            self.close = self.close or b"close" in options
            self.listed |= options - {b"close", b"keep-alive", b""}
            if self.listed & {b"host", b"content-length", b"transfer-encoding"}:
                raise MalformedHeadError("Connection names a header that frames or routes the request")

    def _read(self, key: bytes, value: bytes) -> None:
        if key == b"host":
            self.hosts.append(value)
        elif key == b"content-length":
            self.lengths.append(value)
        else:
            self.transfer.append(value)

    def framing(self) -> Framing:
        if self.transfer:
            if self.lengths:
                raise MalformedHeadError("both Content-Length and Transfer-Encoding")
            if len(self.transfer) > 1 or self.transfer[0].lower() != b"chunked":
                raise MalformedHeadError("a Transfer-Encoding other than one `chunked`", 501)
            return CHUNKED
        if not self.lengths:
            return 0
        if len(self.lengths) > 1 or not _LENGTH.fullmatch(self.lengths[0]):
            raise MalformedHeadError("more than one Content-Length, or not a number")
        return int(self.lengths[0])


def asks_for_document(headers: bytes) -> bool:
    """Say whether header lines mark a navigation of a page or a frame, embedded objects included."""
    return _DOCUMENT.search(headers) is not None


def parse_request_head(head: bytes, *, most_headers: int = 256) -> RequestHead:
    """Read one whole head, its empty line included.

    Raises:
        MalformedHeadError: Bare line feeds, folded lines, control characters, a target that is not in absolute form
            (authority form for CONNECT), userinfo, an odd spelling of the host, none or several Host headers, a Host
            that differs from the target, or a body that could be framed in two ways.
    """
    match = _HEAD.fullmatch(head)
    if match is None:
        raise MalformedHeadError("not a request head")
    method, target, major, minor, block = match.groups()
    if (major, minor) != (b"1", b"1"):
        raise MalformedHeadError("not HTTP/1.1", 505)
    if block.count(b"\r\n") > most_headers:
        raise MalformedHeadError("too many headers", 431)
    headers = _Headers(block)
    framing = headers.framing()
    if method == b"CONNECT":
        if framing != 0 or headers.lengths:
            raise MalformedHeadError("CONNECT with a body")
        authority, path, default_port = target.decode(), "", None
    else:
        absolute = _ABSOLUTE.fullmatch(target)
        if absolute is None:
            raise MalformedHeadError("the target is not an absolute http URL without userinfo and fragment")
        authority, path, default_port = absolute[1].decode(), (absolute[2] or b"/").decode(), DEFAULT_PORTS["http"]
    if len(headers.hosts) != 1:
        raise MalformedHeadError("none or several Host headers")
    try:
        host, port = split_authority(authority, default_port)
        named = split_authority(headers.hosts[0].decode("latin-1"), default_port or port)
    except HostSpellingError as error:
        raise MalformedHeadError(str(error)) from None
    if named != (host, port):
        raise MalformedHeadError("Host differs from the target")
    return RequestHead(
        method=method.decode(),
        host=host,
        port=port,
        authority=authority,
        path=path,
        forwarded=headers.kept,
        framing=framing,
        document=asks_for_document(block),
        authorization=headers.authorization,
        close=headers.close,
    )
