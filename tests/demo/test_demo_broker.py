"""Which processes count as the broker's own."""

import os
import subprocess
import sys

from lomi.demo.broker import descendants


def test_a_child_that_has_ended_is_no_living_descendant() -> None:
    """A zombie is left out, so that nobody waits for it in vain; its living sibling is there with its start time."""
    ended = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert ended.stdout is not None
        assert ended.stdout.read() == b""
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        found = descendants(os.getpid())
        assert ended.pid not in found
        assert found[living.pid] > 0
    finally:
        living.communicate(b"\n")
        ended.communicate()
