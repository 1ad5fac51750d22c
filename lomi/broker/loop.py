"""The way of one mutation after its admission: reserve, decide, start, dispatch, settle, observe. Steps 7 to 12.

One path for every tool. An operation runs in a task of its own: no caller's patience, and no caller's end, reaches it.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Coroutine, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec

from lomi.broker.admission import Admitted, Sight, check_memory, new_input_ledger, require_epoch
from lomi.broker.border import captured
from lomi.broker.deciders import Decision, DecisionRequest, plan_hash
from lomi.broker.operations import Operation, PermitHeld
from lomi.broker.outcome import Settlement, cancelled, settlement_of
from lomi.broker.queues import Turn
from lomi.broker.sessions import Session
from lomi.broker.storing import AlreadyStored, queued, storing
from lomi.broker.world import World
from lomi.contract.codes import Details, EffectState, ErrorCode, OperationState
from lomi.contract.definition import Definition
from lomi.contract.model import Observation
from lomi.core.ids import OperationId
from lomi.core.log_fields import bound, fields
from lomi.core.port import Act, AtOnce, Call, Outcome, Plan
from lomi.core.refusal import Refusal
from lomi.store import NewReceipt

OBSERVE_S = 15.0
"""The longest that an observation may take; callers wait less, by their own waitMs."""
RETRY_SETTLE_S = 1.0
"""How soon a settlement that could not be stored is tried again; the effect itself never is."""

T = TypeVar("T")
_log = logging.getLogger("lomi.broker.operation")


class WithdrawnError(Exception):
    """Raised inside an operation when it is cancelled before it started."""


async def unless_cancelled(operation: Operation, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`, or end it when the operation is cancelled first.

    Raises:
        WithdrawnError: when it was cancelled.
        Exception: what `work` ended with.
    """
    async with asyncio.TaskGroup() as group:
        working = group.create_task(captured(work))
        stopping = group.create_task(operation.cancel_asked.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        stopping.cancel()
    if working.cancelled() or operation.cancel_asked.is_set():
        raise WithdrawnError
    ended = working.result()
    if isinstance(ended, Exception):
        raise ended
    return ended


class Loop:
    """Runs operations. `tasks` outlives every caller; it ends with the broker."""

    def __init__(self, world: World, tasks: asyncio.TaskGroup) -> None:
        self._world = world
        self._tasks = tasks
        self._running: set[asyncio.Task[None]] = set()

    def begin(
        self, session: Session, definition: Definition, admitted: Admitted, sight: Sight, wait_s: float
    ) -> Operation:
        """Steps 7 and 8, without an await: the receipt enters the writer's queue, the operation its target's queue."""
        world = self._world
        operation_id = OperationId(world.random_bytes(20).hex())
        call = dataclasses.replace(admitted.call, operation_id=operation_id)
        operation = Operation(
            id=operation_id,
            definition=definition,
            call=call,
            session_id=session.id,
            fingerprint=admitted.fingerprint,
            workspace_id=call.workspace.id if call.workspace else None,
            resource=call.resource,
            generation=call.generation,
            wait_s=wait_s,
            created=world.clock.time(),
        )
        recorded = self._refusal_on_record(definition, call.input)
        handler = world.handlers[definition.name]
        assert isinstance(handler, Act), "a mutation has an acting handler"
        turn = at_once = None
        if recorded is None and not _may_ask(handler, call):
            turn = world.queues.join(_queue_key(definition, operation))
            if turn.is_mine:
                operation.state = OperationState.RUNNING
                at_once = handler.at_once(call) if definition.stored and handler.at_once is not None else None
        if definition.stored:
            receipt = self._new_receipt(session, operation)
            try:
                operation.stored = queued(lambda: _reserved(world, receipt, at_once))
            except Refusal:
                if turn is not None:
                    turn.leave()
                raise
        _index(world, session, operation)
        world.active[operation_id] = operation
        run = _Run(world, session, handler, operation, sight, turn, recorded, at_once)
        with bound(session=session.id, tool=definition.name, operation=operation_id, generation=operation.generation):
            task = self._tasks.create_task(run.through(), name=f"operation {operation_id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return operation

    def cancel(self, operation: Operation) -> None:
        """Ask an operation to stop: before its start it is withdrawn; while running its handler is told."""
        if not operation.terminal:
            operation.ask_to_cancel()

    def abandon(self) -> None:
        """Wait for nothing any more: what still runs is left to recovery, which will call it unknown."""
        for task in self._running:
            task.cancel()

    def end_session(self, session: Session) -> None:
        """What was never dispatched is withdrawn; what runs settles on its own; leases end."""
        session.ended = True
        for operation in session.operations.values():
            if operation.state in (OperationState.QUEUED, OperationState.AWAITING_USER):
                operation.ask_to_cancel()
        self._world.leases.end_of_session(session.id)
        for generation in [made for made, owner in self._world.owners.items() if owner == session.id]:
            resource = self._world.generations.resource(generation)
            if resource is not None and resource.kind in self._world.runtimes:
                self._world.runtimes[resource.kind].owner_gone(generation)

    def _refusal_on_record(self, definition: Definition, given: Any) -> Refusal | None:
        if definition.checks_revision and given.expected_revision not in (None, str(self._world.layout.revision)):
            return _stale_revision(self._world)
        if len(self._world.active) >= self._world.limits.work_items:
            limit = Details(limit=self._world.limits.work_items)
            return Refusal(ErrorCode.RESOURCE_EXHAUSTED, "limit_full", details=limit)
        return None

    def _new_receipt(self, session: Session, operation: Operation) -> NewReceipt:
        given, call = operation.call.input, operation.call
        resource = call.resource
        return NewReceipt(
            operation_id=operation.id,
            session_id=session.id,
            client_label=session.label,
            retry_epoch=given.retry_epoch,
            project_id=call.project.id if call.project else "",
            tool=operation.definition.name,
            request_key=request_key(operation.definition, given),
            fingerprint=operation.fingerprint,
            workspace_id=operation.workspace_id,
            resource=f"{resource.kind}:{resource.name}" if resource else None,
            generation=operation.generation,
            state=operation.state,
        )


def _reserved(world: World, receipt: NewReceipt, at_once: AtOnce | None) -> "asyncio.Future[None]":
    if at_once is None:
        return world.store.reserve(receipt)
    return world.store.reserve_succeeded(receipt, msgspec.json.encode(at_once.result))


def _may_ask(handler: Act, call: Call[Any]) -> bool:
    return handler.plan is not None and (handler.plans is None or handler.plans(call))


def _stale_revision(world: World) -> Refusal:
    current = Details(current=str(world.layout.revision))
    return Refusal(ErrorCode.REVISION_CONFLICT, "revision_stale", field="/expectedRevision", details=current)


def request_key(definition: Definition, given: Any) -> str:
    """The durable key of a stored mutation: the caller's own, or the one derived from lease and sequence."""
    if definition.retry_identity == "key":
        return str(given.request_key)
    return f"android-input:{given.lease_id}:{given.input_sequence}"


def _queue_key(definition: Definition, operation: Operation) -> Hashable:
    if definition.queue == "layout":
        return "layout"
    if definition.queue == "target" and operation.resource is not None:
        return operation.resource
    return operation.id


def _index(world: World, session: Session, operation: Operation) -> None:
    definition, given = operation.definition, operation.call.input
    session.operations[operation.id] = operation
    if definition.retry_identity == "key":
        project = operation.call.project
        operation.replay_key = (given.retry_epoch, project.id if project else "", definition.name, given.request_key)
        session.replay[operation.replay_key] = operation
    elif definition.retry_identity != "none":
        ledger = new_input_ledger(world, session, definition, given)
        ledger.admit(int(given.input_sequence), operation.fingerprint, operation)


def _withdraw_index(world: World, session: Session, operation: Operation) -> None:
    definition, given = operation.definition, operation.call.input
    session.operations.pop(operation.id, None)
    if operation.replay_key is not None:
        session.replay.pop(operation.replay_key, None)
    elif definition.retry_identity != "none":
        new_input_ledger(world, session, definition, given).withdraw(int(given.input_sequence))


class _Run:
    """One operation's life from its reservation to its end."""

    def __init__(
        self,
        world: World,
        session: Session,
        handler: Act,
        operation: Operation,
        sight: Sight,
        turn: Turn | None,
        recorded: Refusal | None,
        at_once: AtOnce | None,
    ) -> None:
        self._world = world
        self._session = session
        self._handler = handler
        self._operation = operation
        self._sight = sight
        self._turn = turn
        self._recorded = recorded
        self._at_once = at_once
        self._observe: Outcome | None = None
        self._marked: asyncio.Future[None] | None = None
        self._permit: PermitHeld | None = None

    async def through(self) -> None:
        """Run all steps. Whatever happens, waiters are told and the turn is given up."""
        operation = self._operation
        try:
            try:
                await storing(operation.stored)
            except AlreadyStored:
                operation.stored_before = True
                _withdraw_index(self._world, self._session, operation)
                return
            except Refusal as said:
                operation.refused = said
                _withdraw_index(self._world, self._session, operation)
                return
            self._world.failpoints.reach("reserved")
            operation.reserved.set()
            if self._at_once is not None:
                self._take_effect(self._at_once)
            else:
                await self._settle(await self._settlement())
            if operation.definition.retry_identity == "sequence_in_memory" and operation.effect is EffectState.NONE:
                # Nothing was typed, so the target still waits for this very sequence.
                _withdraw_index(self._world, self._session, operation)
            operation.settled.set()
            await self._world.tell_change()
            await self._take_observation()
        finally:
            if self._turn is not None:
                self._turn.leave()
            self._world.active.pop(operation.id, None)
            if operation.generation is not None:
                self._world.leases.touch(operation.generation, self._world.clock.monotonic())
            operation.reserved.set()
            operation.settled.set()
            operation.answered.set()
            if operation.terminal and not self._is_looked_at:
                # The answer goes first: it waits for nothing else any more.
                asyncio.get_running_loop().call_soon(self._log_settled)
            self._session.forget_old()
            await self._world.tell_change()

    def _take_effect(self, at_once: AtOnce) -> None:
        """Steps 11 and 12 of an effect in memory: its receipt is settled already, in the commit that reserved it."""
        self._world.failpoints.reach("effect_begun")
        at_once.apply()
        self._world.failpoints.reach("effect_done")
        done = Settlement(state=OperationState.SUCCEEDED, effect=EffectState.COMPLETE, result=at_once.result)
        self._settled(done, msgspec.json.encode(at_once.result))

    def _settled(self, settlement: Settlement, body: bytes | None) -> None:
        """It is in the store; from now on memory says so too."""
        operation = self._operation
        operation.result, operation.value = body, settlement.result
        operation.state, operation.effect = settlement.state, settlement.effect
        self._world.failpoints.reach("settled")

    async def _settlement(self) -> Settlement:
        """How it ends. A check or a plan that fails in a way it does not document ends nothing but its operation."""
        ended = await captured(self._steps())
        if isinstance(ended, Settlement):
            return ended
        begun = self._permit is not None and self._permit.effect_begun
        return settlement_of(ended, effect_begun=begun, cancel_asked=False)

    async def _steps(self) -> Settlement:
        try:
            if self._recorded is not None:
                raise self._recorded
            await self._decide()
            await self._start()
            return await self._dispatch()
        except WithdrawnError:
            return cancelled()
        except _DeclinedError as said:
            return cancelled(ErrorCode.SCOPE_DENIED, said.reason)

    async def _move(self, state: OperationState) -> None:
        operation = self._operation
        if operation.stored is not None:
            await storing(self._world.store.move(operation.id, state, decided_by=operation.decided_by))
        operation.state = state
        await self._world.tell_change()

    async def _decide(self) -> None:
        if self._turn is not None:
            return  # nobody is asked: it stands in its target's queue since its reservation
        operation = self._operation
        plan = await unless_cancelled(operation, _planned(self._handler, operation))
        if plan is not None:
            decision = await self._decision(plan)
            if decision.verdict != "approved" or decision.plan_hash != plan_hash(operation.definition.name, plan):
                raise _DeclinedError({"declined": "declined", "expired": "decision_expired"}.get(decision.verdict))
            operation.decided_by = decision.by
            operation.call = dataclasses.replace(operation.call, decided=plan)
            await self._move(OperationState.QUEUED)
        self._world.failpoints.reach("decided")
        self._turn = self._world.queues.join(_queue_key(operation.definition, operation))

    async def _decision(self, plan: Plan) -> Decision:
        operation = self._operation
        await self._move(OperationState.AWAITING_USER)
        expires_s = operation.definition.decision_s or 120.0
        request = DecisionRequest(
            operation_id=operation.id,
            tool=operation.definition.name,
            session_label=self._session.label,
            grant=operation.call.grant,
            plan=plan,
            plan_hash=plan_hash(operation.definition.name, plan),
            expires_s=expires_s,
        )
        try:
            async with asyncio.timeout(expires_s):
                return await unless_cancelled(operation, self._world.decider.decide(request))
        except TimeoutError:
            return Decision(verdict="expired", plan_hash=request.plan_hash, by="time")

    async def _start(self) -> None:
        operation = self._operation
        if operation.state is not OperationState.RUNNING:
            assert self._turn is not None
            await unless_cancelled(operation, self._turn.wait())
            if operation.definition.stored:
                require_epoch(self._world, self._session, operation.call.input.retry_epoch)
            await self._require_decided_plan()
            self._recheck()
            await self._move(OperationState.RUNNING)
        self._world.failpoints.reach("started")
        if operation.cancel_asked.is_set():
            raise WithdrawnError

    async def _require_decided_plan(self) -> None:
        """A decision stands for what was shown: a plan that reads otherwise by now needs another one."""
        operation = self._operation
        if operation.call.decided is not None:
            now = await unless_cancelled(operation, _planned(self._handler, operation))
            if now != operation.call.decided:
                raise Refusal(ErrorCode.REVISION_CONFLICT, "decision_outdated")

    def _recheck(self) -> None:
        """Step 6 again: authority, generation, lease, adapter memory; and the revision where the layout is changed."""
        world, operation = self._world, self._operation
        world.sessions.require_authority(self._session)
        definition = operation.definition
        if definition.queue == "layout" and definition.checks_revision:
            current = str(world.layout.revision)
            if operation.call.input.expected_revision != current:
                raise _stale_revision(world)
        check_memory(world, self._session, definition, operation.call, self._sight)

    async def _dispatch(self) -> Settlement:
        operation, world = self._operation, self._world
        turn = self._turn
        assert turn is not None
        self._recheck()
        seconds = operation.definition.deadline_s
        self._permit = permit = PermitHeld(
            operation,
            deadline=world.clock.monotonic() + seconds,
            revoked=lambda: not world.sessions.has_authority(self._session),
            recheck=self._recheck,
            reach=world.failpoints.reach,
            leave=turn.leave,
            tell=world.tell_change,
        )
        world.failpoints.reach("dispatched")
        timed_out = False
        async with asyncio.TaskGroup() as group:
            work = group.create_task(captured(self._handler.act(operation.call, permit)))
            with self._hearing(group, permit, work):
                await asyncio.wait((work,), timeout=seconds)
                if not work.done():
                    timed_out = True
                    work.cancel()
                    await asyncio.wait((work,))
        ended: Outcome | BaseException = asyncio.CancelledError() if work.cancelled() else work.result()
        if timed_out and isinstance(ended, asyncio.CancelledError):
            ended = TimeoutError()
        if isinstance(ended, Outcome):
            self._observe = ended
        return settlement_of(ended, effect_begun=permit.effect_begun, cancel_asked=operation.cancel_asked.is_set())

    @contextmanager
    def _hearing(self, group: asyncio.TaskGroup, permit: PermitHeld, work: "asyncio.Task[Any]") -> Iterator[None]:
        """While inside, a cancellation gets a task that brings it to the work; without one none is waited for."""
        operation = self._operation
        told: list[asyncio.Task[None]] = []

        def tell() -> None:
            if not told:
                told.append(group.create_task(self._pass_on_cancel(permit, work)))

        operation.heard = tell
        try:
            yield
        finally:
            operation.heard = None
            for task in told:
                task.cancel()

    async def _pass_on_cancel(self, permit: PermitHeld, work: "asyncio.Task[Any]") -> None:
        operation = self._operation
        operation.state = OperationState.CANCELLING
        if not permit.effect_begun:
            work.cancel()
        with suppress(Refusal):
            await self._mark_cancelling()
        await self._world.tell_change()

    async def _mark_cancelling(self) -> None:
        """Store the move to cancelling once; one that could not be stored is asked for anew."""
        operation = self._operation
        if operation.stored is None:
            return
        if self._marked is None or (self._marked.done() and self._marked.exception() is not None):
            self._marked = self._world.store.move(operation.id, OperationState.CANCELLING)
        await storing(asyncio.shield(self._marked))

    async def _settle(self, settlement: Settlement) -> None:
        operation = self._operation
        self._world.failpoints.reach("before_settle")
        body = msgspec.json.encode(settlement.result) if settlement.result is not None else None
        state, effect = settlement.state, settlement.effect
        started = operation.state in (OperationState.RUNNING, OperationState.CANCELLING)
        while operation.stored is not None:
            try:
                if state is OperationState.CANCELLED and started:
                    await self._mark_cancelling()
                await storing(self._world.store.settle(operation.id, state, effect, body))
                break
            except Refusal:
                await self._world.clock.sleep(RETRY_SETTLE_S)
        self._settled(settlement, body)
        if self._is_looked_at:
            self._log_settled()

    @property
    def _is_looked_at(self) -> bool:
        """Whether an observation follows, during which there is time for other things."""
        return self._observe is not None and self._observe.observe is not None

    def _log_settled(self) -> None:
        operation, failure = self._operation, self._operation.failure
        told = fields(
            state=operation.state.value,
            effect=operation.effect.value,
            code=failure.code.value if failure else None,
            reason=failure.reason if failure else None,
            by=operation.decided_by,
            ms=round((self._world.clock.time() - operation.created) * 1000),
        )
        _log.info("operation settled", extra=told)

    async def _take_observation(self) -> None:
        operation, outcome = self._operation, self._observe
        lines: Observation | None = None
        allowed = operation.definition.may_observe(operation.call.grant.scopes)
        if outcome is not None and outcome.observe is not None and operation.wait_s > 0 and allowed:
            try:
                async with asyncio.timeout(min(OBSERVE_S, operation.wait_s)):
                    seen = await captured(outcome.observe())
            except TimeoutError:
                seen = Observation(settled=False)
            lines = seen if isinstance(seen, Observation) else Observation(settled=False)
        # A popup changes the layout too: whoever sees it needs the revision for what comes next.
        revision = self._world.layout.revision
        moved = lines is not None and self._session.told_revision != revision
        if moved or (operation.definition.checks_revision and operation.effect is not EffectState.NONE):
            self._session.told_revision = revision
            lines = msgspec.structs.replace(lines or Observation(settled=True), domain_revision=str(revision))
        operation.observation = lines


class _DeclinedError(Exception):
    """Raised inside an operation when its decision was not an approval."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason)
        self.reason = reason or "not_decided_here"


async def _planned(handler: Act, operation: Operation) -> Plan | None:
    assert handler.plan is not None
    return await handler.plan(operation.call)
