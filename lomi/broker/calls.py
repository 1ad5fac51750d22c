"""One client's view of the broker: parse, admit, then read or act. The backend behind both kinds of connection."""

import asyncio
from contextlib import suppress
from typing import Any

from lomi.broker import rendering
from lomi.broker.admission import admit, see
from lomi.broker.border import captured
from lomi.broker.handlers.operation import standing
from lomi.broker.loop import Loop
from lomi.broker.operations import Operation
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.contract.bounds import OutOfBounds
from lomi.contract.codes import Details, ErrorCode, OperationState
from lomi.contract.definition import Definition
from lomi.contract.limits import QUEUED_CALLS
from lomi.contract.model import Data
from lomi.contract.parse import parse
from lomi.contract.profiles import ToolSelection
from lomi.core.backend import InvalidParams, Progress, Request, ToolList, ToolReply
from lomi.core.grant import Grant
from lomi.core.port import Act, Call, Read, Reply
from lomi.core.refusal import Refusal

NO_GRANT = Grant(scopes=frozenset(), workspaces=frozenset())
PROGRESS_S = 5.0
"""How often a waiting caller that gave a progress token hears of its operation, besides every change of state."""
READ_SLACK_S = 5.0
"""What a read may take beyond its own deadline before the broker ends it."""


