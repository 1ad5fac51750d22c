"""Calls of `lomi call`: one connection, through pairing, each call completed, followed to its end and printed."""

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import NoReturn, TypeVar

import click

from lomi.cli.arguments import arguments_of, entry_of, near
from lomi.cli.failing import CommandFailed, fail, fail_without_broker
from lomi.cli.supply import Arguments, Receipt, Supply
from lomi.client.client import Client, connect
from lomi.client.errors import (
    BrokerFaultError,
    ConnectionLostError,
    ControlRevokedError,
    InvalidArgumentsError,
    PairingRequiredError,
    ToolError,
)
from lomi.client.find import own_broker
from lomi.contract.session import Status, StatusInput
from lomi.link.errors import BrokerAbsentError, LinkError

T = TypeVar("T")
WAIT_MS = 15_000
"""How long a call waits for its receipt where the person does not say: the most that the contract allows."""
_IN_THE_TOOL = ("malformed", "scope_missing")
"""Reasons whose hints speak of a tool's documentation."""

_MOST_NAME = 128
_MOST_LINE = 262_144
"""Characters of a line: splitting one into words takes time that grows with its square."""


class Caller:
    """Makes calls as the client that `environment` names, and prints their answers."""

    def __init__(self, environment: Mapping[str, str], *, as_json: bool) -> None:
        self._environment = environment
        self._as_json = as_json

    async def one(self, tool: str, pairs: Sequence[str]) -> None:
        """One call in a session of its own.

        Raises:
            click.UsageError, CommandFailed: it can't be made, or failed.
        """
        _check_name(tool)
        with _explained(tool):
            given = arguments_of(entry_of(tool), pairs)
            async with self._connected() as client:
                supply = Supply(client)
                await _through_pairing(client, lambda: self._call(client, supply, tool, given))

    async def each_line(self) -> None:
        """A call for each line of standard input, in one session; ends at the first that fails, unless a person types.

        Raises:
            click.UsageError, CommandFailed: a line is no call, or failed.
        """
        if sys.stdin is None:
            fail("standard input is closed", "with - each line of standard input is TOOL [KEY=VALUE]...")
        with _explained("TOOL"):
            async with self._connected() as client:
                supply = Supply(client)
                async for line in _lines():
                    try:
                        await self._line(client, supply, line)
                    except (CommandFailed, click.UsageError) as failed:
                        if not sys.stdin.isatty():
                            raise
                        click.echo(f"Error: {failed.format_message()}", err=True)

    async def _line(self, client: Client, supply: Supply, line: str) -> None:
        if len(line) > _MOST_LINE:
            raise click.UsageError(f"a line of {len(line)} characters; {_MOST_LINE} are the most")
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise click.UsageError(f"{line.strip()!r}: {error}") from error
        if not words:
            return
        tool, *pairs = words
        _check_name(tool)
        with _explained(tool):
            given = arguments_of(entry_of(tool), pairs)
            await _through_pairing(client, lambda: self._call(client, supply, tool, given))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        found = own_broker(self._environment)
        label = self._environment.get("LOMI_CLIENT_LABEL", "lomi call")
        token = self._environment.get("LOMI_CLIENT_TOKEN")
        async with connect(found.discovery_file, found.discovery_key, label=label, token=token) as client:
            yield client

    async def _call(self, client: Client, supply: Supply, tool: str, given: Arguments) -> None:
        entry = entry_of(tool)
        whole = given if entry is None else await supply.complete(entry, given)
        acts = entry is not None and entry.retry in ("key", "sequence_stored")
        follows = acts and "waitMs" not in given
        if follows:
            whole["waitMs"] = WAIT_MS
        answer = await client.call(tool, whole)
        supply.learn(whole, answer)
        if follows and (ended := await supply.follow(answer)) is not answer:
            answer = ended
            supply.learn(whole, answer)
        click.echo(answer.data.decode() if self._as_json else answer.text)
        sys.stdout.flush()
        failure = receipt.failure() if acts and (receipt := Receipt.of(answer)) is not None else None
        if failure is not None:
            fail(*failure)


def _check_name(tool: str) -> None:
    """End the command for a word that no broker of any version could have as a tool, and that may not be sendable."""
    if not tool.isascii() or len(tool) > _MOST_NAME:
        fail(f"unknown tool {tool[:_MOST_NAME]!r}", "`lomi tools` lists them")


@contextmanager
def _explained(tool: str) -> Iterator[None]:
    """What goes wrong with a call ends the command with one line and a hint."""
    try:
        yield
    except BrokerAbsentError:
        fail_without_broker()
    except ToolError as error:
        said = str(error) if error.field is None else f"{error} at {error.field}"
        shown = f" `lomi tools {tool}` shows its scopes and fields." if error.reason in _IN_THE_TOOL else ""
        fail(said, f"{error.hint or ''}{shown}".strip() or None)
    except InvalidArgumentsError as error:
        fail(str(error), near(tool) or f"`lomi tools {tool}` shows its fields")
    except (BrokerFaultError, LinkError) as error:
        fail(str(error), "see `lomi doctor` and `lomi logs`")


async def _lines() -> AsyncIterator[str]:
    """Lines of standard input as they come. The thread holds no lock that the end of the process would wait for."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def tell(line: str | None) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        rest = b""
        try:
            while piece := os.read(descriptor, 65_536):
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    tell(line.decode(errors="surrogateescape"))
            tell(rest.decode(errors="surrogateescape"))
            tell(None)
        except (OSError, RuntimeError):
            # The input or the loop is gone; nobody waits for a line any more where it is the loop.
            with suppress(RuntimeError):
                tell(None)

    descriptor = sys.stdin.fileno()
    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


async def _approved(client: Client) -> None:
    """Wait until the person at the broker has answered the pairing."""
    status = (await client.call("lomi_status", StatusInput())).read(Status)
    if status.connection == "pairing_required":
        click.echo(f"waiting for the person at the broker to approve request {status.pairing_request_id}", err=True)
    while status.connection == "pairing_required":
        status = (await client.call("lomi_status", StatusInput(wait_ms=55_000))).read(Status)
    if status.connection != "connected":
        _declined()


def _declined() -> NoReturn:
    fail("the pairing was declined, or nobody answered in time", "ask the person at the broker, then try again")


async def _through_pairing(client: Client, act: Callable[[], Awaitable[T]]) -> T:
    """Do `act` once this client is paired; an answer that came before we asked ends it the same way as a later one."""
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
