"""How a command fails: one line, a hint on the next, and an exit code that says which kind of failure it was."""

import shlex
import sys
from typing import NoReturn

import click


class CommandFailed(click.ClickException):
    """Raised when a command can't do what it was asked; prints one line, and a hint on the next."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


class NoBrokerHere(CommandFailed):
    """Raised when a command needs a running broker and this home has none."""

    exit_code = 3

    def __init__(self) -> None:
        super().__init__("no broker runs on this home", "start one with `lomi up`")


def fail(message: str, hint: str | None = None) -> NoReturn:
    """End the command."""
    raise CommandFailed(message, hint)


def fail_without_broker() -> NoReturn:
    """End the command since nobody is there to answer."""
    raise NoBrokerHere


def installing(*packages: str) -> str:
    """The command that installs packages beside Lomi, which itself is in no registry."""
    return f"run: {shlex.join([sys.executable, '-m', 'pip', 'install', *packages])}"
