"""What pytest shows of a failing test: the user's line last, and all the frames where that helps."""

from collections.abc import Iterator

import pytest
from harness import World
from harness.site import serving
from lab_world import lab_world
from plugin_runs import environment_of, run_inner

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(180)
SOURCE = """
    def open_it(phone):
        phone.launch("lomi.paper.form")
        phone.tap("No such thing")

    def test_absent(phone):
        open_it(phone)

    def test_refused(lab):
        lab.phone("no-such-phone")

    def test_own(phone):
        phone.launch("lomi.paper.form")
        assert phone.find("Submit").role == "checkbox"
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker with a phone."""
    with serving() as site, lab_world(site, ("paper-36-1",)) as made:
        yield made


def test_the_users_line_is_the_last_one_shown(pytester: pytest.Pytester, world: World) -> None:
    """Not one line of Lomi's or of the event loop's; the error's own words follow it."""
    ran = run_inner(pytester, SOURCE, environment=environment_of(world))
    ran.result.assert_outcomes(failed=3)
    for ours in ("/lomi/client/", "concurrent/futures", "asyncio/"):
        assert ours not in ran.output
    lines = ran.output.splitlines()
    shown = lines.index('>       phone.tap("No such thing")')
    assert lines[shown + 1].startswith("E ")
    assert "does not show 'No such thing'" in lines[shown + 1]
    assert '>       lab.phone("no-such-phone")' in lines
    assert '>       assert phone.find("Submit").role == "checkbox"' in lines
    assert [one.outcome for one in ran.records] == ["failed"] * 3


def test_all_frames_are_shown_where_that_was_asked_for(pytester: pytest.Pytester, world: World) -> None:
    """`--full-trace` is for who wants to see how it came about."""
    ran = run_inner(pytester, SOURCE, "--full-trace", "-k", "absent", environment=environment_of(world))
    assert "/lomi/client/" in ran.output
