"""One run in which everything goes wrong that can go wrong without phones, and how every test of it is told."""

import re
from collections import Counter
from itertools import pairwise
from xml.etree import ElementTree as Xml

import pytest
from lab import lab_runs
from lab.lab_runs import Ended

from lomi.lab.report.lanes import lane_times
from lomi.lab.report.saving import JUNIT

pytestmark = pytest.mark.timeout(180)
"""Whole runs: seconds each, and more on a machine that does much else."""
PLAN = """
name = "crashes & <others>"
workers = 2
[shards]
count = 1
[retries]
failed = 1
infra = 1
[deadlines]
test_s = 8
[[quarantine]]
test = "*test_in_quarantine"
reason = "QA-7 <b>"
[[quarantine]]
test = "*test_of_yesterday"
reason = "gone"
"""
KILLED = """
import os, signal
def test_1(): pass
def test_2(): os.kill(os.getpid(), signal.SIGKILL)
def test_3(): pass
def test_4(): pass
def test_5(): os._exit(0)
"""
HANGING = """
import pytest, time
@pytest.fixture
def hanging():
    yield
    time.sleep(600)
def test_hangs_in_teardown(hanging): pass
def test_after_it(): pass
"""
"""It hangs in its sleep until the lab ends it, by the deadline of the plan."""
PLAIN = """
import pathlib, pytest
@pytest.fixture
def broken(): raise RuntimeError("no fixture")
def test_fixture(broken): pass
@pytest.mark.skip(reason="not today")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_expected(): assert 0
@pytest.mark.xfail(strict=True)
def test_unexpected(): pass
def test_flaky():
    seen = pathlib.Path("seen")
    if not seen.exists():
        seen.touch()
        pytest.fail("the first time")
def test_in_quarantine(): assert 0
"""
"""Every outcome that pytest knows: skipped, and failing or passing where a failure is expected, are what is tested."""
HOSTILE = """
import pytest
NAMES = ["</title><script>alert(1)</script>", "a\\x00b\\x1b[2J", "\\u202egnp", "::error::x%0A", "\\U0001f600 \\u65e5"]
@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    print("::error::out of a log", name)
    assert name == "]]> <img src=x onerror=alert(1)>\\x00\\x0b", name
"""
FILES = {
    "tests/test_a_killed.py": KILLED,
    "tests/test_b_hanging.py": HANGING,
    "tests/test_c_plain.py": PLAIN,
    "tests/test_d_hostile.py": HOSTILE,
}
STATES = {
    "test_1": "passed",
    "test_2": "infra_error",
    "test_3": "passed",
    "test_4": "passed",
    "test_5": "infra_error",
    "test_hangs_in_teardown": "failed",
    "test_after_it": "passed",
    "test_fixture": "failed",
    "test_skipped": "not_run",
    "test_expected": "passed",
    "test_unexpected": "failed",
    "test_flaky": "passed",
    "test_in_quarantine": "failed",
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    root = tmp_path_factory.mktemp("lab")
    plan = lab_runs.write_project(root, PLAN, FILES)
    return lab_runs.run(plan, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(root.parent))


def test_every_planned_test_has_one_state(ended: Ended) -> None:
    """18 tests are planned, 18 have a state; the exit code is that of the lab's own failure."""
    report = ended.report
    found = {test.id.partition("::")[2]: test.state for test in report.tests if "[" not in test.id}
    assert found == STATES, ended.err
    assert sum(report.counts.values()) == len(report.tests) == 18
    assert ended.code == report.exit_code == 3
    assert "18 tests planned" in ended.err


def test_a_killed_worker_costs_its_own_test_alone(ended: Ended) -> None:
    """Rows 37 and 38: SIGKILL in test 2 of 5 is an error of the lab in test 2; the others ran, each once."""
    killed, left = ended.test("::test_2"), ended.test("::test_5")
    assert [attempt.reason for attempt in killed.attempts] == [
        "the worker was ended by SIGKILL while this test ran"
    ] * 2
    assert [attempt.reason for attempt in left.attempts] == ["the worker exited with 0 while this test ran"] * 2
    for name in ("::test_1", "::test_3", "::test_4"):
        assert [attempt.verdict for attempt in ended.test(name).attempts] == ["passed"]


def test_a_hung_teardown_ends_on_time_and_shows_where_it_hung(ended: Ended) -> None:
    """The deadline of a test holds in its teardown; what comes after it still runs."""
    hung = ended.test("::test_hangs_in_teardown").attempts[0]
    assert hung.verdict == "failed"
    assert hung.reason == "over its deadline of 8 s, in its teardown"
    assert "test_b_hanging.py" in hung.output
    assert "in hanging" in hung.output


def test_attempts_are_kept_apart(ended: Ended) -> None:
    """A retry runs in a shard of its own, and the failed attempt stays beside the one that passed."""
    flaky = ended.test("::test_flaky")
    assert flaky.flaky
    assert [(one.attempt, one.verdict) for one in flaky.attempts] == [(1, "failed"), (2, "passed")]
    shards = {shard.number: shard for shard in ended.report.shards}
    assert shards[flaky.attempts[1].shard].tests == (flaky.id,)
    assert all(shard.tests for shard in ended.report.shards)


def test_quarantine_runs_reports_and_does_not_decide(ended: Ended) -> None:
    """The test failed, is shown as such with its reason, and a rule that means nothing is a warning."""
    assert ended.test("::test_in_quarantine").quarantine == "QA-7 <b>"
    assert ended.report.warnings == ("the quarantine of *test_of_yesterday means no test of this plan",)


def test_times_add_up(ended: Ended) -> None:
    """Row 34: what each worker's time went to adds up to the run, without a gap."""
    report = ended.report
    lanes = lane_times(report.segments)
    assert [lane.lane for lane in lanes] == ["worker 1", "worker 2"]
    for lane in lanes:
        assert lane.total_s == pytest.approx(report.wall_s, abs=0.05)
        assert lane.seconds["worker"] > 0
        mine = sorted((one for one in report.segments if one.lane == lane.lane), key=lambda one: one.began)
        assert all(one.ended == pytest.approx(two.began) for one, two in pairwise(mine))


def test_junit_counts_the_plan(ended: Ended) -> None:
    """Rows 35 and 36: one case a planned test, counts that fit, text that XML can hold."""
    (suite,) = Xml.parse(ended.folder / JUNIT).getroot()
    cases = suite.findall("testcase")
    kinds = Counter(child.tag for case in cases for child in case if child.tag != "system-out")
    counted = {name: int(suite.get(name) or -1) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": 18, "failures": kinds["failure"], "errors": kinds["error"], "skipped": kinds["skipped"]}
    assert (kinds["failure"], kinds["error"], kinds["skipped"]) == (8, 2, 2)
    assert "in quarantine" in str(Xml.tostring(suite))


def test_annotations_are_one_line_each(ended: Ended) -> None:
    """Every line is a command of ours, with the file from the repository's root; no text of a test begins another."""
    lines = ended.out.splitlines()
    assert lines[-1] == str(ended.folder)
    assert len(lines) == 1 + 10 + 1 + 1
    for line in lines[:-1]:
        assert re.fullmatch(r"::(error|warning|notice) file=[^:,]+\.py,line=\d+,title=[^:,]+::[^\r\n]*", line), line
        assert line.partition("file=")[2].startswith(f"{ended.folder.parent.name}/tests/test_")
    assert not any(line.startswith("::") for line in ended.err.splitlines())


def test_the_report_verifies_until_one_byte_changes(ended: Ended) -> None:
    """Every file is covered: whichever is changed by one bit is named."""
    assert lab_runs.verify(ended.folder, "--files-only")[0] == 0
    for path in sorted(path for path in ended.folder.rglob("*") if path.is_file() and path.stat().st_size):
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        code, said = lab_runs.verify(ended.folder, "--files-only")
        path.write_bytes(content)
        assert code == 1, path.name
        assert path.name in said
    stray = ended.folder / "attempts" / "stray.png"
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"x")
    code, said = lab_runs.verify(ended.folder, "--files-only")
    stray.unlink()
    assert (code, "attempts/stray.png was not written by the run" in said) == (1, True)
