"""`lomi tools` and `lomi call`: the catalogue, and one call as any client would make it."""

import asyncio
import json
import os

import click

from lomi.cli.failing import fail, fail_without_broker


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the generated catalogue.")
def tools(as_json: bool) -> None:
    """List the tools."""
    from lomi.contract.listing import LOCATION, catalogue

    if as_json:
        click.echo(LOCATION.read_text(encoding="utf-8"), nl=False)
        return
    for tool in catalogue().tools:
        click.echo(f"{tool.name:32} {tool.purpose}")


def _arguments(pairs: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{pair!r} is not key=value")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


@click.command()
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="Print the data as JSON.")
def call(tool: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """Call TOOL. JSON values are sent as such, others as text.

    LOMI_CLIENT_LABEL and LOMI_CLIENT_TOKEN say who you are.
    """
    from lomi.client.client import Answer, connect
    from lomi.client.errors import BrokerFaultError, InvalidArgumentsError, ToolError
    from lomi.client.find import own_broker
    from lomi.link.errors import BrokerAbsentError, LinkError

    arguments = _arguments(pairs)

    async def ask() -> Answer:
        found = own_broker(os.environ)
        label = os.environ.get("LOMI_CLIENT_LABEL", "lomi call")
        token = os.environ.get("LOMI_CLIENT_TOKEN")
        async with connect(found.discovery_file, found.discovery_key, label=label, token=token) as client:
            return await client.call(tool, arguments)

    try:
        answer = asyncio.run(ask())
    except BrokerAbsentError:
        fail_without_broker()
    except ToolError as error:
        fail(str(error), error.hint)
    except (InvalidArgumentsError, BrokerFaultError, LinkError) as error:
        fail(str(error))
    click.echo(answer.data.decode() if as_json else answer.text)
