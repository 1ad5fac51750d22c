"""The report's forms, made from hostile values: the page in real Chromium, JUnit in others' parsers, annotations."""

import base64
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import junitparser
import msgspec
import pytest
import pytest_asyncio
from defusedxml import ElementTree as Xml
from harness.chromium import plain_chromium
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import lab_values as values
from playwright.async_api import Browser

from lomi.lab.outcome import outcome_of
from lomi.lab.report.annotations import MOST, annotations
from lomi.lab.report.junit import junit, name_of
from lomi.lab.report.model import RunReport, ShardReport, TestReport, path_of, recorded_seconds
from lomi.lab.report.page import page
from lomi.lab.report.saving import save
from lomi.lab.shard import Artifact, Attempt, Phase, ReceiptNote, Segment
from lomi.lab.shelf import FolderShelf

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WEBP = base64.b64decode(
    "UklGRsQBAABXRUJQVlA4WAoAAAAGAAAAAQAAAAAAQU5JTQYAAAAAAAAAAABBTk1GSAAAAAAAAAAAAAEAAAAAAOgDAABWUDggMAAAADABAJ0BKg"
    "IAAQACgEIloAADcAD+73bX//wrX8rX8rV43//72C//3YL//dgv9bAAAEFOTUZEAAAAAAAAAAAAAQAAAAAA6AMAAFZQOCAsAAAAMAEAnQEqAgAB"
    "AAKAQiWgAANwAP725gf//ewX/+7Bf/7sF/sx/9etLc24gABYTVAg/AAAADx4OnhtcG1ldGEgeG1sbnM6eD0iYWRvYmU6bnM6bWV0YS8iPjxyZG"
    "Y6UkRGIHhtbG5zOnJkZj0iaHR0cDovL3d3dy53My5vcmcvMTk5OS8wMi8yMi1yZGYtc3ludGF4LW5zIyI+PHJkZjpEZXNjcmlwdGlvbiB4bWxu"
    "czp4bXA9Imh0dHA6Ly9ucy5hZG9iZS5jb20veGFwLzEuMC8iIHhtcDpDcmVhdGVEYXRlPSIxOTcwLTAxLTAxVDAwOjAwOjAwLjAwMCswMDowMC"
    "IgeG1wOkNyZWF0b3JUb29sPSJMb21pIi8+PC9yZGY6UkRGPjwveDp4bXBtZXRhPg=="
)
"""Two pixels that turn from red to blue after a second."""
EVIL = "</pre></title><script>document.title='owned'</script><img src=x onerror=alert(1)>\x00\x1b[31m\u202e::error::x"


def report_of(*tests: TestReport, name: str = "lab", trouble: str | None = None) -> RunReport:
    outcome = outcome_of(tests)
    return RunReport(
        name=name,
        plan_sha256="0" * 64,
        engine="local",
        outcome=outcome.word,
        exit_code=outcome.code,
        began=1_000.0,
        ended=1_010.0,
        listed_s=0.5,
        retries=1,
        facts=(("Machine", EVIL),),
        warnings=(EVIL,),
        tests=tests,
        shards=(
            ShardReport(number=1, host="h", tests=(), queued=1_000.0, ended=1_010.0, waited_s=1.0, trouble=trouble),
        ),
        segments=(
            Segment(host="h", lane=EVIL, part="boot", began=1_000.0, ended=1_004.0),
            Segment(host="h", lane=EVIL, part="test", began=1_004.0, ended=1_010.0, shard=1, test=EVIL),
        ),
    )


def hostile(shelf: FolderShelf) -> RunReport:
    picture = Artifact(name=f"../../{EVIL}.png", kind="picture", bytes=len(PNG), sha256=shelf.put(PNG), generation=EVIL)
    broken = Artifact(name="not.png", kind="picture", bytes=3, sha256=shelf.put(b"<b>"), operation=EVIL)
    video = Artifact(name=f"{EVIL}.webp", kind="video", bytes=len(WEBP), sha256=shelf.put(WEBP), generation=EVIL)
    no_video = Artifact(name="not.webp", kind="video", bytes=4, sha256=shelf.put(b"<b>!"), operation=EVIL)
    failed = Attempt(
        test=EVIL,
        attempt=1,
        shard=1,
        verdict="failed",
        reason=EVIL,
        detail=EVIL * 400,
        output=EVIL,
        file=EVIL,
        line=3,
        phones=(EVIL,),
        generations=(EVIL,),
        host=EVIL,
        began=1_004.0,
        ended=1_010.0,
        phases=(Phase(part="test", began=1_004.0, seconds=6.0, outcome="failed"),),
        receipts=(ReceiptNote(operation_id=EVIL, tool=EVIL, state=EVIL, effect=EVIL),),
        artifacts=(picture, broken, video, no_video),
    )
    passed = Attempt(test="b", attempt=2, shard=1, verdict="passed", began=1_000.0, ended=1_001.0)
    return report_of(
        TestReport(number=1, id=EVIL, file=EVIL, line=3, state="failed", why=EVIL, quarantine=EVIL, attempts=(failed,)),
        TestReport(number=2, id="b", file="b", line=1, state="passed", flaky=True, attempts=(failed, passed)),
        name=EVIL,
        trouble=EVIL,
    )


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[Browser]:
    async with plain_chromium() as browser:
        yield browser


