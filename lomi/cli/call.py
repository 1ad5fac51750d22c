"""`lomi tools` and `lomi call`: the catalogue, and one call as any client would make it."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from lomi.cli.failing import fail, fail_without_broker

if TYPE_CHECKING:
    from lomi.client.client import Client

T = TypeVar("T")


@click.command()
@click.argument("tool", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the generated catalogue.")
def tools(tool: str | None, as_json: bool) -> None:
    """List the tools, or show the scopes and fields of TOOL."""
    from lomi.contract.listing import LOCATION, catalogue
    from lomi.docs import section

    if tool is not None:
        found = next((known for known in catalogue().tools if known.name == tool), None)
        if found is None:
            fail(f"no tool is named {tool!r}", _near(tool))
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


def _near(tool: str) -> str | None:
    """What to do about a name that no tool has; None for one that some tool has."""
    from difflib import get_close_matches

    from lomi.contract.listing import catalogue

    names = [known.name for known in catalogue().tools]
    if tool in names:
        return None
    near = get_close_matches(tool, names, 1)
    return f"did you mean {near[0]}? `lomi tools` lists them" if near else "`lomi tools` lists them"


async def _approved(client: "Client") -> None:
    """Wait until the person at the broker has answered the pairing."""
    from lomi.contract.session import Status, StatusInput

    status = (await client.call("lomi_status", StatusInput())).read(Status)
    if status.connection == "pairing_required":
        click.echo(f"waiting for the person at the broker to approve request {status.pairing_request_id}", err=True)
    while status.connection == "pairing_required":
        status = (await client.call("lomi_status", StatusInput(wait_ms=55_000))).read(Status)
    if status.connection != "connected":
        _declined()


def _declined() -> NoReturn:
    fail("the pairing was declined, or nobody answered in time", "ask the person at the broker, then try again")


async def _through_pairing(client: "Client", act: Callable[[], Awaitable[T]]) -> T:
    """Do `act` once this client is paired; an answer that came before we asked ends it the same way as a later one."""
    from lomi.client.errors import ConnectionLostError, ControlRevokedError, PairingRequiredError
    from lomi.contract.session import Status, StatusInput

    status = (await client.call("lomi_status", StatusInput())).read(Status)
    if status.connection == "disconnected":
        _declined()
    try:
        return await act()
    except PairingRequiredError as waiting:
        if waiting.reason != "waiting_for_approval":
            raise
    except ConnectionLostError:
        raise
    except ControlRevokedError:
        if status.connection == "pairing_required":
            _declined()
        raise
    await _approved(client)
    return await act()


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
            return await _through_pairing(client, lambda: client.call(tool, arguments))

    try:
        answer = asyncio.run(ask())
    except BrokerAbsentError:
        fail_without_broker()
    except ToolError as error:
        fail(str(error), error.hint)
    except InvalidArgumentsError as error:
        fail(str(error), _near(tool) or f"`lomi tools {tool}` shows its fields")
    except (BrokerFaultError, LinkError) as error:
        fail(str(error), "see `lomi doctor` and `lomi logs`")
    click.echo(answer.data.decode() if as_json else answer.text)
