"""A connection bound to one workspace: reads with typed answers, acts with receipts, fresh request keys."""

import hashlib
import itertools
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import TypedDict, TypeVar

import msgspec

from lomi.client.acts import MOST_KEPT, Act, Capture
from lomi.client.client import Answer, Client
from lomi.client.errors import ERROR_OF, BrokerFaultError, ToolError
from lomi.contract.artifact import ArtifactFound, ArtifactReadInput
from lomi.contract.codes import MESSAGES, TERMINAL_STATES, EffectState, ErrorCode, OperationState
from lomi.contract.model import Data, Failure, Input, Observation, Result
from lomi.contract.operation import OperationGetInput
from lomi.contract.session import Connected
from lomi.contract.workspace import WorkspaceListInput, Workspaces, WorkspaceView

ResultT = TypeVar("ResultT", bound=Result)
DataT = TypeVar("DataT", bound=Data)

WAIT_MS = 15_000
_POLL_MS = 55_000
_STALE_TRIES = 64
"""How often an act on the layout is sent again, under a new key, since others changed the layout meanwhile."""


class Keyed(TypedDict):
    """What each keyed mutation repeats."""

    workspace_id: str
    retry_epoch: str
    request_key: str
    wait_ms: int


class Revised(Keyed):
    """The same with the revision of the layout that was last seen."""

    expected_revision: str


class _Said(msgspec.Struct, frozen=True, rename="camel"):
    """A receipt as it is read: `contract.model.Receipt`, whose result is decoded by the tool's own models."""

    operation_id: str
    state: OperationState
    effect_state: EffectState
    result: msgspec.Raw
    observation: Observation | None = None


