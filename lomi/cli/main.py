"""The `lomi` command: sub-commands are imported only when they run, so that `lomi --help` stays fast."""

import importlib
import sys

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("lomi.cli.up", "Start the broker here (or headless, with a policy)."),
    "down": ("lomi.cli.owner", "Stop the running broker."),
    "mcp": ("lomi.cli.mcp", "Speak MCP on stdio; what an agent host starts."),
    "status": ("lomi.cli.owner", "Show the broker, its sessions, its limits, and the tools without an adapter."),
    "revoke": ("lomi.cli.owner", "End a session's authority, or everyone's with --all."),
    "take": ("lomi.cli.owner", "Take a panel over: its lease ends at once (--give-back returns it)."),
    "policy": ("lomi.cli.policy", "Check a policy file, or make a client token."),
    "store": ("lomi.cli.store", "Look after the receipt store."),
    "tools": ("lomi.cli.call", "List the tools."),
    "call": ("lomi.cli.call", "Call a tool as a client: lomi call TOOL key=value..."),
    "demo": ("lomi.cli.demo", "See it work: an agent drives a phone and a page, and leaves a report."),
}


class LazyGroup(click.Group):
    """Finds a sub-command's module by name and imports only that one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, from the table, without importing anything."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lomi-lab", prog_name="lomi")
def cli() -> None:
    """Lomi shares Android emulators, browsers and terminals among agents, CI and people, under one rule set."""


def main() -> None:
    """Run the command line; exits 0 on success, 1 for a refusal with a hint, 2 for a usage error."""
    cli.main(args=sys.argv[1:], prog_name="lomi")
