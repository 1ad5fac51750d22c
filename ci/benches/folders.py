"""Where the benches keep what they make for a run."""

import tempfile

_MOST = 30
"""Characters of its path: sockets lie below it, and theirs must fit into the kernel's 107."""


def short_parent() -> str:
    """The temporary folder, which is this run's own and goes with it; `/tmp` where its path is long."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _MOST else "/tmp"