async def test_the_page_is_inert_in_a_real_browser(engine: Browser, tmp_path: Path) -> None:
    """Whatever a test, a phone or a log says is shown as characters; nothing is loaded, run or restyled."""
    shelf = FolderShelf(tmp_path / "shelf")
    file = tmp_path / "report.html"
    whole = page(hostile(shelf), shelf)
    file.write_text(whole.replace("<footer>", "<script>window.owned=1</script><footer>"), encoding="utf-8")
    context = await engine.new_context()
    tab = await context.new_page()
    asked: list[str] = []
    refused: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: refused.append(message.text))
    await tab.goto(file.as_uri())
    await tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    shown = await tab.inner_text("main")
    assert await tab.evaluate("window.owned === undefined && document.title.startsWith('</pre></title>')")
    assert await tab.locator("script").count() == 1
    assert await tab.locator("[onerror], [style], iframe, object, form").count() == 0
    widths = await tab.eval_on_selector_all(
        "img", "all => Promise.all(all.map(one => one.decode().then(() => one.naturalWidth)))"
    )
    assert widths == [1, 2, 1, 2]
    assert "<script>document.title='owned'</script>" in shown
    assert "\\u202e" in shown
    assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
    assert len(refused) == 1
    assert "Content Security Policy" in refused[0]
    links = await tab.eval_on_selector_all("a[href]", "all => all.map(one => one.getAttribute('href'))")
    assert all(re.fullmatch(r"#test-\d+|attempts/\d{4}/\d+/[\w.-]+", link) for link in links)
    await context.close()


def test_two_thousand_tests_make_a_page_that_a_browser_takes(tmp_path: Path) -> None:
    """Text and pictures of a large run are bounded; what is left out says so."""
    shelf = FolderShelf(tmp_path)
    tests = [
        TestReport(
            number=number,
            id=f"t{number}",
            file="a",
            line=1,
            state="failed",
            attempts=(Attempt(test=f"t{number}", attempt=1, shard=1, verdict="failed", detail="x" * 60_000),),
        )
        for number in range(1, 2001)
    ]
    whole = page(report_of(*tests), shelf)
    assert len(whole) < 32 << 20
    assert "characters are in report.json" in whole


@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_junit_is_read_by_other_parsers_whatever_the_text(name: str, text: str) -> None:
    """A strict parser and junitparser find the counts of the plan, and the same text but for what XML can't hold."""
    attempt = Attempt(test=name, attempt=1, shard=1, verdict="failed", reason=text, detail=text, output=text)
    run = report_of(
        TestReport(number=1, id=f"tests/a.py::{name}", file="tests/a.py", line=1, state="failed", attempts=(attempt,)),
        TestReport(number=2, id="tests/a.py::lost", file="tests/a.py", line=1, state="not_run", why=text),
        TestReport(number=3, id="tests/a.py::no", file="tests/a.py", line=1, state="not_run", skipped=True, why=text),
        name=text,
    )
    content = junit(run)
    Xml.fromstring(content)
    (suite,) = junitparser.JUnitXml.fromstring(content)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 1, 1, 1)
    first, second, third = suite
    assert type(first.result[0]) is junitparser.Failure
    assert type(second.result[0]) is junitparser.Error
    assert type(third.result[0]) is junitparser.Skipped


def test_junit_names_are_pytests_own() -> None:
    """Class and name as pytest's own files have them, so that histories go on."""
    test = TestReport(number=1, id="tests/a/test_b.py::TestC::test_d[x::y/1]", file="f", line=1, state="passed")
    assert name_of(test) == ("tests.a.test_b.TestC", "test_d[x::y/1]")


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_an_annotation_is_one_command_whatever_the_text(text: str) -> None:
    """No text ends a line, a property or the command, and GitHub's own unescaping gives it back as it was shown."""
    test = TestReport(number=1, id=text, file="tests/a,b:c.py", line=3, state="failed", why=text)
    (line,) = annotations(report_of(test), "repo/")
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f\u2028\u2029]", line)
    head, _, message = line[2:].partition("::")
    assert head.startswith("error file=repo/tests/a%2Cb%3Ac.py,line=3,title=failed%3A ")
    assert head.count(",") == 2
    given_back = message.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
    assert given_back == (visible_of(text) or "failed")


