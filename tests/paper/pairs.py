"""Ports that a test hands to a phone or a server, which binds them a moment later: nobody else takes them till then."""

import functools
import socket

from devices.actor.ports import PortPairs

_FIRST, _PORTS, _SHARES = 20000, 400, 20
"""Below the ports that the kernel hands out by itself, to whoever connects somewhere."""


@functools.cache
def port_pairs() -> PortPairs:
    """The pairs of this process: each test process has a share of its own for as long as it lives."""
    for share in range(_SHARES):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0lomi-test-ports-{share}")
        except OSError:
            claim.close()
            continue
        claim.detach()
        first = _FIRST + share * _PORTS
        return PortPairs(first, first + _PORTS - 2)
    raise AssertionError(f"{_SHARES} test processes hold all port pairs of this machine")
