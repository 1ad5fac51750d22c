"""The pytest plugin: phones, pages and terminals as fixtures, evidence beside the report, lost devices told apart.

Loaded with every pytest of an environment that holds Lomi, so this module imports pytest and nothing heavier; the rest
comes when a test asks for one of the fixtures.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Protocol

import pytest

from lomi.lab.plugin.options import add_options, playwright_is_here, read_options
from lomi.lab.plugin.stations import XDIST_KEY, Stations

if TYPE_CHECKING:
    from lomi.lab.plugin.desk import Desk


class _Gateway(Protocol):
    @property
    def id(self) -> str: ...


class _Node(Protocol):
    """A worker of pytest-xdist, as its controller sees it."""

    config: pytest.Config
    gateway: _Gateway
    workerinput: dict[str, object]


DESK = pytest.StashKey["Desk"]()
STATIONS = pytest.StashKey[Stations]()
FIXTURES = frozenset({"lab", "phone", "page", "lomi_page", "terminal"})
_OWN = "lomi.lab.plugin."


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our options; those that pytest-playwright has too are read from it where it is installed."""
    add_options(parser, shared=playwright_is_here(pluginmanager))


def pytest_configure(config: pytest.Config) -> None:
    """Offer the fixtures.

    Raises:
        pytest.UsageError: an option can't be honoured.
    """
    read_options(config)
    from lomi.lab.plugin import fixtures  # noqa: PLC0415

    config.addinivalue_line("markers", "lomi_phone(image): the image or name of the phone that this test's `phone` is.")
    config.pluginmanager.register(fixtures, "lomi-fixtures")
    if not config.pluginmanager.has_plugin("playwright"):
        from lomi.lab.plugin import page_fixture  # noqa: PLC0415

        config.pluginmanager.register(page_fixture, "lomi-page")
    config.stash[STATIONS] = Stations(config)
    config.pluginmanager.register(config.stash[STATIONS], "lomi-stations")


def uses_lomi(item: pytest.Item) -> bool:
    """Whether a test asks for one of our fixtures, and no closer one of the same name took its place."""
    names = FIXTURES.intersection(getattr(item, "fixturenames", ()))
    if not names:
        return False
    found: dict[str, tuple[object, ...]] = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(
        getattr(one, "func", None).__module__.startswith(_OWN) for name in names for one in found.get(name, ())[-1:]
    )


def desk_of(config: pytest.Config) -> "Desk":
    """What this process needs to run tests on devices, made at first use."""
    if DESK not in config.stash:
        from lomi.lab.plugin.desk import Desk  # noqa: PLC0415

        config.stash[DESK] = Desk(config, config.stash[STATIONS])
    return config.stash[DESK]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that uses devices: an attempt that lost one is followed by another."""
    if not uses_lomi(item) or getattr(item.config.option, "reruns", None):
        return None
    from lomi.lab.plugin.protocol import run_attempts  # noqa: PLC0415

    run_attempts(item, nextitem, desk_of(item.config))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """An attempt begins."""
    if uses_lomi(item):
        desk_of(item.config).begin(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at the devices while they are still there, and say what was found."""
    if call.excinfo is not None and not item.config.getoption("fulltrace"):
        from lomi.lab.plugin.shown import hide_own_frames  # noqa: PLC0415  only a failure needs it

        hide_own_frames(call.excinfo)
    report = yield
    if uses_lomi(item):
        desk_of(item.config).phase_ended(item, call, report)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """An attempt that lost its device is no failure of the test."""
    if str(report.outcome) == "infra":
        return "infra", "I", ("INFRA", {"yellow": True})
    return None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is shared with pytest-playwright, where both are installed."""
    if config.pluginmanager.has_plugin("playwright"):
        shared = "--screenshot, --video, --tracing and --output are one with pytest-playwright's"
        return [f"lomi: `page` is pytest-playwright's, ours is `lomi_page`; {shared}"]
    return []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _Node) -> None:
    """Give a worker of pytest-xdist its station: the broker that it shares, and the phone that is its own."""
    node.workerinput[XDIST_KEY] = node.config.stash[STATIONS].station_for(node.gateway.id)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: _Node, error: object) -> None:
    """A worker has ended or crashed: the broker has ended its lease with its connection; its phone is free again."""
    del error
    node.config.stash[STATIONS].freed(node.gateway.id)
