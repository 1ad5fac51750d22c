"""Operation tools: read a receipt, cancel an operation."""

from typing import Annotated

from lomi.contract.bounds import Id, text
from lomi.contract.definition import define
from lomi.contract.model import Input, LongWaitMs, Receipt, WaitMs


class OperationGetInput(Input, frozen=True, kw_only=True):
    """Either `operationId`, or `retryEpoch` + `requestKey` + `tool` (+ `projectId` when several are granted)."""

    operation_id: Id | None = None
    project_id: Id | None = None
    retry_epoch: Annotated[str, text(40, shown=False)] | None = None
    request_key: Id | None = None
    tool: Annotated[str, text(64, shown=False)] | None = None
    wait_ms: LongWaitMs = 0


class OperationCancelInput(Input, frozen=True, kw_only=True):
    """The operation to cancel."""

    operation_id: Id
    wait_ms: WaitMs = 2000


TOOLS = (
    define(
        name="lomi_operation_get",
        family="operation",
        purpose="Read one receipt, by operationId or by its retry key.",
        input=OperationGetInput,
        results=(Receipt,),
        scopes=("workspace.read",),
    ),
    define(
        name="lomi_operation_cancel",
        family="operation",
        purpose="Cancel queued work or ask running work to stop. Never rolls back.",
        input=OperationCancelInput,
        results=(Receipt,),
        scopes=("workspace.read",),
        mutation=True,
        queue="none",
    ),
)
REASONS = ()
