"""Owner commands to the running broker of this home."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from lomi.cli.failing import fail, fail_without_broker
from lomi.client.client import connect
from lomi.client.errors import BrokerFaultError, InvalidArgumentsError, ToolError
from lomi.client.find import own_broker
from lomi.link.errors import BrokerAbsentError, LinkError

T = TypeVar("T")


class OwnerLink:
    """A live connection with the role of the owner."""

    def __init__(self, call: Callable[[str, Mapping[str, object]], Awaitable[Any]]) -> None:
        self._call = call

    async def ask(self, command: str, arguments: Mapping[str, object], kind: type[T]) -> T:
        """One command and its answer.

        Raises:
            ToolError, LinkError, BrokerFaultError, InvalidArgumentsError, msgspec.ValidationError: see `explained`.
        """
        answer: T = (await self._call(command, arguments)).read(kind)
        return answer


@asynccontextmanager
async def owner_link() -> AsyncIterator[OwnerLink]:
    """Connect to the broker of this home.

    Raises:
        BrokerAbsentError: there is none.
        LinkError: it can't be reached.
    """
    found = own_broker(os.environ)
    options = {"role": "owner"}
    async with connect(found.discovery_file, found.discovery_key, label="lomi owner", options=options) as client:
        yield OwnerLink(client.call)


def explained(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` against the broker; what goes wrong ends the command with one line and a hint."""
    try:
        return asyncio.run(work)
    except BrokerAbsentError:
        fail_without_broker()
    except (LinkError, ToolError) as error:
        fail(f"the broker can't be reached: {error}", "see `lomi doctor` and the broker's own terminal")
    except (BrokerFaultError, InvalidArgumentsError) as error:
        fail(f"the broker did not take the command: {error}", "use the same version of lomi for both; see `lomi logs`")
    except msgspec.ValidationError as error:
        fail(f"the broker answered something else: {error}", "use the same version of lomi for both")


def ask_broker(command: str, arguments: Mapping[str, object], kind: type[T]) -> T:
    """Connect, ask, and return the answer; ends the command with a hint when no broker is there."""

    async def ask() -> T:
        async with owner_link() as link:
            return await link.ask(command, arguments, kind)

    return explained(ask())
