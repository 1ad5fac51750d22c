"""`lomi lab`: run a plan of tests on leased phones, check a report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lomi.cli.failing import CommandFailed, fail, installing
from lomi.cli.lazy import LazyGroup

if TYPE_CHECKING:
    from lomi.broker.owner.answers import ReceiptRow

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("lomi.cli.lab", "Run a plan: every test listed, shared out, and accounted for."),
    "verify": ("lomi.cli.lab", "Check a report against its files and the broker's receipts."),
    "scheduler": ("lomi.cli.lab_hosts", "Give shards of runs to hosts."),
    "token": ("lomi.cli.lab_hosts", "Print a token with which one more host may join."),
    "host": ("lomi.cli.lab_hosts", "Be a host of a lab (--join TOKEN: become one)."),
}


class LabCommands(LazyGroup):
    """All of `lomi lab`."""

    table = COMMANDS
    prefix = "lab_"


@click.command(cls=LabCommands)
def lab() -> None:
    """Run tests on a lab of phones."""


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, metavar="[-- PYTEST ARGUMENTS]")
@click.option("--into", type=click.Path(path_type=Path), help="The folder for the report; default as the plan says.")
@click.option("--engine", default="local", show_default=True, metavar="ADDRESS", help="local, or dask://HOST:PORT.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line at the end instead of the folder.")
def lab_run(plan: Path, arguments: tuple[str, ...], into: Path | None, engine: str, as_json: bool) -> None:
    """Run PLAN and leave a report; docs/cli.md says what each exit code means."""
    try:
        from lomi.lab.command import run_command
    except ImportError as error:
        fail(f"a run needs {error.name}, which is not installed", installing("pytest>=9"))

    sys.exit(run_command(plan, arguments, into, engine, as_json=as_json))


@click.command()
@click.argument("report", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--files-only", is_flag=True, help="Do not ask the broker or its store: for a run that had none.")
def lab_verify(report: Path, as_json: bool, files_only: bool) -> None:
    """Check REPORT, the folder of a run: exit 0 if all of it is as it was written, else 1 with every difference."""
    import msgspec

    from lomi.lab.report.saving import REPORT
    from lomi.lab.verify import UnreadableReportError, verify

    folder = report.parent if report.name == REPORT else report
    rows, why = (None, "not asked: --files-only") if files_only else _ledger()
    try:
        checked = verify(folder, rows, why)
    except UnreadableReportError as error:
        fail(str(error), "name the folder of a report, as `lomi lab run` printed it")
    except OSError as error:
        fail(f"{error.filename} can't be read: {error.strerror}", "name the folder of a report of your own")
    if as_json:
        click.echo(msgspec.json.encode(checked).decode())
    else:
        for line in checked.differences:
            click.echo(line)
        compared = "its manifest is in the ledger" if checked.anchored else "no ledger holds its manifest"
        click.echo(f"{checked.files} files, {checked.receipts} receipts; ledger: {checked.ledger}; {compared}")
    sys.exit(1 if checked.differences else 0)


def _ledger() -> "tuple[list[ReceiptRow] | None, str]":
    """Every receipt of this home, and why not where there is none."""
    from lomi.cli.receipts import every_receipt

    try:
        return every_receipt(), ""
    except CommandFailed as failed:
        return None, failed.message.splitlines()[0]
