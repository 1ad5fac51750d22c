"""The plugin's options: pytest-playwright's names where it has them, and our own."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest

Reset = Literal["reuse", "restart", "wipe", "fresh"]
Each = Literal["test", "module", "session"]
RESETS = ("reuse", "restart", "wipe", "fresh")
EACH = ("test", "module", "session")


def playwright_is_here(plugins: pytest.PytestPluginManager) -> bool:
    """Whether pytest-playwright is, or is about to be, loaded: then four options and `page` are its own."""
    if plugins.is_blocked("playwright"):
        return False
    if plugins.has_plugin("playwright"):
        return True
    return "pytest_playwright" in sys.modules or importlib.util.find_spec("pytest_playwright") is not None


def add_options(parser: pytest.Parser, *, shared: bool) -> None:
    """Add the options; `shared` leaves those out that pytest-playwright adds."""
    group = parser.getgroup("lomi", "Lomi: phones, pages and terminals")
    group.addoption("--phone", metavar="IMAGE", default=None, help="What `phone` is: an image, or a phone's name.")
    group.addoption("--pool", metavar="N", type=int, default=None, help="How many phones there are for all workers.")
    group.addoption(
        "--phone-reset",
        metavar="HOW[:EACH]",
        default="reuse",
        help="reuse: go on with the running phone; restart: boot it anew; wipe: erase its data first; "
        "fresh: another phone. EACH is test (default), module or session: what it is done before. "
        "For wipe and fresh each worker makes a phone of its own.",
    )
    group.addoption(
        "--infra-retries",
        metavar="N",
        type=int,
        default=1,
        help="How many further attempts follow one that lost its phone, browser or broker (default 1).",
    )
    group.addoption("--lomi-home", metavar="DIR", default=None, help="State folder of the broker; default LOMI_HOME.")
    group.addoption(
        "--lomi-origin",
        metavar="URL",
        action="append",
        default=[],
        help="A web origin that pages may load, where this run starts its own broker; also ini lomi_origins.",
    )
    group.addoption(
        "--lomi-records", metavar="FILE", default=None, help="Where to write one JSON line for each attempt."
    )
    parser.addini("lomi_origins", "Web origins that pages may load, where a run starts its own broker.", type="args")
    if shared:
        return
    group.addoption(
        "--screenshot",
        default="only-on-failure",
        choices=["on", "off", "only-on-failure"],
        help="Keep pictures of phones and pages.",
    )
    group.addoption(
        "--video",
        default="off",
        choices=["on", "off", "retain-on-failure"],
        help="Keep what phones and pages showed from first to last, as an animated WebP.",
    )
    group.addoption(
        "--tracing",
        default=None,
        choices=["on", "off", "retain-on-failure"],
        help="Keep what was done and seen, act by act, and Playwright's traces of pages; unsaid, the acts of failures.",
    )
    group.addoption("--output", default="test-results", help="Folder for what tests leave.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for. `pictures`, `traces`, `page_traces` and `videos` are `on`, `off` or `failure`.

    Attributes:
        traces: of acts, which cost nothing: kept on failure where nothing was said.
        page_traces: Playwright's, which the browser has to record: only where they were asked for.
    """

    phone: str | None
    pool: int | None
    reset: Reset
    each: Each
    retries: int
    home: str | None
    origins: tuple[str, ...]
    records: Path | None
    output: Path
    pictures: str
    traces: str
    page_traces: str
    videos: str


def read_options(config: pytest.Config) -> Options:
    """The options of a run.

    Raises:
        pytest.UsageError: one can't be honoured.
    """
    how, _, each = str(config.getoption("--phone-reset")).partition(":")
    each = each or "test"
    if how not in RESETS or each not in EACH:
        raise pytest.UsageError(
            f"lomi: --phone-reset is one of {', '.join(RESETS)}, with :test, :module or :session behind it"
        )
    if (pool := config.getoption("--pool")) is not None and pool < 1:
        raise pytest.UsageError("lomi: --pool is at least 1")
    if config.getoption("--infra-retries") < 0:
        raise pytest.UsageError("lomi: --infra-retries is at least 0")
    records, shared = config.getoption("--lomi-records"), config.pluginmanager.has_plugin("playwright")
    given = " ".join(str(one) for one in config.invocation_params.args)
    return Options(
        phone=config.getoption("--phone"),
        pool=pool,
        reset=cast("Reset", how),
        each=cast("Each", each),
        retries=int(config.getoption("--infra-retries")),
        home=config.getoption("--lomi-home"),
        origins=(*config.getoption("--lomi-origin"), *config.getini("lomi_origins")),
        records=Path(records).absolute() if records else None,
        output=Path(str(config.getoption("--output"))).absolute(),
        pictures=_when(config, "--screenshot", shared=shared, given=given),
        traces=_when(config, "--tracing", shared=shared, given=given),
        page_traces="off" if config.getoption("--tracing") is None else _said(config, "--tracing"),
        videos=_said(config, "--video"),
    )


def _when(config: pytest.Config, option: str, *, shared: bool, given: str) -> str:
    """`on`, `off` or `failure`. pytest-playwright's own default is off; ours is to keep what a failure left."""
    said = _said(config, option)
    return "failure" if said == "off" and shared and option not in given else said


def _said(config: pytest.Config, option: str) -> str:
    said = str(config.getoption(option))
    return said if said in ("on", "off") else "failure"