class SessionBackend:
    """Implements `lomi.core.backend.Backend` for one session."""

    def __init__(self, world: World, loop: Loop, session: Session, selection: ToolSelection, listed: ToolList) -> None:
        self._world = world
        self._loop = loop
        self._session = session
        self._selection = selection
        self._listed = listed

    def listed(self) -> ToolList:
        """The tools of this client's selection."""
        return self._listed

    async def call(self, tool: str, arguments: bytes, *, request: Request) -> ToolReply:
        """Run one tool.

        Raises:
            InvalidParams: unknown tool, unknown field, wrong type.
        """
        definition = self._world.definitions.get(tool)
        if definition is None or not self._selection.admits(definition):
            raise InvalidParams(f"unknown tool {tool!r}")
        try:
            given = self._selection.defaulted(parse(definition, arguments))
            return await self._answer(definition, given, request)
        except OutOfBounds as outside:
            limit = Details(limit=outside.limit) if outside.limit is not None else None
            code = outside.code or ErrorCode.RESOURCE_EXHAUSTED
            return rendering.refusal(Refusal(code, outside.reason, field=outside.field, details=limit))
        except Refusal as said:
            return rendering.refusal(said)

    async def _answer(self, definition: Definition, given: Any, request: Request) -> ToolReply:
        handler = self._world.handlers.get(definition.name)
        if definition.unpaired and isinstance(handler, Read):
            call = Call(tool=definition.name, input=given, session_id=self._session.id, grant=NO_GRANT)
            return rendering.ok(await self._read(handler, call, definition))
        if isinstance(handler, Act):
            return await self._act(definition, given, request)
        async with self._slot():
            admitted, _ = admit(self._world, self._session, definition, given)
            assert isinstance(handler, Read)
            if not definition.wait_of(given):
                return await self._observed(handler, admitted.call, definition)
        return await self._observed(handler, admitted.call, definition)

    def _slot(self) -> "_Slot":
        return _Slot(self._session)

    async def _read(self, handler: Read, call: Call[Any], definition: Definition) -> Reply:
        seconds = definition.deadline_s + READ_SLACK_S + definition.wait_of(call.input) / 1000
        try:
            async with asyncio.timeout(seconds):
                ended = await captured(handler.read(call))
        except TimeoutError as late:
            raise Refusal(ErrorCode.DEADLINE_EXCEEDED, "deadline") from late
        if isinstance(ended, (Refusal, Reply)):
            if isinstance(ended, Refusal):
                raise ended
            return ended
        if isinstance(ended, TimeoutError):
            raise Refusal(ErrorCode.DEADLINE_EXCEEDED, "deadline")
        raise Refusal(ErrorCode.APP_UNAVAILABLE, "adapter_failed_before")

    async def _observed(self, handler: Read, call: Call[Any], definition: Definition) -> ToolReply:
        """A read's answer, if authority, grant and generation still stand when it is there."""
        reply = await self._read(handler, call, definition)
        grant = self._world.sessions.require_authority(self._session)
        sight = see(self._world, self._session, grant, definition, call.input)
        if sight.resource is not None and sight.generation_given is not None:
            self._world.generations.check(sight.resource, sight.generation_given, sight.generation_field or "")
        return rendering.ok(reply)

    async def _act(self, definition: Definition, given: Any, request: Request) -> ToolReply:
        async with self._slot():
            admitted, sight = admit(self._world, self._session, definition, given)
            self._world.failpoints.reach("admitted")
            wait_s = definition.wait_of(given) / 1000
            operation = admitted.replayed or self._loop.begin(self._session, definition, admitted, sight, wait_s)
            await self._while_wanted(operation, operation.reserved.wait(), request)
        if operation.stored_before:
            return await self._stored_before(operation)
        if operation.refused is not None:
            raise operation.refused
        if wait_s > 0 and not operation.answered.is_set():
            await self._while_wanted(operation, self._wait(operation, wait_s, request.progress), request)
        return self._receipt(operation)

    async def _while_wanted(self, operation: Operation, work: Any, request: Request) -> None:
        """Await `work`; a client that cancels its call asks the operation to stop, one that vanishes does not."""
        try:
            await work
        except asyncio.CancelledError:
            if request.cancelled.is_set():
                self._loop.cancel(operation)
            raise

    async def _wait(self, operation: Operation, wait_s: float, progress: Progress | None) -> None:
        try:
            async with asyncio.timeout(wait_s):
                if progress is None:
                    await operation.answered.wait()
                else:
                    await self._tell_progress(operation, progress)
        except TimeoutError:
            return

    async def _tell_progress(self, operation: Operation, progress: Progress) -> None:
        told = 0.0
        while not operation.answered.is_set():
            told += 1
            words = f": {operation.progress}" if operation.progress else ""
            await progress(told, None, f"{operation.definition.name} {operation.state}{words}")
            await self._next_news(operation, operation.state, operation.progress)

    async def _next_news(self, operation: Operation, known: OperationState, progress: str) -> None:
        """Return when the operation has left the known state or come further, or after `PROGRESS_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PROGRESS_S), self._world.changed:
                await self._world.changed.wait_for(
                    lambda: (operation.state, operation.progress) != (known, progress) or operation.answered.is_set()
                )

    async def _stored_before(self, operation: Operation) -> ToolReply:
        """Answer a repeat whose first request has left the memory: with its receipt, if it is the same request."""
        if operation.replay_key is None:
            raise Refusal(ErrorCode.IDEMPOTENCY_CONFLICT, "key_reused", field="/inputSequence")
        epoch, project, tool, key = operation.replay_key
        found = await self._world.store.receipt_by_key(
            session_id=self._session.id, epoch=epoch, project_id=project, tool=tool, key=key
        )
        if found is None or found.fingerprint != operation.fingerprint:
            raise Refusal(ErrorCode.IDEMPOTENCY_CONFLICT, "key_reused", field="/requestKey")
        return rendering.receipt(rendering.stored_receipt(found), tool=tool)

    def _receipt(self, operation: Operation) -> ToolReply:
        definition = operation.definition
        if definition.stored:
            return rendering.receipt(standing(self._world, self._session, operation), tool=definition.name)
        if isinstance(operation.value, Data):
            return rendering.ok(Reply(data=operation.value))
        failure = operation.failure
        if failure is not None:
            raise Refusal(failure.code, failure.reason, field=failure.field, details=failure.details)
        if operation.state is OperationState.CANCELLED:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
        raise Refusal(ErrorCode.DEADLINE_EXCEEDED, "still_running")


class _Slot:
    """One of a connection's 16 places for working calls; the next ones wait in order, at most 1,024 of them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __aenter__(self) -> None:
        if self._session.waiting >= QUEUED_CALLS:
            raise Refusal(ErrorCode.TARGET_BUSY, "window_full", details=Details(limit=QUEUED_CALLS))
        self._session.waiting += 1
        try:
            await self._session.slots.acquire()
        finally:
            self._session.waiting -= 1

    async def __aexit__(self, *ended: object) -> None:
        self._session.slots.release()
