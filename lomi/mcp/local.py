"""The MCP surface without a broker: the same server and tools over a backend that only knows why there is no broker."""

import asyncio
import platform
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import msgspec

from lomi.contract.codes import API_VERSION, MESSAGES, ErrorCode
from lomi.contract.model import Connection, Data, Input
from lomi.contract.profiles import select
from lomi.contract.scopes import SCOPES
from lomi.contract.session import Capability, Diagnostics, DiagnosticsInput, Status, StatusInput
from lomi.core.backend import InvalidParams, Request, ToolList, ToolReply
from lomi.core.tool_list import tool_list
from lomi.mcp.pipe import Standing
from lomi.mcp.session import serve
from lomi.mcp.traffic import SendLine

I = TypeVar("I", bound=Input)  # noqa: E741  one input model per tool
_LOOK_SECONDS = 0.1
_NEXT_STEP = {
    "discovery_absent": "No broker runs for this user: start one with `lomi up`.",
    "socket_absent": "The broker has stopped: start it again with `lomi up`.",
}
_SESSION_ENDED = "Restart the client process to pair again."


async def serve_local(
    lines: AsyncIterator[bytes], send_line: SendLine, standing: Standing, selection: Mapping[str, str]
) -> None:
    """Serve MCP until the lines end. `selection` is what the client was started with: `profile`, `tools`."""
    selected = select(profile=selection.get("profile"), tools=selection.get("tools"))
    await serve(lines, send_line, LocalBackend(standing, tool_list(selected)))


class LocalBackend:
    """Answers status and diagnostics, and APP_UNAVAILABLE to the rest; after a loss CONTROL_REVOKED to everything."""

    def __init__(self, standing: Standing, listed: ToolList) -> None:
        self._standing = standing
        self._listed = listed
        self._names = frozenset(tool.name for tool in listed.tools)

    def listed(self) -> ToolList:
        """The same tools as the broker's."""
        return self._listed

    async def call(self, tool: str, arguments: bytes, *, request: Request) -> ToolReply:  # noqa: ARG002  the port's form
        """Answer from what is known here.

        Raises:
            InvalidParams: unknown tool, or other arguments than those of status and diagnostics.
        """
        if self._standing.phase == "disconnected":
            return _error(ErrorCode.CONTROL_REVOKED, "session_ended", _SESSION_ENDED)
        if tool not in self._names:
            raise InvalidParams(f"unknown tool {tool}")
        if tool == "lomi_status":
            return await self._status(_decode(arguments, StatusInput))
        if tool == "lomi_diagnostics":
            _decode(arguments, DiagnosticsInput)
            return _ok(Diagnostics(connection=self._phase(), ui_ready=False, next_step=self._next_step()))
        return _error(ErrorCode.APP_UNAVAILABLE, None, self._next_step())

    async def _status(self, wanted: StatusInput) -> ToolReply:
        """Wait as asked until a broker is there; what it says of this session is its own to answer next time."""
        if wanted.wait_ms > 0:
            try:
                async with asyncio.timeout(min(wanted.wait_ms, 55_000) / 1000):
                    while not await self._standing.look():  # noqa: ASYNC110  a file that appears gives no event
                        await asyncio.sleep(_LOOK_SECONDS)
            except TimeoutError:
                pass
        if self._standing.phase == "disconnected":
            return _error(ErrorCode.CONTROL_REVOKED, "session_ended", _SESSION_ENDED)
        return _ok(
            Status(
                connection=self._phase(),
                pairing_request_id=None,
                instance_id=None,
                ui_ready=False,
                platform=f"{platform.system().lower()}-{platform.machine()}",
                capabilities=tuple(
                    Capability(name=scope, available=False, authorized=False, qualified=False) for scope in SCOPES
                ),
                limitations=(self._next_step(),),
            )
        )

    def _phase(self) -> Connection:
        return "connecting" if self._standing.phase == "connected" else self._standing.phase

    def _next_step(self) -> str:
        if self._standing.phase == "connected":
            return "A broker has just been found: ask again."
        reason = self._standing.absence
        return _NEXT_STEP.get(reason, f"The broker can't be reached ({reason}): see `lomi doctor`.")


def _decode(arguments: bytes, kind: type[I]) -> I:
    try:
        return msgspec.json.decode(arguments, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidParams(str(error)) from None


def _ok(data: Data) -> ToolReply:
    envelope = {"controlApiVersion": API_VERSION, "status": "ok", "data": data}
    return ToolReply(structured=msgspec.json.encode(envelope), text=_text(data))


def _text(data: Data) -> str:
    if isinstance(data, Status):
        return "\n".join((f"status: {data.connection}", *data.limitations))
    assert isinstance(data, Diagnostics)
    return f"diagnostics: {data.connection}\n{data.next_step}"


def _error(code: ErrorCode, reason: str | None, hint: str) -> ToolReply:
    envelope = {"controlApiVersion": API_VERSION, "status": "error", "code": code, "message": MESSAGES[code]}
    if reason is not None:
        envelope |= {"reason": reason, "hint": hint}
    return ToolReply(structured=msgspec.json.encode(envelope), text=f"{code}: {MESSAGES[code]}\n{hint}", is_error=True)
