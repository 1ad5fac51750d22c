"""The failpoints themselves: nothing behind one is done."""

import subprocess
import sys

PROGRAM = """
import os, select, signal, threading, time
from lomi.core.failpoints import Failpoints

def one(behind):
    points = Failpoints({"LOMI_FAILPOINT": "settled:1:stop"})
    def work():
        points.reach("settled")
        os.write(behind, b"x")
    threading.Thread(target=work, daemon=True).start()
    select.select([], [], [])

passed = 0
for _ in range(20):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        one(theirs)
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(theirs)
    passed += len(os.read(ours, 1))
    os.close(ours)
print(passed)
"""


def test_a_thread_that_passes_a_point_goes_no_further() -> None:
    """The process stops there, also where its main thread is asleep and another one passes the point."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=50)
    assert (ran.stdout, ran.stderr) == ("0\n", "")
