"""How a command fails: one line and a hint, exit code 1."""

from typing import NoReturn

import click


class CommandFailed(click.ClickException):
    """Raised when a command can't do what it was asked; prints one line, and a hint on the next."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


def fail(message: str, hint: str | None = None) -> NoReturn:
    """End the command."""
    raise CommandFailed(message, hint)
