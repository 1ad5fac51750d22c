"""What can go wrong on the wire: small exceptions, each with a `reason` from a closed list."""

from typing import Literal

FrameReason = Literal[
    "frame_empty",
    "frame_too_large",
    "frame_kind_unknown",
    "frame_kind_unexpected",
    "frame_incomplete",
    "frame_too_slow",
    "binary_without_header",
]
EnrolmentReason = Literal[
    "message_malformed",
    "version_unknown",
    "instance_unknown",
    "label_invalid",
    "certificate_invalid",
    "certificate_mismatch",
    "bytes_before_tls",
    "tls_failed",
    "foreign_user",
    "connections_full",
    "handshakes_full",
    "not_accepted",
    "too_slow",
]
DiscoveryReason = Literal["discovery_malformed", "signature_invalid", "key_invalid"]


class LinkError(Exception):
    """Base of all refusals on the wire, so that a caller can name them together; `reason` says which."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class FrameRefusedError(LinkError):
    """Raised when the peer broke the framing; the stream can't be used any more."""

    def __init__(self, reason: FrameReason) -> None:
        super().__init__(reason, f"the peer broke the framing: {reason}")


class ChannelClosedError(LinkError):
    """Raised when a frame is to be sent or received on a connection that is gone."""

    def __init__(self, message: str = "the connection is closed") -> None:
        super().__init__("connection_closed", message)


class PeerNotReadingError(LinkError):
    """Raised when the peer did not take our bytes in time; the connection was cut."""

    def __init__(self) -> None:
        super().__init__("peer_not_reading", "the peer does not read its frames")


class EnrolmentRefusedError(LinkError):
    """Raised when one side did not accept the other; nothing was asked of either yet."""

    def __init__(self, reason: EnrolmentReason) -> None:
        super().__init__(reason, f"the enrolment was refused: {reason}")
        self.refused: EnrolmentReason = reason


class DiscoveryRefusedError(LinkError):
    """Raised when the discovery file can't be trusted; `reason` may also be one of `lomi.disk.refusal.Reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, f"the discovery file was refused: {reason}")


class BrokerAbsentError(LinkError):
    """Raised when nobody listens: no discovery file (never started or stopped) or a stale one."""

    def __init__(self, reason: Literal["discovery_absent", "socket_absent"]) -> None:
        super().__init__(reason, f"no broker is there: {reason}")


class SocketPathTooLongError(LinkError):
    """Raised when no directory gives a socket path the kernel can hold."""

    def __init__(self, path: str, length: int, limit: int) -> None:
        super().__init__(
            "socket_path_too_long",
            f"the socket path {path} has {length} bytes, over the {limit} the system allows: "
            "set XDG_RUNTIME_DIR or TMPDIR to a directory with a shorter path",
        )
        self.length = length
        self.limit = limit
