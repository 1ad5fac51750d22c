"""Bounds of the wire, as one value with two presets."""

from typing import NamedTuple

MAX_BODY = 8 << 20
"""Largest body of a frame, in bytes."""
MAX_METADATA = 64 << 10
"""Largest body of a welcome or hello, in bytes."""
MAX_ENROLMENT = 16 << 10
"""Largest body of a frame in clear, in bytes."""
MAX_CERTIFICATE = 8192
"""Largest certificate, in bytes of DER."""
MAX_SOCKET_PATH = 107
"""Longest path of a Unix socket, in bytes without the final NUL."""


class LinkLimits(NamedTuple):
    """How many, and for how many seconds.

    Attributes:
        max_connections: live connections, handshakes included.
        max_handshakes: connections that are not yet authenticated.
        handshake_queue_seconds: how long one over `max_handshakes` waits for its turn; 0 refuses it at once.
        accept_seconds: from a handshake's turn to the end of its TLS handshake; then again for the hello.
        frame_seconds: from the first byte of a frame to its last.
        send_seconds: how long the peer may leave our bytes unread.
        close_seconds: how long a parting peer may take to say goodbye.
    """

    max_connections: int = 16
    max_handshakes: int = 4
    handshake_queue_seconds: float = 0.0
    accept_seconds: float = 10.0
    frame_seconds: float = 5.0
    send_seconds: float = 20.0
    close_seconds: float = 2.0


DESKTOP = LinkLimits()
LAB = LinkLimits(max_connections=256, handshake_queue_seconds=10.0)
