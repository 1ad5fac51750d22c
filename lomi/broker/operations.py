"""One operation in memory: its state, who waits for it, and its permit. The store holds the durable half."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lomi.contract.codes import TERMINAL_STATES, EffectState, OperationState
from lomi.contract.definition import Definition
from lomi.contract.model import Data, Failure, Observation, Receipt, Result
from lomi.core.ids import GenerationId, OperationId, SessionId, WorkspaceId
from lomi.core.port import Call, ResourceKey
from lomi.core.refusal import Refusal

RetryKey = tuple[str, str, str, str]
"""Epoch, project, tool, request key; the session is the index's owner."""


@dataclass(slots=True, kw_only=True, eq=False)
class Operation:
    """A mutation from its admission on.

    Terminal states never change; waiters hear of its settling and its observation.
    """

    id: OperationId
    definition: Definition
    call: Call[Any]
    session_id: SessionId
    fingerprint: bytes
    workspace_id: WorkspaceId | None
    resource: ResourceKey | None
    generation: GenerationId | None
    wait_s: float
    replay_key: RetryKey | None = None
    stored_before: bool = False
    created: float
    state: OperationState = OperationState.QUEUED
    effect: EffectState = EffectState.NONE
    result: bytes | None = None
    value: Result | Data | None = None
    decided_by: str | None = None
    observation: Observation | None = None
    stored: asyncio.Future[None] | None = None
    cancel_asked: asyncio.Event = field(default_factory=asyncio.Event)
    reserved: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    refused: Refusal | None = None
    progress: str = ""
    heard: Callable[[], None] | None = None
    """Called when a cancellation is asked for while the operation is dispatched."""

    def ask_to_cancel(self) -> None:
        """Note that it is to stop, and tell whoever runs it."""
        self.cancel_asked.set()
        if self.heard is not None:
            self.heard()

    @property
    def terminal(self) -> bool:
        """Whether the state is one that never changes."""
        return self.state in TERMINAL_STATES

    def receipt(self) -> Receipt:
        """The receipt as it now stands."""
        return Receipt(
            operation_id=self.id,
            state=self.state,
            effect_state=self.effect,
            workspace_id=self.workspace_id,
            result=msgspec.Raw(self.result) if self.result is not None else None,
            observation=self.observation if self.observation is not None else msgspec.UNSET,
        )

    @property
    def failure(self) -> Failure | None:
        """Why it did not succeed."""
        return self.value if isinstance(self.value, Failure) else None


class PermitHeld:
    """The permit of one operation. `recheck` raises when authority, lease or generation is gone."""

    def __init__(
        self,
        operation: Operation,
        *,
        deadline: float,
        revoked: Callable[[], bool],
        recheck: Callable[[], None],
        reach: Callable[[str], None],
        leave: Callable[[], None],
        tell: Callable[[], Awaitable[None]],
    ) -> None:
        self._operation = operation
        self._deadline = deadline
        self._revoked = revoked
        self._recheck = recheck
        self._reach = reach
        self._leave = leave
        self._tell = tell
        self.effect_begun = False

    @property
    def operation_id(self) -> OperationId:
        """The operation that this permit belongs to."""
        return self._operation.id

    @property
    def generation(self) -> GenerationId | None:
        """The exact life of the target that may be acted on."""
        return self._operation.generation

    @property
    def deadline(self) -> float:
        """When the effect must be over, on the clock's monotonic scale."""
        return self._deadline

    @property
    def revoked(self) -> bool:
        """Whether authority has ended."""
        return self._revoked()

    @property
    def cancelling(self) -> bool:
        """Whether the caller asked to stop."""
        return self._operation.cancel_asked.is_set()

    async def cancel_requested(self) -> None:
        """Return when the caller asks to stop."""
        await self._operation.cancel_asked.wait()

    async def report(self, words: str) -> None:
        """Say how far long work has come."""
        self._operation.progress = words
        await self._tell()

    @asynccontextmanager
    async def effect(self) -> AsyncIterator[None]:
        """The instant from which the outcome can be unknown."""
        if not self.effect_begun:
            self._recheck()
            self.effect_begun = True
        self._reach("effect_begun")
        yield
        self._reach("effect_done")

    def yield_turn(self) -> None:
        """Let the next operation of the same target start."""
        self._leave()
