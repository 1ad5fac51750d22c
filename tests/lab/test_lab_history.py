"""Flakiness over runs: what the report's folder remembers of earlier ones, and what a broken memory costs: nothing."""

import errno
import os
from pathlib import Path

import msgspec
import pytest
from lab import lab_runs
from lab import lab_values as values
from lab.lab_runs import Ended

from lomi.lab import run as runs
from lomi.lab.plan import parse_plan
from lomi.lab.report import history as remembering
from lomi.lab.report import saving
from lomi.lab.report.annotations import annotations
from lomi.lab.report.history import HISTORY, History, Past, read_history
from lomi.lab.report.model import RunReport, TestReport
from lomi.lab.shard import Work
from lomi.lab.shelf import FolderShelf

TESTS = {
    "tests/test_some.py": """
import os
from pathlib import Path

def test_steady(): pass

def test_fails_at_times():
    assert Path("fail").exists() is False
"""
}


def reported(number: int, *verdicts: str) -> TestReport:
    """A test that ended like this."""
    test = values.planned(number)
    attempts = tuple(
        values.attempt(Work(test=test, attempt=place), verdict, began=10.0, ended=12.0)  # type: ignore[arg-type]
        for place, verdict in enumerate(verdicts, 1)
    )
    return TestReport(number=number, id=test.id, file=test.file, line=number, state="passed", attempts=attempts)


def report_of(test: TestReport) -> RunReport:
    """A run of it alone."""
    return RunReport(
        name="lab",
        plan_sha256="0" * 64,
        engine="local",
        outcome="passed",
        exit_code=0,
        began=10.0,
        ended=12.0,
        listed_s=0.5,
        retries=0,
        tests=(test,),
    )


def said(ended: Ended, name: str) -> str:
    """What the report says of a test's last runs."""
    return ended.test(name).past


def test_failures_of_earlier_runs_are_in_the_report(tmp_path: Path) -> None:
    """Failed, then passed twice: the third report says so on its page, and its history is held by its manifest."""
    plan = lab_runs.write_project(tmp_path, "workers = 1\n", TESTS)
    (tmp_path / "fail").touch()
    first = lab_runs.run(plan)
    assert (first.code, said(first, "::test_fails_at_times")) == (1, "")
    (tmp_path / "fail").unlink()
    lab_runs.run(plan)
    third = lab_runs.run(plan)
    assert third.code == 0, third.err
    assert said(third, "::test_fails_at_times") == "failed 1 of the last 3 runs"
    assert (said(third, "::test_steady"), third.test("::test_steady").past_runs) == ("", 3)
    page = (third.folder / "report.html").read_text(encoding="utf-8")
    assert "Flaky over the last runs" in page
    assert "It failed 1 of the last 3 runs." in page
    code, told = lab_runs.verify(third.folder, "--files-only")
    assert code == 0, told
    (third.folder / HISTORY).write_bytes(b"{}")
    assert lab_runs.verify(third.folder, "--files-only")[0] != 0


def test_a_history_that_can_not_be_read_is_a_warning(tmp_path: Path) -> None:
    """The run passes, says what it found, and begins a new one."""
    plan = lab_runs.write_project(tmp_path, "workers = 1\n", TESTS)
    first = lab_runs.run(plan)
    (first.folder / HISTORY).write_bytes(b"[")
    second = lab_runs.run(plan)
    assert second.code == 0, second.err
    (warning,) = second.report.warnings
    assert "history.json can't be read, so a new history was begun" in warning
    assert second.test("::test_steady").past_runs == 1


