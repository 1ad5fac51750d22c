"""`lomi tools` and `lomi call`: the catalogue, and calls as any client would make them."""

import asyncio
import json
import os

import click

from lomi.cli.failing import fail


@click.command()
@click.argument("tool", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the generated catalogue.")
def tools(tool: str | None, as_json: bool) -> None:
    """List the tools, or show the scopes and fields of TOOL."""
    from lomi.cli.arguments import near
    from lomi.contract.listing import LOCATION, catalogue
    from lomi.docs import section

    if tool is not None:
        found = next((known for known in catalogue().tools if known.name == tool), None)
        if found is None:
            fail(f"no tool is named {tool!r}", near(tool))
        click.echo(
            json.dumps(next(entry for entry in json.loads(LOCATION.read_bytes())["tools"] if entry["name"] == tool))
            if as_json
            else section(found)
        )
        return
    if as_json:
        click.echo(LOCATION.read_text(encoding="utf-8"), nl=False)
        return
    for known in catalogue().tools:
        click.echo(f"{known.name:32} {known.purpose}")


@click.command()
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="Print the data as JSON.")
def call(tool: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """Call TOOL, or with `-` each line of standard input as one call, all in one session.

    Text fields take their value as it stands, all others JSON; KEY:=JSON is JSON everywhere. Retry key, revision,
    lease and the life of what you name are filled in. A page, a terminal and a lease end with the session.

    LOMI_CLIENT_LABEL and LOMI_CLIENT_TOKEN say who you are.
    """
    from lomi.cli.calling import Caller

    if tool == "-" and pairs:
        raise click.UsageError("with - each line of standard input is TOOL [KEY=VALUE]...")
    caller = Caller(os.environ, as_json=as_json)
    asyncio.run(caller.each_line() if tool == "-" else caller.one(tool, pairs))
