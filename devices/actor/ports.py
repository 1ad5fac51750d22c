"""Even console ports with the adb port above them, checked by binding and held by the one who got them."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from devices.faults import LaunchRefused
from devices.spec import Ports

_FIRST, _LAST = 5600, 5898
_GRPC_ABOVE = 3000


class PortPairs:
    """Hands out port pairs of this host; one instance per process that launches devices."""

    def __init__(self, first: int = _FIRST, last: int = _LAST) -> None:
        self._candidates = range(first + first % 2, last + 1, 2)
        self._held: set[int] = set()
        # Brokers of one host look for a pair from different places, so that they seldom meet at one.
        self._next = os.getpid() % len(self._candidates)

    @contextmanager
    def hold(self, *, grpc: bool) -> Iterator[Ports]:
        """A pair (and a gRPC port when asked) that nobody listens on and no other holder has, until leaving.

        Raises:
            LaunchRefused: reason no_port when every pair is held or busy.
        """
        ports = self._pick(grpc=grpc)
        self._held.add(ports.console)
        try:
            yield ports
        finally:
            self._held.discard(ports.console)

    def _pick(self, *, grpc: bool) -> Ports:
        count = len(self._candidates)
        for step in range(count):
            console = self._candidates[(self._next + step) % count]
            ports = Ports(console, console + _GRPC_ABOVE if grpc else None)
            if console not in self._held and _all_free(ports):
                # The next search starts behind this pair: a port freed a moment ago is not handed out at once.
                self._next = (self._next + step + 1) % count
                return ports
        raise LaunchRefused("no_port", "every port pair is busy", fields={"tried": count})


def _all_free(ports: Ports) -> bool:
    wanted = (ports.console, ports.adb) if ports.grpc is None else (ports.console, ports.adb, ports.grpc)
    probes: list[socket.socket] = []
    try:
        for port in wanted:
            probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            probes.append(probe)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    else:
        return True
    finally:
        for probe in probes:
            probe.close()
