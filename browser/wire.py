"""The inspector protocol, typed: narrow listeners, decoded answers, deadlines."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from browser.errors import UnresponsiveError
from browser.inspector.connection import Received, Session, decoded

T = TypeVar("T")

DOM_DEADLINE_S = 3.0
ATTACH_S = 10.0  # a fresh page on a busy machine


class Faults:
    """Counts events that did not have the documented shape.

    An exception in a listener would end the connection to the engine.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last = ""

    def note(self, where: str, fault: Exception) -> None:
        """Remember one malformed event."""
        self.count += 1
        self.last = f"{where}: {fault!r}"[:300]


def listen(session: Session, event: str, shape: type[T], handler: Callable[[T], None], faults: Faults) -> None:
    """Call `handler` with each decoded event; what can't be decoded is counted and dropped."""

    def receive(raw: msgspec.Raw) -> None:
        try:
            handler(decoded(raw, shape))
        except (msgspec.DecodeError, LookupError, ValueError, TypeError) as fault:
            faults.note(event, fault)

    session.on(event, receive)


async def send(
    session: Session,
    method: str,
    params: Mapping[str, object] | None = None,
    *,
    deadline_s: float = DOM_DEADLINE_S,
    received: Received | None = None,
) -> msgspec.Raw:
    """One protocol call; `received` as for `Session.call`.

    Raises:
        ContextGoneError: the document went away.
        PageEndedError: the page or engine went away.
        UnresponsiveError: no answer in `deadline_s`.
        ProtocolError: the engine refused the call.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return await session.call(method, params, received=received)
    except TimeoutError:
        raise UnresponsiveError("page_unresponsive", call=method) from None


async def ask(
    session: Session,
    method: str,
    params: Mapping[str, object],
    shape: type[T],
    *,
    deadline_s: float = DOM_DEADLINE_S,
) -> T:
    """One protocol call whose answer is decoded into `shape`. Raises as `send`."""
    return decoded(await send(session, method, params, deadline_s=deadline_s), shape)


class Nothing(msgspec.Struct):
    """An event of which only the coming matters."""


class RemoteObject(msgspec.Struct, rename="camel"):
    """A value or object of the page, as the protocol describes it."""

    type: str = ""
    subtype: str | None = None
    value: object = None
    description: str | None = None
    object_id: str | None = None
    unserializable_value: str | None = None


class ExceptionThrown(msgspec.Struct, rename="camel"):
    """Details of an exception of page script."""

    text: str = ""
    url: str | None = None
    line_number: int = 0
    exception: RemoteObject | None = None


class Returned(msgspec.Struct, rename="camel"):
    """Answer of a function call in a page."""

    result: RemoteObject
    exception_details: ExceptionThrown | None = None