class Session:
    """What phones, pages and terminals share: the connection, the workspace, keys, and the record of all acts."""

    def __init__(self, client: Client, workspace: WorkspaceView, connected: Connected, revision: str) -> None:
        self.client = client
        self.workspace = workspace
        self.scopes = frozenset(connected.scopes)
        self.instance_id = connected.instance_id
        self.epoch = connected.retry_epoch
        self._revision = revision
        # Random, since an epoch may be shared by clients of one pairing; counted, since a receipt names it to people.
        self._prefix = f"py-{secrets.token_hex(4)}"
        self._numbers = itertools.count(1)
        self._acts: deque[Act[Result]] = deque(maxlen=MOST_KEPT)
        self.count = 0

    @property
    def workspace_id(self) -> str:
        """The workspace that all calls name."""
        return self.workspace.id

    @property
    def acts(self) -> tuple[Act[Result], ...]:
        """The last acts in the order of their ends; `count` says how many there were in all."""
        return tuple(self._acts)

    async def read(self, tool: str, given: Input, kind: type[DataT]) -> DataT:
        """Call a tool that only looks.

        Raises:
            ToolError: refused.
        """
        return (await self.answer(tool, given)).read(kind)

    async def answer(self, tool: str, given: Input) -> Answer:
        """The same with the pictures that come along."""
        return await self.client.call(tool, given)

    async def capture(self, tool: str, given: Input) -> Capture:
        """Call a tool that takes a picture.

        Raises:
            ToolError: refused, or no picture can be had.
        """
        answer = await self.answer(tool, given)
        if not answer.pictures:
            raise BrokerFaultError("a picture without its bytes")
        return Capture(png=answer.pictures[0].content, artifact=answer.read(ArtifactFound).artifact)

    async def artifact(self, artifact_id: str) -> AsyncIterator[bytes]:
        """The bytes of an artifact, a piece at a time, proven at the end by their hash.

        Raises:
            TargetNotFoundError: it is not this session's, has expired, or is not there yet.
            BrokerFaultError: what came is not what was stored.
        """
        digest, offset = hashlib.sha256(), 0
        while True:
            given = ArtifactReadInput(workspace_id=self.workspace_id, artifact_id=artifact_id, offset=offset)
            answer = await self.answer("lomi_artifact_read", given)
            stored = answer.read(ArtifactFound).artifact
            piece = answer.pictures[0].content if answer.pictures else b""
            digest.update(piece)
            offset += len(piece)
            if not piece or offset > stored.byte_length:
                raise BrokerFaultError("an artifact of another length")
            yield piece
            if offset == stored.byte_length:
                break
        if digest.hexdigest() != stored.sha256:
            raise BrokerFaultError("an artifact of another hash")

    def keyed(self, wait_ms: int = WAIT_MS) -> Keyed:
        """Fresh terms of one mutation."""
        return Keyed(
            workspace_id=self.workspace_id,
            retry_epoch=self.epoch,
            request_key=f"{self._prefix}-{next(self._numbers)}",
            wait_ms=wait_ms,
        )

    async def act(
        self,
        tool: str,
        make: Callable[[], Input],
        kind: type[ResultT],
        *,
        generation: str | None = None,
        timeout_s: float = 30.0,
        failed_ok: bool = False,
        unread_ok: bool = False,
        keep: Callable[[Act[Result]], None] | None = None,
    ) -> Act[ResultT]:
        """Call a tool that acts and follow its receipt to the end.

        Args:
            tool: the tool.
            make: builds the arguments; called again only where an answer proves that nothing was done.
            kind: the model of the result.
            generation: the life that it acts on.
            timeout_s: how long to follow; the operation itself goes on after that.
            failed_ok: hand back a receipt `failed` whose effect is complete (a command's exit code) instead of raising.
            unread_ok: hand back a receipt whose outcome is unknown only because nothing can be read back.
            keep: told of the act before a failure is raised.

        Raises:
            ToolError: refused, or the receipt did not end as succeeded; then it names the receipt.
        """
        for _ in range(_STALE_TRIES):
            act = await self._once(tool, make(), kind, generation, timeout_s)
            stale = act.failure is not None and act.failure.reason == "revision_stale"
            if not stale or act.effect is not EffectState.NONE:
                break
            await self.refresh()
        self.record(act, keep)
        if act.state is OperationState.SUCCEEDED:
            return act
        if failed_ok and act.state is OperationState.FAILED and act.effect is EffectState.COMPLETE:
            return act
        if unread_ok and act.failure is not None and act.failure.reason == "text_not_confirmed":
            return act
        raise _unsuccessful(act)

    def record(self, act: Act[Result], keep: Callable[[Act[Result]], None] | None) -> None:
        """Remember an act, here and at its target."""
        self._acts.append(act)
        self.count += 1
        if keep is not None:
            keep(act)

    async def _once(
        self, tool: str, given: Input, kind: type[ResultT], generation: str | None, timeout_s: float
    ) -> Act[ResultT]:
        began = time.monotonic()
        receipt = (await self.answer(tool, given)).read(_Said)
        observation = receipt.observation
        while receipt.state not in TERMINAL_STATES:
            left = timeout_s - (time.monotonic() - began)
            if left <= 0:
                break
            asked = OperationGetInput(operation_id=receipt.operation_id, wait_ms=min(_POLL_MS, max(1, int(left * 1e3))))
            receipt = (await self.answer("lomi_operation_get", asked)).read(_Said)
            observation = observation or receipt.observation
        result, failure = _result_of(receipt, kind)
        if observation is not None and observation.domain_revision is not None:
            self._revision = observation.domain_revision
        return Act(
            tool=tool,
            operation_id=receipt.operation_id,
            state=receipt.state,
            effect=receipt.effect_state,
            result=result,
            failure=failure,
            observation=observation,
            generation=generation,
            at=time.time(),
            took_s=time.monotonic() - began,
        )

    def revised(self, wait_ms: int = WAIT_MS) -> Revised:
        """Fresh terms with the revision of the layout that was last seen."""
        return Revised(**self.keyed(wait_ms), expected_revision=self._revision)

    async def refresh(self) -> None:
        """Read the layout's revision."""
        listed = await self.read("lomi_workspace_list", WorkspaceListInput(limit=1), Workspaces)
        self._revision = listed.domain_revision


@cache
def _decoder(kind: type[Result]) -> msgspec.json.Decoder[Result]:
    return msgspec.json.Decoder(kind | Failure)


def _result_of(receipt: _Said, kind: type[ResultT]) -> tuple[ResultT | None, Failure | None]:
    if bytes(receipt.result) == b"null":
        return None, None
    try:
        found = _decoder(kind).decode(receipt.result)
    except msgspec.DecodeError as error:
        raise BrokerFaultError(f"a result of another shape: {error}") from error
    if isinstance(found, Failure):
        return None, found
    assert isinstance(found, kind)
    return found, None


def _unsuccessful(act: Act[Result]) -> ToolError:
    failure = act.failure
    if act.state not in TERMINAL_STATES:
        hint = "The work goes on; read its receipt by its operation id."
        failure = Failure(code=ErrorCode.DEADLINE_EXCEEDED, reason="still_running", hint=hint)
    elif failure is None:
        failure = Failure(code=ErrorCode.OUTCOME_UNKNOWN, reason=str(act.state))
    return ERROR_OF[failure.code](
        failure.code,
        f"{act.tool}: {MESSAGES[failure.code]}",
        reason=failure.reason,
        field=failure.field,
        hint=failure.hint,
        details=failure.details,
        operation_id=act.operation_id,
        effect=act.effect,
    )
