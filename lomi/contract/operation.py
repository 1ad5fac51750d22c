"""Operation tools: read a receipt, cancel an operation."""

from typing import Annotated

from lomi.contract.bounds import Epoch, Id, OutOfBounds, text
from lomi.contract.codes import Reason
from lomi.contract.definition import define
from lomi.contract.model import Input, LongWaitMs, Receipt, WaitMs


class OperationGetInput(Input, frozen=True, kw_only=True):
    """Either `operationId`, or `retryEpoch` + `requestKey` + `tool` (+ `projectId` when several are granted)."""

    operation_id: Id | None = None
    project_id: Id | None = None
    retry_epoch: Epoch | None = None
    request_key: Id | None = None
    tool: Annotated[str, text(64, shown=False)] | None = None
    wait_ms: LongWaitMs = 0


class OperationCancelInput(Input, frozen=True, kw_only=True):
    """The operation to cancel."""

    operation_id: Id
    wait_ms: WaitMs = 2000


def _one_form(given: OperationGetInput) -> None:
    by_key = {"/retryEpoch": given.retry_epoch, "/requestKey": given.request_key, "/tool": given.tool}
    if given.operation_id is not None:
        for field, value in (*by_key.items(), ("/projectId", given.project_id)):
            if value is not None:
                raise OutOfBounds(field, "variant_unclear")
        return
    for field, value in by_key.items():
        if value is None:
            raise OutOfBounds(field, "variant_unclear")


TOOLS = (
    define(
        name="lomi_operation_get",
        family="operation",
        purpose="Read one receipt, by operationId or by its retry key.",
        input=OperationGetInput,
        results=(Receipt,),
        scopes=("workspace.read",),
        rule=_one_form,
        queue="none",
        more_scopes_text=("the scopes and targets of the stored result",),
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
        more_scopes_text=("the scopes and targets of the stored result",),
    ),
)
REASONS: tuple[Reason, ...] = ()
