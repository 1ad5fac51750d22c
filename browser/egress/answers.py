"""The proxy's own answers, each marked with a header that no server can forge (it is stripped from theirs)."""

from __future__ import annotations

VERDICT_HEADER = "Lomi-Egress"
"""Header of every answer that comes from the proxy itself; its value is the refusal's or the failure's reason."""

PROVING_HOST = "egress.lomi.invalid"
"""A request for this host shows the credential and is answered by the proxy; the name exists nowhere (RFC 2606)."""

_PHRASES = {
    204: "No Content",
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}


def own_answer(status: int, reason: str, *, close: bool, with_body: bool = True) -> bytes:
    """Return a whole answer. Its body is the reason as one line of text."""
    body = b"" if status == 204 or not with_body else f"lomi egress: {reason}\n".encode()
    lines = [f"HTTP/1.1 {status} {_PHRASES[status]}", f"{VERDICT_HEADER}: {reason}", "Cache-Control: no-store"]
    if status == 407:
        lines.append('Proxy-Authenticate: Basic realm="lomi egress"')
    if status != 204:
        # Keeps even an opaque no-cors request from taking the answer for the server's.
        lines += ["Cross-Origin-Resource-Policy: same-origin", "Content-Type: text/plain"]
        lines.append(f"Content-Length: {len(body)}")
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