def visible_of(text: str) -> str:
    from lomi.report.markup import visible

    return visible(text)


def test_annotations_are_bounded_and_quiet_where_nothing_is_wrong() -> None:
    """Passed and skipped tests get none; of very many, some are shown and the rest counted."""
    failed = [TestReport(number=n, id=f"t{n}", file="a", line=1, state="failed") for n in range(MOST + 7)]
    lines = annotations(report_of(*failed), "")
    assert len(lines) == MOST + 1
    assert lines[-1].endswith("::7 more are in the report")
    quiet = [
        TestReport(number=1, id="a", file="a", line=1, state="passed"),
        TestReport(number=2, id="b", file="a", line=1, state="not_run", skipped=True),
    ]
    assert annotations(report_of(*quiet), "") == []


def test_an_artifacts_name_never_leaves_its_attempts_folder(tmp_path: Path) -> None:
    """Names of other systems, hidden ones and endless ones become plain file names in a folder of the attempt's own."""
    shelf = FolderShelf(tmp_path / "shelf")
    run = hostile(shelf)
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "made-by-lomi-lab").touch()
    save(run, shelf, folder)
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert all(re.fullmatch(r"[\w.-]+|attempts/\d{4}/\d+/\d\d-[\w.-]+", name) for name in written)
    (test, *_) = run.tests
    assert (folder / path_of(test, test.attempts[0], test.attempts[0].artifacts[0], 1)).read_bytes() == PNG
    with pytest.raises(FileExistsError):
        save(run, shelf, folder)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("page.html", "page.html.txt"),
        ("Drawing.SVG", "Drawing.SVG.txt"),
        ("saved.xhtml", "saved.xhtml.txt"),
        ("no-ending", "no-ending.txt"),
        ("png", "png.txt"),
        ("shot.PNG", "shot.PNG"),
        ("log.txt", "log.txt"),
    ],
)
def test_what_a_browser_could_run_is_kept_as_text(name: str, kept: str) -> None:
    """A page that a test downloaded is opened from the report as its text; the report still calls it by its name."""
    attempt = Attempt(test="a", attempt=2, shard=1, verdict="failed")
    test = TestReport(number=7, id="a", file="a", line=1, state="failed", attempts=(attempt,))
    artifact = Artifact(name=name, kind="download", bytes=1, sha256="0" * 64)
    assert path_of(test, attempt, artifact, 3) == f"attempts/0007/2/03-{kept}"


def test_the_worst_that_counts_decides_the_exit_code() -> None:
    """Quarantine and skips weigh nothing; then failures, the lab's errors, a cancel, and what was not run, in order."""

    def test(state: str, **more: object) -> TestReport:
        return TestReport(number=1, id=state, file="a", line=1, state=state, **more)  # type: ignore[arg-type]

    assert outcome_of([test("passed"), test("not_run", skipped=True), test("failed", quarantine="x")]).code == 0
    assert outcome_of([test("passed"), test("failed")]).code == 1
    assert outcome_of([test("failed"), test("infra_error")]).code == 3
    assert outcome_of([test("infra_error"), test("cancelled")]).code == 4
    assert outcome_of([test("cancelled"), test("not_run")]).code == 5


def test_recorded_times_come_from_a_report() -> None:
    """The last attempt that passed or failed says how long a test takes; errors of the lab say nothing."""
    work = values.attempt
    from lomi.lab.shard import Work

    given_out = Work(test=values.planned(1), attempt=1)
    attempts = (
        work(given_out, "failed", began=1.0, ended=4.0),
        work(given_out, "infra_error", began=4.0, ended=99.0),
    )
    run = report_of(TestReport(number=1, id=given_out.test.id, file="a", line=1, state="failed", attempts=attempts))
    assert recorded_seconds(msgspec.json.encode(run)) == {given_out.test.id: 3.0}


def test_a_shelf_keeps_what_it_has_and_nothing_else(tmp_path: Path) -> None:
    """Content lies under its hash; a name that is no hash leads nowhere."""
    shelf = FolderShelf(tmp_path / "s")
    digest = shelf.put(b"one")
    assert digest == shelf.put(b"one") == hashlib.sha256(b"one").hexdigest()
    assert shelf.path_of(digest).read_bytes() == b"one"
    for name in ("0" * 64, "../s/" + digest, "", digest.upper()):
        with pytest.raises(KeyError):
            shelf.path_of(name)
