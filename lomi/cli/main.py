"""The `lomi` command: sub-commands are imported only when they run, so that `lomi --help` stays fast."""

import io
import os
import re
import signal
import sys

import click

from lomi.cli.lazy import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("lomi.cli.up", "Start the broker here (or headless, with a policy)."),
    "down": ("lomi.cli.owner", "Stop the running broker."),
    "status": ("lomi.cli.owner", "Show the broker, its sessions, its limits, and the tools without an adapter."),
    "ps": ("lomi.cli.ps", "Show who holds what since when (--watch: again and again)."),
    "receipts": ("lomi.cli.receipts", "Show what was done, also by earlier brokers."),
    "logs": ("lomi.cli.logs", "Show the broker's log."),
    "revoke": ("lomi.cli.owner", "End a session's authority, or everyone's with --all."),
    "take": ("lomi.cli.owner", "Take a panel over: its lease ends at once (--give-back returns it)."),
    "yolo": ("lomi.cli.yolo", "Let every client of yours pair without asking, or stop that."),
    "mcp": ("lomi.cli.mcp", "Speak MCP on stdio; what an agent host starts."),
    "mcp-config": ("lomi.cli.mcp_config", "Print what an agent host needs to start Lomi, and where it goes."),
    "policy": ("lomi.cli.policy", "Check a policy file, or make a client token."),
    "tools": ("lomi.cli.call", "List the tools."),
    "call": ("lomi.cli.call", "Call a tool as a client: lomi call TOOL key=value..."),
    "images": ("lomi.cli.images", "List, lock, verify and create reproducible phone images."),
    "lab": ("lomi.cli.lab", "Run a plan of tests on leased phones, or check its report."),
    "store": ("lomi.cli.store", "Look after the receipt store."),
    "doctor": ("lomi.cli.doctor", "Look for what is missing or broken; each finding names its cure."),
    "demo": ("lomi.cli.demo", "See it work: an agent drives a phone and a page, and leaves a report."),
    "completion": ("lomi.cli.completion", "Print shell completion for bash, zsh or fish."),
    "uninstall": ("lomi.cli.uninstall", "Remove what Lomi keeps on this machine, after asking."),
}


_INSTALLED = re.compile(r"lomi_lab-(.+)\.dist-info")
_VERSION_HELP = "Show the version and exit."


class Commands(LazyGroup):
    """All of `lomi`."""

    table = COMMANDS


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Say the version: from the name of the package's own folder, since the library for that is slow to import."""
    if not wanted or context.resilient_parsing:
        return
    # Without pathlib, which nothing else here needs.
    names = (name for place in sys.path if os.path.isdir(place) for name in os.listdir(place))  # noqa: PTH112, PTH208
    found = [match[1] for name in names if (match := _INSTALLED.fullmatch(name)) is not None]
    if len(set(found)) != 1:
        from importlib.metadata import version

        found = [version("lomi-lab")]
    click.echo(f"lomi, version {found[0]}")
    context.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help=_VERSION_HELP)
def cli() -> None:
    """Lomi shares Android emulators, browsers and terminals among agents, CI and people, under one rule set."""


def main() -> None:
    """Run the command line; docs/cli.md lists the exit codes."""
    # Ignored by whoever started us, the ends of its children would keep the exit code of every program from us.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        # A locale that lacks a character costs that character, not the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line; what is wrong is said on one line, with a hint on the next."""
    try:
        # What a command returns is its exit code only where it left early, as `--help` does.
        code: object = cli.main(args=arguments, prog_name="lomi", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as nothing:
        nothing.show()
        return nothing.exit_code
    except click.UsageError as wrong:
        command = wrong.ctx.command_path if wrong.ctx is not None else "lomi"
        click.echo(f"Error: {wrong.format_message()}\nhint: `{command} --help`", err=True)
        return wrong.exit_code
    except click.ClickException as failed:
        failed.show()
        return failed.exit_code
    except click.Abort:
        click.echo("Aborted!", err=True)
        return 1
    except BrokenPipeError:
        # Who read our output has gone; nothing is left to be said to it, at the end of the process neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code if isinstance(code, int) else 0
