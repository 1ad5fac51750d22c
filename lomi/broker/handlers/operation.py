"""Receipts: read one, cancel one."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from lomi.broker import rendering
from lomi.broker.loop import Loop
from lomi.broker.operations import Operation
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.contract.codes import ErrorCode
from lomi.contract.model import Receipt
from lomi.contract.operation import OperationCancelInput, OperationGetInput
from lomi.core.ids import GenerationId, OperationId
from lomi.core.port import Call, Read, Reply
from lomi.core.refusal import Refusal


def standing(world: World, session: Session, operation: Operation) -> Receipt:
    """An operation's receipt with the live lease of its session merged in."""
    lease_id = None
    if operation.result is not None:
        result = msgspec.json.decode(operation.result)
        name = result.get("terminalSessionId") or result.get("browserGeneration") or result.get("generation")
        holder = world.leases.holder(GenerationId(name)) if isinstance(name, str) else None
        lease_id = holder.id if holder is not None and holder.session_id == session.id else None
    return rendering.hydrated(operation, lease_id)


class OperationHandlers:
    """Answers about operations of the calling session."""

    def __init__(self, world: World, loop: Loop) -> None:
        self._world = world
        self._loop = loop

    def handlers(self) -> tuple[Read, ...]:
        """The handlers, for the broker's table."""
        return (
            Read(tool="lomi_operation_get", read=self.get),
            Read(tool="lomi_operation_cancel", read=self.cancel),
        )

    def _visible(self, call: Call[Any], operation: Operation | None) -> tuple[Session, Operation]:
        session = self._world.sessions.get(call.session_id)
        if session is None or operation is None:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/operationId")
        if operation.workspace_id is not None and not session.sees_workspace(operation.workspace_id):
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/operationId")
        definition, given = operation.definition, operation.call.input
        if definition.lacking_scopes(given, call.grant.scopes):
            raise Refusal(ErrorCode.SCOPE_DENIED, "scope_missing")
        return session, operation

    def _find(self, call: Call[OperationGetInput]) -> Operation | None:
        given = call.input
        session = self._world.sessions.get(call.session_id)
        if session is None:
            return None
        if given.operation_id is not None:
            return session.operations.get(OperationId(given.operation_id))
        found = [
            operation
            for (epoch, project, tool, key), operation in session.replay.items()
            if (epoch, tool, key) == (given.retry_epoch, given.tool, given.request_key)
            and given.project_id in (None, project)
        ]
        return found[0] if len(found) == 1 else None

    async def _stored(self, call: Call[OperationGetInput]) -> Reply | None:
        """A receipt of this session that has left the memory; its scopes are asked for again."""
        given, world = call.input, self._world
        session = world.sessions.get(call.session_id)
        if given.operation_id is not None:
            found = await world.store.receipt(given.operation_id)
        elif given.retry_epoch is not None and given.tool is not None and given.request_key is not None:
            found = await world.store.receipt_by_key(
                session_id=call.session_id,
                epoch=given.retry_epoch,
                project_id=given.project_id,
                tool=given.tool,
                key=given.request_key,
            )
        else:
            found = None
        if found is None or session is None or found.session_id != call.session_id:
            return None
        if found.workspace_id is not None and not session.sees_workspace(found.workspace_id):
            return None
        definition = world.definitions.get(found.tool)
        if definition is None or any(scope not in call.grant.scopes for scope in definition.scopes):
            raise Refusal(ErrorCode.SCOPE_DENIED, "scope_missing")
        receipt = rendering.stored_receipt(found)
        return Reply(data=receipt, text=rendering.receipt(receipt, tool=found.tool).text)

    async def get(self, call: Call[OperationGetInput]) -> Reply:
        """The receipt, after waiting for it to settle when asked to."""
        remembered = self._find(call)
        if remembered is None:
            stored = await self._stored(call)
            if stored is not None:
                return stored
        session, operation = self._visible(call, remembered)
        if call.input.wait_ms and not operation.answered.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(call.input.wait_ms / 1000):
                    await operation.answered.wait()
        return self._reply(session, operation)

    async def cancel(self, call: Call[OperationCancelInput]) -> Reply:
        """Ask it to stop; answers with the receipt as it then stands."""
        session = self._world.sessions.get(call.session_id)
        found = session.operations.get(OperationId(call.input.operation_id)) if session else None
        session, operation = self._visible(call, found)
        self._loop.cancel(operation)
        if call.input.wait_ms:
            with suppress(TimeoutError):
                async with asyncio.timeout(call.input.wait_ms / 1000):
                    await operation.answered.wait()
        return self._reply(session, operation)

    def _reply(self, session: Session, operation: Operation) -> Reply:
        receipt = standing(self._world, session, operation)
        return Reply(data=receipt, text=rendering.receipt(receipt, tool=operation.definition.name).text)
