"""`lomi demo`: an agent drives a phone and a page; leaves a report."""

import sys
from pathlib import Path

import click

from lomi.cli.failing import fail


@click.command()
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    help="The folder for the report; one that an earlier run made is replaced.",
)
@click.option("--offline", is_flag=True, help="Fetch nothing: install a tiny app that the demo makes itself.")
def demo(into: Path, offline: bool) -> None:
    """Run the demo with a broker, a phone and a page of its own, and leave a report."""
    from browser.process import find_engine
    from lomi.cli.checks.programs import ENGINE_CURE
    from lomi.cli.engine import chosen_browser
    from lomi.demo.main import demo as run

    choice = chosen_browser()
    if find_engine(headed=choice.headed, chosen=choice.executable) is None:
        fail("there is no Chromium, and half of the demo is a page", f"phones work without; for pages: {ENGINE_CURE}")
    sys.exit(run(into, offline=offline))
