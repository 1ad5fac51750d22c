"""The JUnit file, the transcript, and the folder that they lie in."""

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from demo import demo_runs

from lomi.demo.junit import junit
from lomi.demo.main import demo, prepared
from lomi.demo.picture import png_size
from lomi.demo.plan import PLAN
from lomi.demo.record import DemoFailedError
from lomi.demo.transcript import transcript


def test_junit_counts_what_was_not_reached_as_skipped() -> None:
    """A run that broke off has failures and skips against the whole plan, never fewer cases."""
    suite = Xml.fromstring(junit(demo_runs.run(problem="it broke", steps=4, good=False)))[0]
    assert suite.get("tests") == str(len(PLAN) + 1)
    assert (suite.get("failures"), suite.get("skipped")) == ("2", str(len(PLAN) - 4))
    assert next(suite.iter("failure")).get("message") == "it broke"
    assert len(list(suite.iter("skipped"))) == len(PLAN) - 4


def test_junit_survives_what_xml_can_not_hold() -> None:
    """Control characters of a log don't make the file unreadable."""
    whole = junit(demo_runs.run(demo_runs.HOSTILE + "\x00\ufffe", good=False))
    names = [case.get("name", "") for case in Xml.fromstring(whole).iter("testcase")]
    assert any("<script>" in name for name in names)


def test_the_transcript_holds_every_call_with_time_receipt_and_observation() -> None:
    """A reader of the JSON finds all that the page shows."""
    whole = json.loads(transcript(demo_runs.run("漢 🙂")))
    calls = [call for step in whole["steps"] for call in step["calls"]]
    assert whole["good"] is True
    assert len(calls) == len(PLAN)
    assert calls[0]["receipt"] == {"operationId": f"{1:040x}", "state": "succeeded", "effectState": "complete"}
    assert calls[0]["observation"] == {"settled": True, "lines": ["漢 🙂"]}
    assert (calls[0]["startedMs"], calls[0]["tookMs"]) == (500.0, 250.0)


def test_a_report_is_replaced_and_nothing_else_ever_is(tmp_path: Path) -> None:
    """A folder that an earlier run made is emptied; one with other things in it is refused and kept."""
    folder = prepared(tmp_path / "report")
    (folder / "old.png").touch()
    assert not (prepared(folder) / "old.png").exists()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match="holds other things"):
        prepared(theirs)
    assert (theirs / "thesis.txt").exists()


def test_a_folder_that_can_not_be_used_ends_the_demo_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so before anything starts."""
    (tmp_path / "thesis.txt").touch()
    assert demo(tmp_path, offline=True) == 1
    assert capsys.readouterr().err.startswith("lomi: the report can't be written: ")


@pytest.mark.parametrize("broken", [b"", b"GIF89a", demo_runs.png()[:-1], b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_a_picture_that_is_no_whole_png_fails_its_step(broken: bytes) -> None:
    """Half a picture is not taken for one."""
    with pytest.raises(DemoFailedError, match="no whole PNG"):
        png_size(broken)
