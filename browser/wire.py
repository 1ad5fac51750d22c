"""The inspector protocol, typed: narrow listeners and decoded answers over Playwright's CDP sessions."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast

import msgspec
from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from browser.errors import BrowserError, ContextGoneError, PageEndedError, ProtocolError, UnresponsiveError

T = TypeVar("T")

DOM_DEADLINE_S = 3.0
ATTACH_S = 10.0  # a fresh page on a busy machine

# What Playwright says when a target, a session or a whole engine went away under a call.
_GONE = (
    "Target page, context or browser has been closed",
    "Target closed",
    "Session closed",
    "Connection closed",
    "has been closed",
    "crashed",
)
_NO_CONTEXT = (
    "Cannot find context",
    "Execution context was destroyed",
    "Inspected target navigated",
    "uniqueContextId not found",
    "Cannot find object with id",
)


class Emitter(Protocol):
    """Anything of Playwright's that listeners are put on."""

    def on(self, event: str, f: Callable[..., None]) -> None:
        """Call `f` at every such event."""
        ...


class Faults:
    """Counts events that did not have the documented shape.

    An exception in a listener would surface in an unrelated call.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last = ""

    def note(self, where: str, fault: Exception) -> None:
        """Remember one malformed event."""
        self.count += 1
        self.last = f"{where}: {fault!r}"[:300]


def listen(session: CDPSession, event: str, shape: type[T], handler: Callable[[T], None], faults: Faults) -> None:
    """Call `handler` with each decoded event; what can't be decoded is counted and dropped."""

    def receive(raw: object) -> None:
        try:
            handler(msgspec.convert(raw, shape, strict=False))
        except (msgspec.ValidationError, LookupError, ValueError, TypeError) as fault:
            faults.note(event, fault)

    session.on(event, receive)


def translated(error: PlaywrightError) -> BrowserError:
    """The library's own error for one of Playwright's."""
    text = str(error)
    if any(mark in text for mark in _NO_CONTEXT):
        return ContextGoneError("document_gone")
    if any(mark in text for mark in _GONE):
        return PageEndedError("closed")
    return ProtocolError("protocol_error", said=text.splitlines()[0][:200] if text else "")


async def send(
    session: CDPSession, method: str, params: Mapping[str, object] | None = None, *, deadline_s: float = DOM_DEADLINE_S
) -> object:
    """One protocol call.

    Raises:
        ContextGoneError: the document went away.
        PageEndedError: the page or engine went away.
        UnresponsiveError: no answer in `deadline_s`.
        ProtocolError: the engine refused the call.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return cast("object", await session.send(method, dict(params or {})))
    except TimeoutError:
        raise UnresponsiveError("page_unresponsive", call=method) from None
    except PlaywrightError as error:
        raise translated(error) from error


async def ask(
    session: CDPSession,
    method: str,
    params: Mapping[str, object],
    shape: type[T],
    *,
    deadline_s: float = DOM_DEADLINE_S,
) -> T:
    """One protocol call whose answer is decoded into `shape`. Raises as `send`."""
    return msgspec.convert(await send(session, method, params, deadline_s=deadline_s), shape, strict=False)


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
