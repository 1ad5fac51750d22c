"""Reads the head of a proxy request, strictly: what could be read in two ways is refused, not guessed."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from browser.egress.framing import Framing
from browser.egress.origin import DEFAULT_PORTS, HostSpellingError, split_authority
from browser.egress.request_headers import MalformedHeadError, RequestHeaders, read_request_headers

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/([0-9]\.[0-9])")
_ABSOLUTE = re.compile(rb"(?i:http)://([^/?#@\\]+)(/[^#]*)?")


class RequestHead(msgspec.Struct, frozen=True, kw_only=True):
    """One request, ready to be judged and passed on.

    Attributes:
        method: As sent.
        host: Canonical host.
        port: Effective port.
        authority: Host and port as sent.
        path: Origin form of the target; empty for CONNECT.
        headers: What its header lines say.
    """

    method: str
    host: str
    port: int
    authority: str
    path: str
    headers: RequestHeaders

    @property
    def tunnel(self) -> bool:
        """Whether this asks for a tunnel."""
        return self.method == "CONNECT"

    @property
    def framing(self) -> Framing:
        """How the body ends."""
        return self.headers.framing

    @property
    def document(self) -> bool:
        """Whether the engine marked it as a navigation."""
        return self.headers.document

    def wire(self) -> bytes:
        """Return the head as it goes to the server."""
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (self.method.encode(), self.path.encode(), self.headers.forwarded)


def parse_request_head(head: bytes, *, read: Callable[[bytes], RequestHeaders] = read_request_headers) -> RequestHead:
    """Read one whole head, its empty line included.

    Raises:
        MalformedHeadError: As `read_request_headers`; or a target that is not in absolute form (authority form for
            CONNECT), userinfo, an odd spelling of the host, or a Host that differs from the target.
    """
    line, _, block = head.partition(b"\r\n")
    match = _LINE.fullmatch(line)
    if match is None:
        raise MalformedHeadError("not a request line")
    method, target, version = match.groups()
    if version != b"1.1":
        raise MalformedHeadError("not HTTP/1.1", 505)
    headers = read(block)
    if method == b"CONNECT":
        if headers.bodied:
            raise MalformedHeadError("CONNECT with a body")
        authority, path, default_port = target.decode(), "", None
    else:
        absolute = _ABSOLUTE.fullmatch(target)
        if absolute is None:
            raise MalformedHeadError("the target is not an absolute http URL without userinfo and fragment")
        authority, path, default_port = absolute[1].decode(), (absolute[2] or b"/").decode(), DEFAULT_PORTS["http"]
    try:
        host, port = split_authority(authority, default_port)
        named = split_authority(headers.host, default_port or port)
    except HostSpellingError as error:
        raise MalformedHeadError(str(error)) from None
    if named != (host, port):
        raise MalformedHeadError("Host differs from the target")
    return RequestHead(method=method.decode(), host=host, port=port, authority=authority, path=path, headers=headers)
