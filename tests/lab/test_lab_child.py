"""A pytest process that is ended while it hangs: what it shows before, however late it comes to its turn."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from harness.process import process_state
from harness.waiting import until
from lab import lab_runs

from lomi.lab.child import ChildOrder, opened_child
from lomi.lab.witness import TESTS

HANGING = """
import pathlib, threading
def test_hangs():
    pathlib.Path("hangs").touch()
    threading.Event().wait()
"""


@pytest.mark.timeout(120)
async def test_a_hung_process_is_killed_once_it_has_shown_where_it_hangs(tmp_path: Path) -> None:
    """Stopped when it is asked, as on a machine that lets it wait: it is waited for, and its place is in the log."""
    (tmp_path / "test_one.py").write_text(HANGING, encoding="utf-8")
    tests = tmp_path / "tests.json"
    tests.write_text('["test_one.py::test_hangs"]', encoding="utf-8")
    environment = lab_runs.environment_of(tmp_path, **{TESTS: str(tests)})
    log = tmp_path / "log"
    async with opened_child(ChildOrder(("-q", "test_one.py"), tmp_path, environment, log)) as child:
        await until((tmp_path / "hangs").exists, 60)
        os.kill(child.pid, signal.SIGSTOP)
        await until(lambda: process_state(child.pid) == "T")
        async with asyncio.TaskGroup() as tasks:
            ending = tasks.create_task(child.end(show=True))
            await asyncio.wait({ending}, timeout=1.0)
            assert not ending.done()
            os.kill(child.pid, signal.SIGCONT)
    assert "in test_hangs" in log.read_text()
    assert child.exit_code == -signal.SIGUSR1
