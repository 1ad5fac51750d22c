"""The plugin beside pytest-playwright, whose names four of our options and one fixture have.

Its stand-in registers what pytest-playwright 0.10.0 does: the plugin's name, its options, the fixture `page`.
"""

import textwrap

import pytest

from lomi.lab.plugin.options import read_options

pytest_plugins = ["pytester"]

STAND_IN = """
import pytest
def pytest_addoption(parser):
    group = parser.getgroup("playwright", "Playwright")
    group.addoption("--output", default="test-results")
    group.addoption("--tracing", default="off", choices=["on", "off", "retain-on-failure"])
    group.addoption("--video", default="off", choices=["on", "off", "retain-on-failure"])
    group.addoption("--screenshot", default="off", choices=["on", "off", "only-on-failure"])
@pytest.fixture
def page():
    return "a page of pytest-playwright"
"""


@pytest.fixture
def beside(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An environment in which both plugins are installed."""
    site = pytester.mkdir("site")
    package = site / "pytest_playwright"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "pytest_playwright.py").write_text(textwrap.dedent(STAND_IN))
    described = site / "pytest_playwright-0.10.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-playwright\nVersion: 0.10.0\n")
    (described / "entry_points.txt").write_text("[pytest11]\nplaywright = pytest_playwright.pytest_playwright\n")
    pytester.syspathinsert(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    return pytester


def test_both_plugins_load_and_say_what_is_shared(beside: pytest.Pytester) -> None:
    """`page` stays pytest-playwright's, ours has a name of its own, and the header says so."""
    beside.makepyfile(
        test_inner="""
        def test_names(page, request):
            assert page == "a page of pytest-playwright"
            definitions = request.session._fixturemanager.getfixturedefs("lomi_page", request.node)
            assert definitions[-1].func.__module__ == "lomi.lab.plugin.fixtures"
        """
    )
    result = beside.runpytest_subprocess("-p", "no:cacheprovider", "-W", "ignore", "--screenshot", "on")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["lomi: `page` is pytest-playwright's, ours is `lomi_page`; *"])


@pytest.mark.parametrize(
    ("arguments", "pictures"),
    [((), "failure"), (("--screenshot", "off"), "off"), (("--screenshot", "on"), "on")],
)
def test_shared_options_mean_the_same(beside: pytest.Pytester, arguments: tuple[str, ...], pictures: str) -> None:
    """What is given counts for both; what is not leaves our own default, which keeps what a failure left."""
    options = read_options(beside.parseconfig("-p", "no:cacheprovider", *arguments))
    assert options.pictures == pictures


def test_its_options_are_ours_where_it_is_switched_off(beside: pytest.Pytester) -> None:
    """With `-p no:playwright` there is nothing to share: `page` and the options are ours."""
    options = read_options(beside.parseconfig("-p", "no:cacheprovider", "-p", "no:playwright", "--output", "elsewhere"))
    assert options.output.name == "elsewhere"
    assert options.traces == "failure"
