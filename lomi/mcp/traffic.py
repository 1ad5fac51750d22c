"""The requests under way on one session, and the two streams through which the SDK sees them."""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

import anyio
import msgspec
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from lomi.core.backend import Backend
from lomi.link.errors import LinkError
from lomi.mcp.bounds import END_OF_INPUT, FAREWELL_SECONDS, MAX_LINE
from lomi.mcp.lines import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    TOO_MANY_PENDING,
    Incoming,
    RefusedLine,
    RequestId,
    read_line,
)

MAX_PENDING = 1024
_MOST_BEFORE = 8
"""Messages before the first request that are kept for it, as many as the SDK keeps."""
SendLine = Callable[[bytes], Awaitable[None]]
"""Sends one whole line, never interleaved with another; raises OSError or LinkError when the other side is gone."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request of the client, from its line to its answer."""

    backend: Backend
    id: RequestId
    arguments: bytes
    wants_progress: bool
    cancellable: bool
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    parts: dict[str, msgspec.Raw] = field(default_factory=dict)


class Traffic:
    """What reader and writer share: the requests in flight."""

    def __init__(self, lines: AsyncIterator[bytes], send_line: SendLine, backend: Backend) -> None:
        self._lines = lines
        self._send_line = send_line
        self._backend = backend
        self._exchanges: dict[RequestId, Exchange] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._client_left = False
        self._handshake = False
        self._held: deque[SessionMessage] = deque()

    async def opens_with_handshake(self) -> bool:
        """Whether the first request is `initialize`. It is still `next_message`'s to give, and what came before it."""
        while (arrived := await self._arriving()) is not None:
            if isinstance(arrived.message, JSONRPCRequest):
                self._held.append(arrived)
                self._handshake = arrived.message.method == "initialize"
                break
            if len(self._held) < _MOST_BEFORE:
                self._held.append(arrived)
        return self._handshake

    async def next_message(self) -> SessionMessage | None:
        """The next message that is the SDK's to answer; None at the end of input."""
        return self._held.popleft() if self._held else await self._arriving()

    async def _arriving(self) -> SessionMessage | None:
        if self._client_left:
            return None
        async for line in self._lines:
            if line == END_OF_INPUT:
                self._client_left = True
                break
            try:
                incoming = read_line(line)
                message = self._admit(incoming) if incoming is not None else None
            except RefusedLine as refused:
                await self._refuse(refused)
                continue
            if message is not None:
                return message
        await self._farewell()
        return None

    def _admit(self, incoming: Incoming) -> SessionMessage | None:
        if incoming.id is None:
            return self._notification(incoming)
        key = coerce_request_id(incoming.id)
        if key in self._exchanges:
            # Its id can't be named in the answer: the client would take that for the answer of the first one.
            raise RefusedLine(INVALID_REQUEST, "the id is that of a request still under way")
        if self._handshake and incoming.method != "initialize" and PROTOCOL_VERSION_META_KEY in _meta(incoming.params):
            message = "this session began with a handshake: requests carry no protocol version"
            raise RefusedLine(INVALID_REQUEST, message, incoming.id)
        if len(self._exchanges) >= MAX_PENDING:
            raise RefusedLine(TOO_MANY_PENDING, f"at most {MAX_PENDING} requests may be under way", incoming.id)
        exchange = Exchange(
            backend=self._backend,
            id=incoming.id,
            arguments=incoming.arguments or b"{}",
            wants_progress="progressToken" in _meta(incoming.params),
            cancellable=incoming.method != "initialize",
        )
        self._exchanges[key] = exchange
        self._idle.clear()

        async def forget() -> None:
            self.settle(key)

        request = JSONRPCRequest(jsonrpc="2.0", id=incoming.id, method=incoming.method, params=incoming.params)
        return SessionMessage(request, ServerMessageMetadata(request_context=exchange, on_request_unanswered=forget))

    def _notification(self, incoming: Incoming) -> SessionMessage | None:
        """Pass on what means something here; a flood of anything else costs one look each."""
        if incoming.method == "notifications/cancelled":
            named = (incoming.params or {}).get("requestId")
            if not isinstance(named, int | str) or isinstance(named, bool):
                return None
            exchange = self._exchanges.get(coerce_request_id(named))
            if exchange is None or not exchange.cancellable:
                return None
            # The handler can't tell this from the end of input by its CancelledError; so it is noted first.
            exchange.cancelled.set()
        elif incoming.method != "notifications/initialized":
            return None
        return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=incoming.method, params=incoming.params))

    async def _farewell(self) -> None:
        try:
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._idle.wait()
        except TimeoutError:
            return

    def settle(self, key: RequestId) -> Exchange | None:
        """Take a request out of those in flight."""
        exchange = self._exchanges.pop(key, None)
        if not self._exchanges:
            self._idle.set()
        return exchange

    async def _refuse(self, refused: RefusedLine) -> None:
        # Nobody there to hear it is no fault of the session: its lines end by themselves.
        with contextlib.suppress(anyio.BrokenResourceError):
            await self._send({"id": refused.id, "error": {"code": refused.code, "message": refused.message}})

    async def answer(self, message: JSONRPCResponse | JSONRPCError | JSONRPCNotification | JSONRPCRequest) -> None:
        """Write what the SDK made, with the parts of that request spliced in."""
        if isinstance(message, JSONRPCNotification | JSONRPCRequest):
            # The standard library's encoder: a progress token may be an integer of any size.
            plain = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
            await self._write(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())
            return
        exchange = self.settle(coerce_request_id(message.id)) if message.id is not None else None
        if isinstance(message, JSONRPCError):
            if message.error.code == CONNECTION_CLOSED and not self._client_left:
                # The session ends while its client is there: the helper says so for every call under way.
                return
            await self._send({"id": message.id, "error": _error(message)})
            return
        parts = exchange.parts if exchange is not None else {}
        line = _line({"id": message.id, "result": {**message.result, **parts}})
        if len(line) > MAX_LINE:
            line = _line({"id": message.id, "error": {"code": INTERNAL_ERROR, "message": "the answer is over 8 MiB"}})
        await self._write(line)

    async def _send(self, message: dict[str, object]) -> None:
        await self._write(_line(message))

    async def _write(self, line: bytes) -> None:
        try:
            await self._send_line(line)
        except (OSError, LinkError) as error:
            raise anyio.BrokenResourceError from error


class Reader:
    """The SDK's read stream over a session."""

    def __init__(self, session: Traffic) -> None:
        self._session = session

    async def receive(self) -> SessionMessage:
        """The next message."""
        message = await self._session.next_message()
        if message is None:
            raise anyio.EndOfStream
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        message = await self._session.next_message()
        if message is None:
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class Writer:
    """The SDK's write stream over a session."""

    def __init__(self, session: Traffic) -> None:
        self._session = session

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message."""
        await self._session.answer(item.message)

    async def aclose(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


def _meta(params: dict[str, object] | None) -> dict[str, object]:
    meta = params.get("_meta") if params else None
    return meta if isinstance(meta, dict) else {}


def _error(message: JSONRPCError) -> dict[str, object]:
    if message.error.code == 0:
        # The SDK's mark for an exception that nobody mapped; its text may name paths or other sessions.
        return {"code": INTERNAL_ERROR, "message": "internal error"}
    return message.error.model_dump(mode="json", exclude_none=True)


def _line(message: dict[str, object]) -> bytes:
    # The id stands near the front of every line, so that a pipe can find it without reading the rest.
    return msgspec.json.encode({"jsonrpc": "2.0", **message})
