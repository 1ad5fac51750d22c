"""Videos and Playwright's traces of the pytest plugin: real Chromium, paper phones, files decoded and compared."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness import World
from harness.site import Site, serving
from lab_world import lab_world
from PIL import Image
from plugin_runs import InnerRun, environment_of, run_inner

from lomi.lab.records import ArtifactRecord

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(180)
"""A run starts pytest, its workers and phones: seconds on a quiet machine, a minute on a crowded one."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A local page."""
    with serving() as made:
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


RED, BLUE = (255, 0, 0), (0, 0, 255)


COLOURS = """<!doctype html><title>Colours</title><body style="margin:0;background:red">
<button onclick="document.body.style.background = 'blue'">Paint</button>"""
"""A red page that a click turns blue."""


def test_a_failing_test_leaves_a_video_from_before_to_after_its_click(
    pytester: pytest.Pytester, world: World, site: Site
) -> None:
    """Red before the click, blue after it, each for as long as it was shown; Playwright's trace lies beside it."""
    site.pages["/colours"] = COLOURS
    source = f"""
    import time
    def test_page(page):
        page.goto("{site.origin}/colours")
        time.sleep(0.6)
        page.click("Paint")
        time.sleep(0.4)
        assert page.shows("Never")
    """
    ran = run_inner(pytester, source, "--video=retain-on-failure", environment=environment_of(world))
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
