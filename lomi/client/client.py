"""The client: connect once, call tools, many at once."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from lomi.client.errors import BrokerFaultError, ConnectionLostError, InvalidArgumentsError, tool_error
from lomi.client.protocol import (
    CallResponse,
    ProtocolBrokenError,
    cut_pictures,
    decode_response,
    encode_cancel,
    encode_request,
)
from lomi.contract.model import Input
from lomi.core.backend import ToolReply
from lomi.core.json_text import DuplicateKeyError, MalformedJsonError, read_object
from lomi.core.picture import Picture
from lomi.link.client import connect as connect_link
from lomi.link.connection import Wire
from lomi.link.errors import ChannelClosedError, LinkError
from lomi.link.frames import Kind
from lomi.link.limits import DESKTOP, LinkLimits
from lomi.link.messages import Welcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A call that the broker answered with data. `data` is the JSON of the envelope's `data`, `text` its short form."""

    data: bytes
    text: str
    pictures: tuple[Picture, ...]

    def read(self, kind: type[T]) -> T:
        """The data as a value of one of the contract's models.

        Raises:
            msgspec.ValidationError: the data is of another kind.
        """
        return msgspec.json.decode(self.data, type=kind)

    def plain(self) -> dict[str, object]:
        """The data as plain values, for callers that only show it."""
        return msgspec.json.decode(self.data, type=dict[str, object])


class _OkEnvelope(msgspec.Struct, frozen=True):
    data: msgspec.Raw


class Client:
    """A live connection of one paired (or still unpaired) session. Made by `connect`; any number of tasks may call.

    Attributes:
        welcome: the broker's first words: instance, phase and pairing request.
    """

    def __init__(self, wire: Wire, welcome: Welcome) -> None:
        self.welcome = welcome
        self._wire = wire
        self._waiting: dict[str, asyncio.Future[ToolReply]] = {}
        self._numbers = itertools.count(1)
        self._ended = False

    async def call(self, tool: str, arguments: Input | Mapping[str, object]) -> Answer:
        """Call a tool and return its data. Cancelling the wait asks the broker to cancel the call.

        Raises:
            ToolError: the broker's error envelope (`ConnectionLostError` when the connection ends first).
            InvalidArgumentsError: unknown tool, unknown field or wrong type.
            BrokerFaultError: the broker failed.
        """
        reply = await self.call_raw(tool, msgspec.json.encode(arguments))
        if reply.is_error:
            raise tool_error(reply.structured)
        try:
            data = bytes(msgspec.json.decode(reply.structured, type=_OkEnvelope).data)
        except msgspec.DecodeError as error:
            raise BrokerFaultError("an envelope of another shape") from error
        return Answer(data, reply.text, reply.pictures)

    async def call_raw(self, tool: str, arguments: bytes) -> ToolReply:
        """Call a tool with a JSON object and return the reply as the broker rendered it, error envelopes included.

        Raises:
            ConnectionLostError: the connection ended first.
            InvalidArgumentsError: not JSON, unknown tool, unknown field or wrong type.
            BrokerFaultError: the broker failed.
        """
        if self._ended:
            raise ConnectionLostError
        _check(arguments)
        request_id = f"r{next(self._numbers)}"
        answer: asyncio.Future[ToolReply] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            await self._wire.send(encode_request(request_id, tool, arguments))
            return await answer
        except LinkError as error:
            raise ConnectionLostError from error
        except asyncio.CancelledError:
            self._ask_to_cancel(request_id)
            raise
        finally:
            self._waiting.pop(request_id, None)

    async def receive(self) -> None:
        """Hand answers to those who wait for them, until the connection ends; `connect` runs this."""
        try:
            await self._receive()
        except (LinkError, ProtocolBrokenError):
            self._wire.abort()
        finally:
            self._ended = True
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionLostError())

    async def _receive(self) -> None:
        while True:
            frame = await self._wire.receive()
            if frame.kind is not Kind.JSON:
                raise ProtocolBrokenError("a frame of another kind")
            response = decode_response(frame.body)
            content: bytes | bytearray | memoryview = b""
            if any(head.byte_length for head in response.pictures):
                following = await self._wire.receive()
                if following.kind is not Kind.BINARY:
                    raise ProtocolBrokenError("announced pictures did not come")
                content = following.body
            pictures = cut_pictures(response.pictures, content)
            answer = self._waiting.get(response.request_id)
            if answer is not None and not answer.done():
                _settle(answer, response, pictures)

    def _ask_to_cancel(self, request_id: str) -> None:
        try:
            self._wire.send_nowait(encode_cancel(request_id))
        except ChannelClosedError:
            return


def _check(arguments: bytes) -> None:
    """Text that is not JSON would break the frame that carries it, and with it the connection."""
    try:
        read_object(arguments)
    except (MalformedJsonError, DuplicateKeyError) as error:
        raise InvalidArgumentsError(f"arguments: {error}") from error


def _settle(answer: asyncio.Future[ToolReply], response: CallResponse, pictures: tuple[Picture, ...]) -> None:
    if response.error is not None:
        kind, message = response.error.kind, response.error.message
        answer.set_exception(
            InvalidArgumentsError(message) if kind == "invalid_params" else BrokerFaultError(f"{kind}: {message}")
        )
        return
    assert isinstance(response.result, msgspec.Raw)
    answer.set_result(
        ToolReply(structured=bytes(response.result), text=response.text, pictures=pictures, is_error=response.is_error)
    )


@asynccontextmanager
async def connect(
    discovery_path: Path,
    public_key_hex: str,
    *,
    label: str,
    token: str | None = None,
    options: Mapping[str, str] | None = None,
    limits: LinkLimits = DESKTOP,
) -> AsyncIterator[Client]:
    """Connect to the broker that the discovery file names; the session ends with the context.

    Args:
        discovery_path: absolute path of the discovery file.
        public_key_hex: the key its signature must fit, 64 hex digits.
        label: our name as people see it, 1 to 80 characters without control characters.
        token: client token; it is never sent, only proven.
        options: small settings of the session.
        limits: deadlines of the connection.

    Raises:
        LinkError: no broker, a discovery file that is not to be trusted, or no acceptance.
    """
    async with connect_link(
        discovery_path, public_key_hex, label=label, token=token, purpose="calls", options=options, limits=limits
    ) as wire:
        client = Client(wire, wire.welcome)
        failure: BaseException | None = None
        async with asyncio.TaskGroup() as tasks:
            receiving = tasks.create_task(client.receive(), name="lomi-client")
            try:
                yield client
            except BaseException as error:  # noqa: BLE001  # raised below, outside the group that would wrap it
                failure = error
            finally:
                receiving.cancel()
        if failure is not None:
            raise failure
