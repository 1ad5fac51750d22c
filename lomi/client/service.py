"""The broker's end of a `calls` connection: frames in, calls of a backend, frames out."""

import asyncio
import logging

from lomi.client.protocol import (
    CallRequest,
    ProtocolBrokenError,
    checked_arguments,
    decode_cancel,
    decode_request,
    encode_error,
    encode_reply,
)
from lomi.core.backend import Backend, InvalidParams, Request
from lomi.link.connection import Wire
from lomi.link.errors import LinkError
from lomi.link.frames import Frame, Kind
from lomi.link.limits import MAX_BODY

MAX_PENDING = 1024
_log = logging.getLogger(__name__)


async def serve_calls(wire: Wire, backend: Backend) -> None:
    """Answer one client until its connection ends; calls begin in the order of their frames.

    Calls under way at the end are cancelled, which cancels nothing that runs behind the backend.

    Raises:
        FrameRefusedError: the client broke the framing.
        ProtocolBrokenError: the client sent what is not of this protocol.
    """
    broken: ProtocolBrokenError | None = None
    async with asyncio.TaskGroup() as tasks:
        desk = _Desk(wire, backend, tasks)
        try:
            async for frame in wire.frames():
                await desk.take(frame)
        except ProtocolBrokenError as error:
            broken = error
        desk.clear()
    if broken is not None:
        raise broken


class _Desk:
    """The calls under way."""

    def __init__(self, wire: Wire, backend: Backend, tasks: asyncio.TaskGroup) -> None:
        self._wire = wire
        self._backend = backend
        self._tasks = tasks
        self._under_way: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    async def take(self, frame: Frame) -> None:
        """Begin or cancel a call."""
        if frame.kind is Kind.CANCEL:
            self._cancel(decode_cancel(frame.body).request_id)
            return
        if frame.kind is not Kind.JSON:
            raise ProtocolBrokenError("a frame of another kind")
        request = decode_request(frame.body)
        if request.request_id in self._under_way:
            raise ProtocolBrokenError("two calls with one id")
        if len(self._under_way) >= MAX_PENDING:
            await self._wire.send(encode_error(request.request_id, "too_many", f"at most {MAX_PENDING} calls"))
            return
        cancelled = asyncio.Event()
        task = self._tasks.create_task(self._answer(request, cancelled))
        self._under_way[request.request_id] = (task, cancelled)
        task.add_done_callback(lambda _: self._under_way.pop(request.request_id, None))

    def clear(self) -> None:
        """The connection is over."""
        for task, _ in self._under_way.values():
            task.cancel()

    def _cancel(self, request_id: str) -> None:
        found = self._under_way.get(request_id)
        if found is not None:
            task, cancelled = found
            cancelled.set()
            task.cancel()

    async def _answer(self, request: CallRequest, cancelled: asyncio.Event) -> None:
        call = self._call(request, cancelled)
        # Gathered, since a fault behind the backend must cost this call and not the broker.
        (outcome,) = await asyncio.gather(call, return_exceptions=True)
        if isinstance(outcome, InvalidParams):
            outcome = [encode_error(request.request_id, "invalid_params", str(outcome))]
        elif isinstance(outcome, BaseException):
            _log.error("a call of %s failed", request.request.tool, exc_info=outcome)
            outcome = [encode_error(request.request_id, "internal", "internal error")]
        try:
            await self._wire.send(*outcome)
        except LinkError:
            return

    async def _call(self, request: CallRequest, cancelled: asyncio.Event) -> list[Frame]:
        reply = await self._backend.call(
            request.request.tool,
            checked_arguments(request),
            request=Request(id=request.request_id, cancelled=cancelled),
        )
        frames = encode_reply(request.request_id, reply)
        if any(len(frame.body) > MAX_BODY for frame in frames):
            return [encode_error(request.request_id, "too_large", "the answer is over 8 MiB")]
        return frames
