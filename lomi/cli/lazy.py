"""A group of commands that has a table of them: a command's module is imported only when it runs."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Finds a sub-command's module by name and imports only that one.

    Attributes:
        table: the module and the line of help of each, in the order in which they are listed.
        prefix: what stands before a command's name in the name of its function.
    """

    table: ClassVar[Mapping[str, tuple[str, str]]]
    prefix: ClassVar[str] = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the table."""
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in self.table:
            return None
        module = importlib.import_module(self.table[cmd_name][0])
        command: click.Command = getattr(module, self.prefix + cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, from the table, without importing anything."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The names, from the table too: a pressed Tab imports no command."""
        from click.shell_completion import CompletionItem

        del ctx
        return [
            CompletionItem(name, help=text) for name, (_, text) in self.table.items() if name.startswith(incomplete)
        ]
