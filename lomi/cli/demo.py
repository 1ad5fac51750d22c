"""`lomi demo`: an agent drives a phone and a page; leaves a report."""

import sys
from pathlib import Path

import click


@click.command()
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    help="The folder for the report; one that an earlier run made is replaced.",
)
def demo(into: Path) -> None:
    """Run the demo with a broker, a phone and a page of its own, and leave a report."""
    from lomi.demo.main import demo as run

    sys.exit(run(into))
