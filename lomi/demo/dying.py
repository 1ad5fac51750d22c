"""Runs a command that ends with the process that started it, even when that one is killed: `python -m … COMMAND…`.

The kernel sends SIGTERM when the parent dies (Linux; elsewhere the command just runs).
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel, then become the command."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit(1)
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  no shell is meant


if __name__ == "__main__":
    main()
