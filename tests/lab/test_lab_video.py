"""Videos and Playwright's traces of the pytest plugin: real Chromium, paper phones, files decoded and compared."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import World
from harness.site import Site, serving
from lab import lab_runs
from lab_world import connected, journal, lab_world
from PIL import Image
from plugin_runs import KILL_PHONE, InnerRun, environment_of, run_inner

from lomi.lab.records import ArtifactRecord

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(180)
"""A run starts pytest, its workers and phones: seconds on a quiet machine, a minute on a crowded one."""

COLOURS = """<!doctype html><title>Colours</title><body style="margin:0;background:red">
<button onclick="document.body.style.background = 'blue'">Paint</button>"""
"""A red page that a click turns blue."""
RED, BLUE = (255, 0, 0), (0, 0, 255)
KEPT = ("--video=retain-on-failure", "--tracing=retain-on-failure")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A local page that a click paints."""
    with serving() as made:
        made.pages["/colours"] = COLOURS
        yield made


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    """A broker with two paper phones."""
    with lab_world(site, ("paper-36-1", "paper-36-2")) as made:
        yield made


@dataclass(frozen=True)
class Shown:
    """One frame: when it came, how long it was shown (both in ms), and its colour in the middle."""

    at: int
    lasts: int
    colour: tuple[int, int, int]


def content_of(ran: InnerRun, kept: ArtifactRecord) -> bytes:
    """The file, which is what the record says."""
    content = (ran.folder / "left" / kept.path).read_bytes()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (kept.sha256, kept.byte_length)
    return content


