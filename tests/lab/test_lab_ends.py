"""How a run ends other than by its last test: cancelled, out of time, with nothing to run, without room."""

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab import lab_runs
from lab.lab_runs import Ended

from lomi.lab.outcome import CANCELLED, DEADLINE, NOT_WRITTEN, PASSED, WRONG_PLAN
from lomi.lab.report.saving import MARK

pytestmark = pytest.mark.timeout(180)
"""Whole runs: seconds each, and more on a machine that does much else."""
SLOW = """
import pathlib, time
def test_a(): pass
def test_b():
    pathlib.Path("running").touch()
    time.sleep(600)
def test_c(): pass
"""
"""The second test is ended in its sleep, by a signal to the run or by the run's deadline."""


def project(root: Path, plan: str, **files: str) -> Path:
    return lab_runs.write_project(root, plan, {f"tests/{name}.py": text for name, text in files.items()})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_run_writes_its_report(tmp_path: Path, number: signal.Signals) -> None:
    """What had ended counts, what ran and what waited is cancelled; the running test's process is gone."""
    plan = project(tmp_path, "", test_slow=SLOW)
    process = lab_runs.launch(plan)
    assert process.stderr is not None
    heard = [process.stderr.readline()]
    while not (tmp_path / "running").exists():
        assert process.poll() is None, heard
    process.send_signal(number)
    out, err = process.communicate(timeout=50)
    ended = Ended(process.returncode, out, err, tmp_path / "lab-report")
    assert ended.code == CANCELLED, err
    assert [test.state for test in ended.report.tests] == ["passed", "cancelled", "cancelled"]
    assert ended.report.tests[1].why == f"the run was cancelled by {number.name}"
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_cancelled_while_it_lists_its_tests_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Nothing is known of any test yet, so there is no report; the listing is ended, and its folder goes."""
    listing = 'import pathlib, time\npathlib.Path("listing").touch()\ntime.sleep(600)\n'
    process = lab_runs.launch(project(tmp_path, "", test_slow=listing))
    while not (tmp_path / "listing").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(number)
    _, err = process.communicate(timeout=50)
    assert process.returncode == CANCELLED, err
    assert err == "lomi: cancelled without a report; what the run had started has been ended\n"
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in left
    assert list(tmp_path.glob("lomi-lab-*")) == []


def test_the_runs_deadline_ends_it(tmp_path: Path) -> None:
    """What did not run by then was not run, and the exit code says so."""
    ended = lab_runs.run(project(tmp_path, "[deadlines]\nrun_s = 4\n", test_slow=SLOW))
    assert ended.code == DEADLINE
    assert [test.state for test in ended.report.tests[1:]] == ["not_run", "not_run"]
    assert ended.report.tests[2].why == "the run's deadline of 4 s was over"


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({"test_none": "x = 1\n"}, (), "pytest finds no test in tests"),
        ({"test_one": "def test_a(): pass\n"}, ("--", "-k", "nothing"), "pytest finds no test in tests"),
        ({"test_bad": "import nowhere\n"}, (), "tests/test_bad.py can't be collected"),
        (
            {"test_one": "def test_a(): pass\n", "conftest": "def pytest_collection_modifyitems(items): items *= 2\n"},
            (),
            "1 ids name more than one test, so no verdict could be theirs: tests/test_one.py::test_a",
        ),
        ({"test_one": "def test_a(): pass\n"}, ("--", "--no-such-option"), "pytest could not list the tests"),
    ],
)
def test_a_plan_that_lists_no_tests_is_refused(
    tmp_path: Path, files: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    """Before anything is started: no test, tests that can't be collected, ids that name two, options that are none."""
    ended = lab_runs.run(project(tmp_path, "", **files), *arguments)
    assert ended.code == WRONG_PLAN
    assert said in ended.err
    assert not ended.folder.exists()


def test_a_folder_with_other_things_is_not_touched(tmp_path: Path) -> None:
    """A report replaces an earlier report, and nothing else."""
    plan = project(tmp_path, "", test_one="def test_a(): pass\n")
    folder = tmp_path / "lab-report"
    folder.mkdir()
    (folder / "precious").touch()
    ended = lab_runs.run(plan)
    assert (ended.code, "holds other things" in ended.err) == (WRONG_PLAN, True)
    (folder / MARK).touch()
    assert lab_runs.run(plan).code == PASSED
    assert not (folder / "precious").exists()


def test_a_report_that_does_not_fit_is_told_and_never_half_a_file(tmp_path: Path) -> None:
    """Where the disk has no room, the exit code says so, and no file holds half of what it should."""
    plan = project(
        tmp_path, "", test_many="import pytest\n@pytest.mark.parametrize('n', range(150))\ndef test_a(n): pass\n"
    )
    process = subprocess.run(
        [*lab_runs.COMMAND, "run", str(plan)],
        env=lab_runs.environment_of(tmp_path),
        check=False,
        capture_output=True,
        text=True,
        timeout=55,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (48_000, 48_000)),
    )
    assert process.returncode == NOT_WRITTEN, process.stderr
    assert "is not complete" in process.stderr
    assert "passed: 150 passed of 150" in process.stderr
    folder = tmp_path / "lab-report"
    assert {path.name for path in folder.iterdir()} == {MARK, "junit.xml"}
    assert (folder / "junit.xml").read_text().count("<testcase ") == 150


def test_tests_below_the_folder_of_pytests_configuration_are_found(tmp_path: Path) -> None:
    """Test ids count from pytest's own root; files are told from the tests' folder, in reports and to GitHub."""
    text = "import pytest\ndef test_a(): pass\ndef test_b():\n    helper()\ndef helper():\n    pytest.fail('no')\n"
    (tmp_path / "qa").mkdir()
    plan = lab_runs.write_project(tmp_path, '[tests]\nfolder = "qa"\npaths = ["."]\n', {"qa/test_one.py": text})
    ended = lab_runs.run(plan, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(tmp_path))
    passed, failed = ended.report.tests
    assert (ended.code, passed.state, failed.state) == (1, "passed", "failed")
    assert (failed.id, failed.file, failed.attempts[0].line) == ("qa/test_one.py::test_b", "test_one.py", 6)
    assert ended.out.startswith("::error file=qa/test_one.py,line=6,")


def test_two_thousand_tests_are_counted(tmp_path: Path) -> None:
    """A large plan on four shards: every test has its state, each shard its share."""
    text = "import pytest\n@pytest.mark.parametrize('n', range(2000))\ndef test_a(n): assert n != 1234\n"
    plan = project(tmp_path, "workers = 2\n[shards]\ncount = 4\n", test_many=text)
    ended = lab_runs.run(plan)
    assert ended.code == 1
    report = ended.report
    assert (len(report.tests), report.counts["passed"], report.counts["failed"]) == (2000, 1999, 1)
    assert [len(shard.tests) for shard in report.shards] == [500] * 4


def test_a_witness_alone_is_refused() -> None:
    """The module that reports to the lab does nothing in a pytest that the lab did not start."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lomi.lab.witness", "--version"],
        check=False,
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert process.returncode == 0
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lomi.lab.witness", "--collect-only", "-q", "/dev/null"],
        check=False,
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert process.returncode == 4
    assert "lomi lab run" in process.stderr
