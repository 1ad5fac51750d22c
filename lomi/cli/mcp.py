"""`lomi mcp`: the same pipe as `lomi-mcp`."""

import sys

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def mcp(arguments: tuple[str, ...]) -> None:
    """Speak MCP on stdio."""
    from lomi.mcp.helper import main

    sys.exit(main(list(arguments)))