def test_as_many_runs_and_tests_are_remembered_as_the_bounds_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten runs of a test, and of tests those of the last run first."""
    history = History()
    for number in range(14):
        history = history.with_run([reported(1, "failed" if number < 6 else "passed")])
    told = history.told(reported(1))
    assert (told.past_runs, told.past_failures, told.past) == (10, 2, "failed 2 of the last 10 runs")
    monkeypatch.setattr(remembering, "MOST_TESTS", 2)
    history = history.with_run([reported(2, "passed"), reported(3, "passed")])
    assert set(history.tests) == {values.planned(2).id, values.planned(3).id}


def test_only_passes_and_failures_count_as_runs() -> None:
    """A failure before a pass is one; errors of the lab and skips leave the past as it was, with its seconds."""
    history = History().with_run([reported(1, "failed", "passed")])
    later = history.with_run([reported(1, "infra_error")]).with_run([reported(1, "skipped")]).with_run([reported(1)])
    assert later.tests == history.tests == {values.planned(1).id: (Past(at=10.0, failed=True, seconds=2.0),)}
    assert later.seconds == {values.planned(1).id: 2.0}
    assert later.with_run([reported(2, "passed")]).seconds == {values.planned(1).id: 2.0, values.planned(2).id: 2.0}


def test_a_history_that_is_too_large_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not even parsed."""
    monkeypatch.setattr(remembering, "_MOST_BYTES", 8)
    (tmp_path / HISTORY).write_bytes(b'{"version":1,"tests":{}}')
    history, why = read_history(tmp_path)
    assert history == History()
    assert why is not None
    assert "larger than" in why


def test_a_history_that_does_not_fit_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full for it alone: the report is whole without it."""
    whole = saving.put

    def full(path: Path, content: bytes) -> str:
        if path.name == HISTORY:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, content)

    monkeypatch.setattr(saving, "put", full)
    folder = saving.prepared(tmp_path / "report")
    saving.save(report_of(reported(1, "passed")), FolderShelf(tmp_path / "shelf"), folder, History())
    assert (folder / "manifest.json").is_file()
    assert not (folder / HISTORY).exists()
    assert HISTORY not in (folder / "manifest.json").read_text(encoding="utf-8")


def test_a_run_that_is_killed_loses_nothing_of_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder was emptied for it, yet what was known is there; also where its own history does not fit."""
    known = History().with_run([reported(1, "failed", "passed")])
    folder = saving.prepared(tmp_path / "report", known)
    assert read_history(folder) == (known, None)
    folder = saving.prepared(folder, known)
    whole = saving.put

    def full(path: Path, content: bytes) -> str:
        if path.name == HISTORY:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, content)

    monkeypatch.setattr(saving, "put", full)
    saving.save(report_of(reported(1, "passed")), FolderShelf(tmp_path / "shelf"), folder, History())
    assert read_history(folder) == (known, None)
    assert HISTORY in (folder / "manifest.json").read_text(encoding="utf-8")


def test_no_file_in_its_place_is_in_a_runs_way(tmp_path: Path) -> None:
    """JSON that nests without end, and a FIFO that nobody writes to."""
    (tmp_path / HISTORY).write_bytes(b'{"more":' + b"[" * 200_000)
    history, why = read_history(tmp_path)
    assert (history, why is not None) == (History(), True)
    (tmp_path / HISTORY).unlink()
    os.mkfifo(tmp_path / HISTORY)
    history, why = read_history(tmp_path)
    assert (history, why is not None) == (History(), True)


def test_an_annotation_of_a_flaky_test_says_its_past() -> None:
    """Beside the try that passed."""
    test = msgspec.structs.replace(reported(1, "failed", "passed"), flaky=True, past_runs=4, past_failures=3)
    (line,) = annotations(report_of(test), "")
    assert line.endswith("::passed on try 2; failed 3 of the last 4 runs")


def test_timings_that_a_report_lacks_come_from_the_history(tmp_path: Path) -> None:
    """The named report is believed first."""
    (tmp_path / "last.json").write_bytes(msgspec.json.encode(report_of(reported(1, "passed"))))
    plan = parse_plan('version = 1\n[shards]\nby = "timing"\ntiming = "last.json"\n')
    past = (Past(at=0.0, failed=False, seconds=7.0),)
    history = History(tests={values.planned(1).id: past, values.planned(2).id: past})
    assert runs._earlier_seconds(plan, tmp_path, history) == {values.planned(1).id: 2.0, values.planned(2).id: 7.0}
    assert runs._earlier_seconds(parse_plan("version = 1\n"), tmp_path, history) == {}
