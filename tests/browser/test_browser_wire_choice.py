"""The browser that the owner chooses by the environment is the one that an agent's page lives in."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from browser_files import FileSite, serving_files
from browser_wire import WirePage
from harness import ALL_SCOPES, ClientEntry, World, agent, opened_world, policy_text
from PIL import Image

from browser.process import CHROMIUMS, find_engine

PAGE = """<!doctype html><title>Colours</title><body style="margin:0;background:rgb(200, 0, 0)">
<button onclick="document.body.style.background = 'rgb(0, 160, 0)'">Paint</button>"""


@pytest.fixture(scope="module")
def site() -> Iterator[FileSite]:
    """A page that a click paints."""
    with serving_files() as made:
        made.pages |= {"/colours": PAGE}
        yield made


@pytest.fixture
def display() -> Iterator[str]:
    """A screen in memory."""
    server = shutil.which("Xvfb")
    if server is None or not any(Path(place).exists() for place in CHROMIUMS):
        pytest.skip("no Xvfb, or no Chromium with windows, on this machine")
    read, write = os.pipe()
    command = [server, "-displayfd", str(write), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=(write,), stderr=subprocess.DEVNULL) as process:
        try:
            os.close(write)
            with os.fdopen(read) as told:
                number = told.readline().strip()
            if not number:
                pytest.skip("Xvfb does not start on this machine")
            yield f":{number}"
        finally:
            process.terminate()


def _world(site: FileSite) -> str:
    return policy_text(ClientEntry(label="qa", scopes=ALL_SCOPES, origins=(site.origin,)))


async def _painted(world: World, site: FileSite) -> tuple[int, int, int]:
    """The colour in a picture of a page whose button an agent has clicked."""
    async with agent(world) as qa:
        page = await WirePage.open(qa, f"{site.origin}/colours")
        done = await page.click("Paint")
        assert done.data["observation"]["settled"]
        given = msgspec.json.encode(page.target("navigationId"))
        (picture,) = (await qa.client.call_raw("lomi_browser_screenshot", given)).pictures
        with Image.open(BytesIO(picture.content)) as opened:
            assert opened.size == (1280, 720)
            colour = opened.convert("RGB").getpixel((640, 400))
        assert isinstance(colour, tuple)
        return colour[0], colour[1], colour[2]


async def test_pages_open_in_windows_where_that_was_chosen(site: FileSite, display: str) -> None:
    """A Chromium with windows on an X display works as the headless one does."""
    with opened_world(_world(site), start=False, check=False) as world:
        world.start(more={"LOMI_BROWSER": "headed", "DISPLAY": display})
        assert await _painted(world, site) == (0, 160, 0)
        world.stop()
        assert world.left_processes() == []
        # The desktop's own settings service keeps a file there for any program with windows.
        assert {left.name for left in world.runtime.iterdir()} <= {"dconf"}


async def test_another_chromium_is_run_and_told_what_was_chosen(site: FileSite, tmp_path: Path) -> None:
    """A program of the owner's is what is started, with windows or without."""
    engine = find_engine(headed=False)
    assert engine is not None
    said, own = tmp_path / "said", tmp_path / "chromium"
    real = shlex.quote(str(engine))
    own.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{shlex.quote(str(said))}\nexec {real} --headless "$@"\n')
    own.chmod(0o755)
    for kind in ("headless", "headed"):
        said.unlink(missing_ok=True)
        with opened_world(_world(site), start=False) as world:
            world.start(more={"LOMI_CHROMIUM": str(own), "LOMI_BROWSER": kind, "DISPLAY": ":99"})
            assert await _painted(world, site) == (0, 160, 0)
        assert ("--headless" in said.read_text().split("\n")) == (kind == "headless")


def test_a_choice_that_can_not_be_kept_starts_no_broker(site: FileSite) -> None:
    """One line and a hint, not a page that fails later."""
    with opened_world(_world(site), start=False) as world:
        for more, line in (
            ({"LOMI_BROWSER": "firefox"}, "Error: LOMI_BROWSER is firefox, and pages are Chromium's only"),
            (
                {"LOMI_BROWSER": "headed", "DISPLAY": "", "WAYLAND_DISPLAY": ""},
                "Error: LOMI_BROWSER is headed, and there is no display",
            ),
            ({"LOMI_CHROMIUM": "/nowhere"}, "Error: LOMI_CHROMIUM is '/nowhere', and no program is there"),
        ):
            process = world.launch(more=more)
            assert process.wait() != 0
            first, second = process.stderr().splitlines()[-2:]
            assert first == line
            assert second.startswith("hint: ")
