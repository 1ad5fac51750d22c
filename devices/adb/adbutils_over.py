"""adbutils over our private socket, for those who know it; blocking, use it in a thread."""

import socket
from pathlib import Path

import adbutils
from adbutils._adb import AdbConnection


def client(socket_path: Path, *, step_s: float = 20.0) -> adbutils.AdbClient:
    """An adbutils client whose every connection goes to `socket_path`; it never starts a server of its own."""

    class Connection(AdbConnection):  # type: ignore[misc]
        def _safe_connect(self) -> socket.socket:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                opened.settimeout(step_s)
                opened.connect(str(socket_path))
            except OSError:
                opened.close()
                raise
            return opened

    class Client(adbutils.AdbClient):  # type: ignore[misc]
        def make_connection(self, timeout: float | None = None) -> AdbConnection:
            connection = Connection("unix", 0)
            connection.conn.settimeout(timeout or step_s)
            return connection

    return Client()