def frames_of(content: bytes) -> list[Shown]:
    """The frames of a video, decoded by Pillow."""
    found, at = [], 0
    with Image.open(io.BytesIO(content)) as video:
        assert video.format == "WEBP"
        for number in range(video.n_frames):
            video.seek(number)
            middle = video.convert("RGB").getpixel((video.width // 2, video.height // 2))
            assert isinstance(middle, tuple)
            found.append(Shown(at, int(video.info["duration"]), middle))
            at += found[-1].lasts
    return found


def kept_of(ran: InnerRun, number: int = 0) -> dict[str, ArtifactRecord]:
    """What one attempt left, by the names of its files."""
    return {one.path.rpartition("/")[2]: one for one in ran.records[number].artifacts}


def like(colour: tuple[int, int, int], wanted: tuple[int, int, int]) -> bool:
    """Whether two colours are the same to the eye."""
    return all(abs(one - other) < 24 for one, other in zip(colour, wanted, strict=True))


def playwrights_own(folder: Path, trace: Path) -> str:
    """A trace and its requests as Playwright's own command reads them; it unpacks into the folder."""
    command = (sys.executable, "-m", "playwright", "trace")
    return "".join(
        subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, check=True).stdout
        for words in (("open", str(trace)), ("requests",))
    )


def test_a_failing_test_leaves_a_video_from_before_to_after_its_click(
    pytester: pytest.Pytester, world: World, site: Site, tmp_path: Path
) -> None:
    """Red before the click, blue after it, each for as long as it was shown; Playwright's trace lies beside it."""
    source = f"""
    import time
    def test_page(page):
        page.goto("{site.origin}/colours")
        time.sleep(0.6)
        page.click("Paint")
        time.sleep(0.4)
        assert page.shows("Never")
    """
    ran = run_inner(pytester, source, *KEPT, environment=environment_of(world))
    ran.result.assert_outcomes(failed=1)
    kept = kept_of(ran)
    frames = frames_of(content_of(ran, kept["video.webp"]))
    colours = [("red" if like(one.colour, RED) else "blue" if like(one.colour, BLUE) else "") for one in frames]
    assert "red" in colours
    assert colours[-1] == "blue"
    assert colours.index("blue") > colours.index("red")
    red = sum(one.lasts for one, colour in zip(frames, colours, strict=True) if colour == "red")
    assert 500 < red < 30_000
    assert kept["video.webp"].generation == ran.records[0].leased[0].generation
    with zipfile.ZipFile(io.BytesIO(content_of(ran, kept["page-trace.zip"]))) as trace:
        lines = [json.loads(line) for line in trace.read("trace.trace").splitlines()]
        assert lines[0]["type"] == "context-options"
        shown = [line["sha1"] for line in lines if line["type"] == "screencast-frame"]
        assert shown
        assert {f"resources/{name}" for name in shown} <= set(trace.namelist())
    assert "trace.jsonl" in kept
    assert "video: " in ran.output
    told = playwrights_own(tmp_path, ran.folder / "left" / kept["page-trace.zip"].path)
    assert re.search(r"Pages: +1\n", told)
    assert re.search(r"GET +200 +colours", told)


def of_page(site: Site, body: str, name: str = "page") -> str:
    """A test that opens the red page."""
    return f"""
    def test_{name}(page):
        import time
        page.goto("{site.origin}/colours")
        {body}
    """


def test_on_off_and_on_failure_are_what_they_say(pytester: pytest.Pytester, world: World, site: Site) -> None:
    """`on` keeps that of a passing test too, `retain-on-failure` only the failing one's, `off` none."""
    source = of_page(site, "page.click('Paint')", "good") + of_page(site, "assert False", "bad")
    videos = {}
    for how in ("on", "off", "retain-on-failure"):
        ran = run_inner(pytester, source, f"--video={how}", "--tracing=off", environment=environment_of(world))
        ran.result.assert_outcomes(passed=1, failed=1)
        videos[how] = [sum(one.kind == "video" for one in record.artifacts) for record in ran.records]
        assert not any(one.kind == "trace" for record in ran.records for one in record.artifacts)
        (ran.folder / "left" / "records.jsonl").unlink()
    assert videos == {"on": [1, 1], "off": [0, 0], "retain-on-failure": [0, 1]}


def test_playwrights_trace_is_taken_only_where_it_is_asked_for(
    pytester: pytest.Pytester, world: World, site: Site
) -> None:
    """Unsaid, a failing test leaves its acts alone; `on` keeps both, of a passing test too."""
    source = of_page(site, "page.click('Paint')", "good") + of_page(site, "assert False", "bad")
    traces = {}
    for said in ((), ("--tracing=on",)):
        ran = run_inner(pytester, source, *said, environment=environment_of(world))
        ran.result.assert_outcomes(passed=1, failed=1)
        names = [{one.path.rpartition("/")[2] for one in record.artifacts} for record in ran.records]
        traces[said] = [one & {"trace.jsonl", "page-trace.zip"} for one in names]
        (ran.folder / "left" / "records.jsonl").unlink()
    both = {"trace.jsonl", "page-trace.zip"}
    assert traces == {(): [set(), {"trace.jsonl"}], ("--tracing=on",): [both, both]}


def test_ten_seconds_of_a_still_screen_cost_few_frames(pytester: pytest.Pytester, world: World, site: Site) -> None:
    """Frames come with changes: a page that rests for ten seconds has hardly any, and they last as long as it did."""
    source = of_page(site, "time.sleep(10)")
    ran = run_inner(pytester, source, "--video=on", "--tracing=off", environment=environment_of(world))
    frames = frames_of(content_of(ran, kept_of(ran)["video.webp"]))
    assert len(frames) <= 6
    assert 10_000 <= sum(one.lasts for one in frames) < 40_000


def test_a_page_that_closes_midway_leaves_what_it_showed(pytester: pytest.Pytester, world: World, site: Site) -> None:
    """Closed by the test itself, which then fails: red and blue are there, and that its trace ended is told."""
    source = of_page(site, "time.sleep(0.5); page.click('Paint'); time.sleep(1); page.close(); assert False")
    ran = run_inner(pytester, source, *KEPT, environment=environment_of(world))
    ran.result.assert_outcomes(failed=1)
    assert ran.outcomes() == [("test_page", 1, "failed")]
    frames = frames_of(content_of(ran, kept_of(ran)["video.webp"]))
    assert any(like(one.colour, RED) for one in frames)
    assert like(frames[-1].colour, BLUE)
    assert "page-trace.zip: " in ran.output


def test_a_phone_that_is_killed_midway_leaves_what_it_showed(pytester: pytest.Pytester, world: World) -> None:
    """Kill -9: the attempt is infra, its video holds more than one picture; the next attempt has one of its own."""
    source = (
        f"HOME = {str(world.root)!r}\n"
        + KILL_PHONE
        + """
import time
TRIES = []
def test_dies(phone):
    TRIES.append(phone.generation)
    phone.launch("lomi.paper.form")
    phone.type("before the end", into="name")
    time.sleep(1)
    if len(TRIES) == 1:
        kill_phone(phone)
    phone.tap("Submit")
    assert False
"""
    )
    ran = run_inner(pytester, source, "--video=retain-on-failure", environment=environment_of(world))
    assert ran.outcomes() == [("test_dies", 1, "infra_error"), ("test_dies", 2, "failed")], ran.output
    videos = [kept_of(ran, number)["video.webp"] for number in (0, 1)]
    assert [one.generation for one in videos] == [record.leased[0].generation for record in ran.records]
    for video in videos:
        frames = frames_of(content_of(ran, video))
        assert len(frames) > 1
        assert all(one.lasts > 0 for one in frames)


def test_each_worker_records_its_own_phone(pytester: pytest.Pytester, world: World) -> None:
    """Two workers of pytest-xdist: two videos of two generations, and what each phone showed differs."""
    source = """
    import time
    import pytest
    def show(phone, app):
        phone.launch("lomi.paper." + app)
        time.sleep(0.5)
        assert False
    @pytest.mark.xdist_group("one")
    def test_form(phone):
        show(phone, "form")
    @pytest.mark.xdist_group("two")
    def test_list(phone):
        show(phone, "list")
    """
    ran = run_inner(
        pytester, source, "--video=retain-on-failure", "-n", "2", "--dist=loadgroup", environment=environment_of(world)
    )
    videos = [
        (artifact.generation, content_of(ran, artifact))
        for record in ran.records
        for artifact in record.artifacts
        if artifact.kind == "video"
    ]
    assert {record.worker for record in ran.records} == {"gw0", "gw1"}
    assert len({generation for generation, _ in videos}) == len(videos) == 2
    assert len({content for _, content in videos}) == 2


def test_a_report_shows_the_video_and_verify_holds_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`lomi lab run`: the video is inside the page, its file under its hash; one changed byte is a difference."""
    plan = '[tests]\narguments = ["-p", "lomi.lab.plugin", "--video=retain-on-failure"]\n'
    plan += "[pool]\nphones = 1\n[broker]\n"
    body = "def test_a(phone):\n    phone.launch('lomi.paper.form')\n    assert False\n"
    root = tmp_path_factory.mktemp("l")
    ran = lab_runs.run(lab_runs.write_project(root, plan, {"tests/test_one.py": body}))
    attempt = ran.test("::test_a").attempts[0]
    (video,) = [one for one in attempt.artifacts if one.kind == "video"]
    assert video.generation in attempt.generations
    (path,) = (ran.folder / "attempts" / "0001" / "1").glob("*.webp")
    content = path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == video.sha256
    assert base64.b64encode(content).decode() in (ran.folder / "report.html").read_text(encoding="utf-8")
    code, said = lab_runs.verify(ran.folder)
    assert code == 0, said
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, said = lab_runs.verify(ran.folder)
    assert (code, path.name in said) == (1, True)


def test_a_video_goes_on_where_only_the_way_to_the_phone_breaks(site: Site, tmp_path: Path) -> None:
    """Two looks are cut off in the middle: what the phone shows after that is in the video all the same."""
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nname = "cut_picture"\nafter = 1\ntimes = 2\n')
    with lab_world(site, always={"PAPER_FAULTS": str(faults)}) as world, connected(world) as lab:
        phone = lab.phone("paper-36-1")
        phone.start_video()
        end = time.monotonic() + 20
        while [line["event"] for line in journal(world)].count("half_picture") < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        phone.launch("lomi.paper.form")
        phone.wait_for("Submit")
        stored = phone.stop_video()
        lab.download(stored.id, tmp_path / "video.webp")
    frames = frames_of((tmp_path / "video.webp").read_bytes())
    assert len(frames) > 1
