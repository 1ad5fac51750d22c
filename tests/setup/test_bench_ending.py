"""`ci/bench` told to end: one line, an exit code, and nothing of it goes on."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benches.processes import family
from harness.waiting import until

CI = Path(__file__).parents[2] / "ci"


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what the bench has started")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_bench_that_is_told_to_end_says_so_in_one_line(number: signal.Signals, code: int) -> None:
    """No traceback, 128 and the signal's number, and its broker is gone."""
    with subprocess.Popen(
        [sys.executable, "-m", "benches", "cli", "--starts", "1000"],
        env={**os.environ, "PYTHONPATH": str(CI)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            # Its broker, and one of the commands that it measures.
            asyncio.run(until(lambda: len(list(family([process.pid]))) > 2))
            started = [pid for pid in family([process.pid]) if pid != process.pid]
            # A terminal's Ctrl-C reaches all of them; a supervisor's SIGTERM only the first.
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
            _, said = process.communicate(timeout=40)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, said.splitlines()[1:]) == (code, []), said
    assert said.startswith(f"ci/bench: ended by {number.name}")
    asyncio.run(until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started)))
