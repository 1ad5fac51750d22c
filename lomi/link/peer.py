"""Who is at the other end of a socket."""

import socket
import struct
from typing import NamedTuple


class Peer(NamedTuple):
    """The process that connected, as the kernel recorded it; `pid` is 0 where the system does not say."""

    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end of a Unix socket."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, uid, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(pid, uid)
    # LOCAL_PEERCRED (macOS, the BSDs) begins a struct xucred: version, uid.
    _version, uid = struct.unpack("Ii", connection.getsockopt(0, 1, 8))
    return Peer(0, uid)
