"""One owner command to the running broker of this home."""

import asyncio
import os
from typing import TypeVar

import msgspec

from lomi.cli.failing import fail
from lomi.client.client import connect
from lomi.client.errors import ToolError
from lomi.client.find import own_broker
from lomi.link.errors import BrokerAbsentError, LinkError

T = TypeVar("T")


def ask_broker(command: str, arguments: dict[str, object], kind: type[T]) -> T:
    """Connect, ask, and return the answer; ends the command with a hint when no broker is there."""

    async def ask() -> T:
        found = own_broker(os.environ)
        async with connect(
            found.discovery_file, found.discovery_key, label="lomi owner", options={"role": "owner"}
        ) as client:
            return (await client.call(command, arguments)).read(kind)

    try:
        return asyncio.run(ask())
    except BrokerAbsentError:
        fail("no broker runs on this home", "start one with `lomi up`")
    except (LinkError, ToolError) as error:
        fail(f"the broker can't be reached: {error}", "see `lomi status` and the broker's own terminal")
    except msgspec.ValidationError as error:
        fail(f"the broker answered something else: {error}", "use the same version of lomi for both")
