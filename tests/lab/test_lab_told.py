"""What a test can do to the lines in which its process tells of it: nothing that makes a failure a pass."""

import pytest
from lab import lab_runs

from lomi.lab.outcome import WRONG_PLAN

pytestmark = pytest.mark.timeout(180)
"""Whole runs: seconds each, and more on a machine that does much else."""
LOUD = """
import os, pathlib, pytest, stat

@pytest.fixture
def broken(): raise RuntimeError("known")
@pytest.fixture
def torn():
    yield
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                os.write(int(name), b"x")
        except OSError:
            continue
    pytest.fail("in the teardown")
def test_fails_loudly():
    print("\\x01" * 200_000)
    pytest.fail("\\x01" * 200_000)
@pytest.mark.xfail(run=False, reason="known")
def test_never_called(): assert 0
@pytest.mark.xfail(reason="known")
def test_broken_as_expected(broken): pass
def test_tears_a_line(torn): pass
def test_after_them(): pass
"""


def test_no_failure_is_lost_on_its_way(tmp_path) -> None:
    """Output that JSON makes six times as long fails its test; a torn line is an error of the lab, and no pass."""
    plan = lab_runs.write_project(tmp_path, "[retries]\ninfra = 0\n", {"tests/test_loud.py": LOUD})
    ended = lab_runs.run(plan)
    found = {test.id.partition("::")[2]: test.state for test in ended.report.tests}
    assert found == {
        "test_fails_loudly": "failed",
        "test_never_called": "passed",
        "test_broken_as_expected": "passed",
        "test_tears_a_line": "infra_error",
        "test_after_them": "passed",
    }, ended.err
    (loud,) = ended.test("::test_fails_loudly").attempts
    assert loud.reason.startswith("Failed: \x01")
    assert "characters left out" in loud.output
    (torn,) = ended.test("::test_tears_a_line").attempts
    assert torn.reason == "a line in which pytest told of the test could not be read"


def test_an_id_that_can_not_be_told_is_no_test_less(tmp_path) -> None:
    """A plan is refused where one of its tests would be missing from the list."""
    text = f"import pytest\n@pytest.mark.parametrize('n', [1, 2], ids=['a', 'b' * {2 << 20}])\ndef test_a(n): pass\n"
    ended = lab_runs.run(lab_runs.write_project(tmp_path, "", {"tests/test_long.py": text}))
    assert ended.code == WRONG_PLAN
    assert "pytest listed something that could not be read" in ended.err
