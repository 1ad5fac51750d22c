"""Reads a server's answer as leniently as browsers do, and writes it anew in one strict form."""

from __future__ import annotations

import re

import msgspec

from browser.egress.framing import CHUNKED, UNTIL_CLOSE, Framing

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?")
_FOLD = re.compile(rb"\r?\n[ \t]+")
# Lines that are no header are passed over, as browsers do; what is left is a name, a value and nothing between lines.
_HEADER = re.compile(rb"^(([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00\r\n]*))\r?$", re.MULTILINE)
_LENGTH = re.compile(rb"[0-9]{1,15}")

# Answers of this hop, not of the server: a server must not be able to speak for the proxy.
_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authentication-info", b"upgrade",
     b"lomi-egress")
)  # fmt: skip
_READ = frozenset((b"content-length", b"transfer-encoding", b"content-type"))


class MalformedResponseError(ValueError):
    """Raised when a server's answer cannot be framed, or would speak for the proxy (407, 101)."""


class ResponseHead(msgspec.Struct, frozen=True, kw_only=True):
    """One answer.

    Attributes:
        status: Three digits.
        type: The media type without parameters, lower case, or empty.
        framing: How the body ends.
        keep: The server will take another request on this connection.
        wire: The head as it goes to the client.
    """

    status: int
    type: str
    framing: Framing
    keep: bool
    wire: bytes

    @property
    def interim(self) -> bool:
        """Whether the real answer is still to come."""
        return self.status < 200


def head_end(data: bytes) -> int:
    """Return where the first head in `data` ends, -1 if it does not yet; bare line feeds count as line ends."""
    end = data.find(b"\r\n\r\n")
    before = data if end < 0 else data[: end + 3]
    if b"\n\n" in before or b"\n\r\n" in before:
        match = _HEAD_END.search(data)
        return match.end() if match is not None else -1
    return end + 4 if end >= 0 else -1


def parse_response_head(head: bytes, *, method: str) -> ResponseHead:
    """Read one whole head, its empty line included.

    Raises:
        MalformedResponseError: No HTTP/1.x status line, two different lengths, an unknown transfer coding, or an answer
            that only a proxy may give.
    """
    first, _, rest = head.partition(b"\n")
    match = _STATUS.fullmatch(first.rstrip(b"\r"))
    if match is None:
        raise MalformedResponseError("not an HTTP/1.x status line")
    status = int(match[2])
    if status in (101, 407):
        raise MalformedResponseError(f"a server may not answer {status} here")
    block = _FOLD.sub(b" ", rest) if b"\n " in rest or b"\n\t" in rest else rest
    kept: list[bytes] = []
    lengths: set[bytes] = set()
    codings: list[bytes] = []
    options: set[bytes] = set()
    media_type = b""
    for line, name, value in _HEADER.findall(block):
        key = name.lower()
        if key in _HOP:
            if key == b"connection":
                options |= {option.strip(b" \t").lower() for option in value.split(b",")}
            continue
        if key in _READ:
            if key == b"content-length":
                lengths |= {part.strip(b" \t") for part in value.split(b",")}
                continue
            if key == b"transfer-encoding":
                codings.append(value.strip(b" \t").lower())
                continue
            media_type = value.partition(b";")[0].strip(b" \t").lower()
        kept.append(line)
    framing, frame_line = _frame(status, method, match[1] != b"0", lengths, codings)
    keep = framing != UNTIL_CLOSE and not (codings and lengths)
    keep = keep and (b"close" not in options if match[1] != b"0" else b"keep-alive" in options)
    if framing == UNTIL_CLOSE:
        frame_line = b"Connection: close\r\n"
    lines = b"\r\n".join(kept) + b"\r\n" if kept else b""
    return ResponseHead(
        status=status,
        type=media_type.decode("latin-1")[:128],
        framing=framing,
        keep=keep,
        wire=b"HTTP/1.1 %b %b\r\n%b%b\r\n" % (match[2], match[3] or b"", lines, frame_line),
    )


def _frame(status: int, method: str, modern: bool, lengths: set[bytes], codings: list[bytes]) -> tuple[Framing, bytes]:
    """Return how the body ends and the header line that says so."""
    if len(lengths) > 1 or any(not _LENGTH.fullmatch(length) for length in lengths):
        raise MalformedResponseError("Content-Length is not one number")
    codings = [coding for coding in codings if coding != b"identity"] if modern else []
    if any(coding != b"chunked" for coding in codings) or len(codings) > 1:
        raise MalformedResponseError("a transfer coding other than one `chunked`")
    length_line = b"Content-Length: %b\r\n" % next(iter(lengths)) if lengths and not codings else b""
    if status < 200 or status in (204, 304) or method == "HEAD":
        return 0, length_line if status >= 200 and status != 204 else b""
    if codings:
        return CHUNKED, b"Transfer-Encoding: chunked\r\n"
    if lengths:
        return int(next(iter(lengths))), length_line
    return UNTIL_CLOSE, b""
