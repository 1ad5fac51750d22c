"""The inspector protocol: one connection to an engine, and a session for each of its targets that we follow."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from browser.errors import BrowserError, ContextGoneError, PageEndedError, ProtocolError

T = TypeVar("T")
Received = Callable[[msgspec.Raw], None]

_GONE = ("Target closed", "Session with given id not found", "No target with given id", "Inspected target")
_NO_CONTEXT = (
    "Cannot find context",
    "Execution context was destroyed",
    "Inspected target navigated",
    "uniqueContextId not found",
    "Cannot find object with id",
    "Could not find object with given id",
)


class _Fault(msgspec.Struct):
    message: str = ""


class _Message(msgspec.Struct, rename="camel"):
    id: int | None = None
    method: str | None = None
    session_id: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"{}")
    error: _Fault | None = None


class _Call(msgspec.Struct, rename="camel", omit_defaults=True):
    id: int
    method: str
    params: Mapping[str, object]
    session_id: str = ""


def decoded(raw: bytes | msgspec.Raw, shape: type[T]) -> T:
    """JSON of the engine's as a value of ours.

    Page text may hold lone surrogates, which are no Unicode: they become U+FFFD.

    Raises:
        msgspec.DecodeError, msgspec.ValidationError: it has another shape.
    """
    try:
        return msgspec.json.decode(raw, type=shape, strict=False)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = json.dumps(json.loads(bytes(raw).decode("utf-8", "replace")), ensure_ascii=False)
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return msgspec.json.decode(whole, type=shape, strict=False)


def _error_of(message: str) -> BrowserError:
    if any(mark in message for mark in _NO_CONTEXT):
        return ContextGoneError("document_gone")
    if any(mark in message for mark in _GONE):
        return PageEndedError("closed")
    return ProtocolError("protocol_error", said=message[:200])


class Session:
    """One target of the engine (or, without a name, the engine itself) as a partner in the protocol.

    Attributes:
        ended: why no call can be answered any more; None while it lives.
    """

    def __init__(self, connection: "Connection", name: str) -> None:
        self.name = name
        self.ended: str | None = None
        self.on_ended: list[Callable[[], None]] = []
        self._connection = connection
        self._handlers: dict[str, list[Callable[[msgspec.Raw], None]]] = {}
        self._waiting: dict[int, tuple[asyncio.Future[msgspec.Raw], Received | None]] = {}

    async def call(
        self, method: str, params: Mapping[str, object] | None = None, *, received: Received | None = None
    ) -> msgspec.Raw:
        """One call, sent at once and in order; its answer as the engine wrote it.

        `received` is told of the answer before any event that follows it; whoever awaits is told after all that came
        along with it. It must not raise.

        Raises:
            ContextGoneError: the document went away.
            PageEndedError: the target or the engine went away.
            ProtocolError: the engine refused the call.
        """
        if self.ended is not None:
            raise PageEndedError(self.ended)
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        number = self._connection.write(self.name, method, params or {})
        self._waiting[number] = (answer, received)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    def post(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """One call whose answer nobody waits for; nothing when the target is gone."""
        if self.ended is None:
            self._connection.write(self.name, method, params or {})

    def on(self, event: str, handler: Callable[[msgspec.Raw], None]) -> Callable[[], None]:
        """Call `handler` with each such event's parameters, at once and in order, until the answer is called.

        It must not raise.
        """
        handlers = self._handlers.setdefault(event, [])
        handlers.append(handler)
        return lambda: handlers.remove(handler)

    def detach(self) -> None:
        """Follow this target no longer."""
        self._connection.root.post("Target.detachFromTarget", {"sessionId": self.name})
        self.end("closed")

    def end(self, reason: str) -> None:
        """Nothing will be answered any more; whoever waits is told."""
        if self.ended is not None:
            return
        self.ended = reason
        self._connection.sessions.pop(self.name, None)
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(PageEndedError(reason))
        for told in tuple(self.on_ended):
            told()

    def receive(self, message: _Message) -> None:
        """One message of the engine for this session."""
        if message.method is not None:
            for handler in tuple(self._handlers.get(message.method, ())):
                handler(message.params)
            return
        answer, received = self._waiting.get(message.id or 0, (None, None))
        if answer is None or answer.done():
            return
        if message.error is not None:
            answer.set_exception(_error_of(message.error.message))
            return
        if received is not None:
            received(message.result)
        answer.set_result(message.result)


class Connection(asyncio.Protocol):
    """Messages end with a NUL byte each way."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.root = self.session("")
        self.on_lost: Callable[[], None] = lambda: None
        self._transport: asyncio.Transport | None = None
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(_Message)
        self._rest = bytearray()
        self._last = 0

    def session(self, name: str) -> Session:
        """The session of this name, begun now if it is not there."""
        if name not in self.sessions:
            self.sessions[name] = Session(self, name)
        return self.sessions[name]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The engine's end is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def write(self, session: str, method: str, params: Mapping[str, object]) -> int:
        """Send one call; its number."""
        self._last += 1
        if self._transport is not None:
            self._transport.write(self._encoder.encode(_Call(self._last, method, params, session)) + b"\0")
        return self._last

    def data_received(self, data: bytes) -> None:
        """Deal out what is whole."""
        if b"\0" not in data:
            self._rest += data
            return
        *whole, rest = data.split(b"\0")
        if self._rest:
            whole[0] = bytes(self._rest) + whole[0]
        self._rest = bytearray(rest)
        for text in whole:
            self._deal(text)

    def _deal(self, text: bytes) -> None:
        try:
            message = self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = decoded(text, _Message)
        session = self.sessions.get(message.session_id)
        if session is not None:
            session.receive(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """The engine is gone, and every target with it."""
        del exc
        self._transport = None
        self.on_lost()
        for session in list(self.sessions.values()):
            session.end("closed")

    def close(self) -> None:
        """Let the engine go."""
        if self._transport is not None:
            self._transport.close()
