"""What a session that faces a client sees of the broker: call a tool, list the tools."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from lomi.contract.bounds import InvalidParams
from lomi.core.picture import Picture

__all__ = ["Backend", "CancelSignal", "InvalidParams", "ListedTool", "Progress", "Request", "ToolList", "ToolReply"]

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells the client how far its call is: done so far (must grow), total if known, one line of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """One rendered reply, made by the broker's response builder.

    `structured` is the JSON of the envelope (pictures left out), `text` the short rendering for a model.
    """

    structured: bytes
    text: str
    pictures: tuple[Picture, ...] = ()
    is_error: bool = False


class CancelSignal(Protocol):
    """Whether the client asked to cancel; `asyncio.Event` is one."""

    def is_set(self) -> bool:
        """True from the moment the client's cancellation was read off the wire."""
        ...

    async def wait(self) -> bool:
        """Return True once the client asked to cancel; never returns otherwise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a client. `id` is unique among the requests in flight on its connection.

    When the client cancels, `cancelled` is set first and then the task that runs `Backend.call` is cancelled; at end of
    input or loss of the connection the task is cancelled with `cancelled` unset.
    """

    id: str
    cancelled: CancelSignal
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as clients list it. The schemas are JSON objects with `type: object` at their root."""

    name: str
    description: str
    input_schema: bytes
    output_schema: bytes
    read_only: bool
    destructive: bool
    open_world: bool
    idempotent: bool = True
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """All tools of one selection on one page; `digest` changes exactly when the content does."""

    tools: tuple[ListedTool, ...]
    digest: str


class Backend(Protocol):
    """One client's view of the broker."""

    async def call(self, tool: str, arguments: bytes, *, request: Request) -> ToolReply:
        """Run one tool. `arguments` is a raw JSON object of at most 64 KiB, without duplicate keys.

        Raises:
            InvalidParams: unknown tool, unknown field, wrong type.
        """
        ...

    def listed(self) -> ToolList:
        """The tools of this client's selection."""
        ...
