"""Base classes of the closed models: inputs, results, and the fields that families share."""

from typing import Annotated, Literal

import msgspec

from lomi.contract.bounds import Cursor, Decimal, Epoch, Id, number, says, text
from lomi.contract.codes import Details, EffectState, ErrorCode, OperationState


class Model(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A closed value on the wire: camelCase names, unknown fields refused at every level, no coercion."""


class Input(Model, frozen=True, kw_only=True):
    """The arguments of a tool."""


class WorkspaceInput(Input, frozen=True, kw_only=True):
    """Arguments that name one workspace inside the grant."""

    workspace_id: Id


class PanelInput(WorkspaceInput, frozen=True, kw_only=True):
    """Arguments of a read that names one panel inside that workspace."""

    panel_id: Id


class PagedInput(WorkspaceInput, frozen=True, kw_only=True):
    """Arguments of a paged list in one workspace."""

    limit: Annotated[int, number(1, 500)] = 100
    cursor: Cursor | None = None


WaitMs = Annotated[int, number(0, 15_000)]
"""How long a mutation's call may wait for its receipt to settle, in milliseconds; bounds nothing else."""
LongWaitMs = Annotated[int, number(0, 55_000)]
"""How long a read may wait for a change, in milliseconds."""


SnapshotForm = Annotated[Literal["elements", "outline"], says("outline: short lines with refs")]
"""The form of a snapshot. None is the session's own default: `elements`, and `outline` in the qa profile."""
SnapshotQuery = Annotated[str, text(512, shortest=1), says("find by text, role or id in the whole tree")]


class KeyedInput(WorkspaceInput, frozen=True, kw_only=True):
    """A mutation with a retry identity: epoch and the caller's own key."""

    retry_epoch: Epoch
    request_key: Id
    wait_ms: WaitMs = 2000


class RevisedInput(KeyedInput, frozen=True, kw_only=True):
    """A keyed mutation that also names a revision: the domain's, unless its definition says its own."""

    expected_revision: Decimal


class PanelKeyed(KeyedInput, frozen=True, kw_only=True):
    """A keyed mutation of one panel."""

    panel_id: Id


class PanelRevised(RevisedInput, frozen=True, kw_only=True):
    """A revised mutation of one panel."""

    panel_id: Id


class Data(Model, frozen=True, kw_only=True):
    """Data of a reply. Subclasses carry `kind` as their tag."""


class Result(Model, frozen=True, kw_only=True):
    """Result of an operation, stored with its receipt; at most 64 KiB as JSON."""


class Failure(Result, frozen=True, kw_only=True, tag_field="kind", tag="failure", omit_defaults=True):
    """Why an operation did not succeed."""

    code: ErrorCode
    reason: str | None = None
    field: str | None = None
    hint: str | None = None
    details: Details | None = None


class PendingObject(Model, frozen=True, kw_only=True, omit_defaults=True):
    """A dialog, file chooser, download or popup of a page, as its line says it.

    `id` is what an answer names: a ref of the acting tools, a `downloadId`, the panel of a popup. After `expires_in_ms`
    a dialog gets its default, a chooser lapses and a download's bytes go; a popup stays. `text` is page text: the
    message of a dialog (of `type` alert, confirm, prompt or beforeunload), the name of a file.
    """

    kind: Literal["dialog", "chooser", "download", "popup"]
    id: str
    expires_in_ms: int | None = None
    type: str | None = None
    text: str | None = None
    state: Literal["running", "done", "failed"] | None = None
    reason: str | None = None
    byte_length: int | None = None
    multiple: bool = False
    frame_id: str | None = None
    browser_generation: str | None = None
    lease_id: str | None = None


class Observation(Model, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen after an effect: never stored, no part of the result.

    `lines` are the short rendering, newest facts first; `settled` says whether the target came to rest within the
    bound; `truncated` that lines were left out; `domain_revision` is there where the layout has changed since this
    session was told its revision last; `pending` is what a page asks for or has begun, at most 32.
    """

    settled: bool
    lines: tuple[str, ...] = ()
    snapshot_id: str | None = None
    navigation_id: str | None = None
    focused: str | None = None
    domain_revision: str | None = None
    pending: tuple[PendingObject, ...] = ()
    truncated: bool = False
    limitations: tuple[str, ...] = ()


Connection = Literal[
    "app_unavailable", "connecting", "pairing_required", "connected", "disconnected", "host_unqualified"
]


class Receipt(Data, frozen=True, kw_only=True, tag_field="kind", tag="operation"):
    """A receipt as it now stands, with the observation where this call took one."""

    operation_id: str
    state: OperationState
    effect_state: EffectState
    workspace_id: str | None
    result: msgspec.Raw | None = None
    observation: Observation | msgspec.UnsetType = msgspec.UNSET
