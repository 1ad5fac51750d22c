"""What the owner's commands answer: closed values, one per command and per row. Ages are seconds."""

import msgspec

from lomi.contract.codes import EffectState, OperationState
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import RuntimeState


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One connection and what it holds. `since_s` is seconds since the epoch; `granted_by` "" before it has a grant."""

    id: str
    label: str
    pid: int
    phase: str
    since_s: float
    scopes: tuple[str, ...]
    leases: tuple[str, ...]
    operations: int
    age_s: float
    granted_by: str
    workspaces: tuple[str, ...]
    devices: tuple[str, ...]
    packages: tuple[str, ...]
    origins: tuple[str, ...]


class OwnerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The broker at a glance. `usage` rows are name, used, limit."""

    instance_id: str
    pid: int
    yolo: bool
    tools_working: tuple[str, ...]
    tools_absent: tuple[str, ...]
    limitations: tuple[str, ...]
    usage: tuple[tuple[str, int, int], ...]
    sessions: tuple[SessionRow, ...]
    devices: tuple[str, ...]


class LeaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """Who may put input into which life of what, for how long, and when it was last used."""

    id: str
    kind: ResourceKind
    resource: str
    generation: str
    session: str
    label: str
    age_s: float
    idle_s: float


class ResourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A phone, a page or a terminal. `panels` show it; `holder` is the session with its lease, `person` who took it."""

    kind: ResourceKind
    name: str
    title: str
    panels: tuple[str, ...]
    generation: str | None
    state: RuntimeState
    holder: str | None
    taken: bool


class OperationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A mutation that has not settled yet."""

    id: str
    tool: str
    session: str
    label: str
    target: str
    state: OperationState
    age_s: float


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds what since when."""

    instance_id: str
    yolo: bool
    sessions: tuple[SessionRow, ...]
    leases: tuple[LeaseRow, ...]
    resources: tuple[ResourceRow, ...]
    operations: tuple[OperationRow, ...]


class ReceiptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One stored receipt; times are seconds since the epoch.

    `code` and `reason` say why it did not succeed; `sha256` is of the file it was about, where its result names one.
    """

    sequence: int
    operation_id: str
    session: str
    label: str
    tool: str
    workspace: str | None
    resource: str | None
    generation: str | None
    state: OperationState
    effect: EffectState
    decided_by: str | None
    code: str | None
    reason: str | None
    created_s: int
    updated_s: int
    sha256: str | None = None


class ReceiptPage(msgspec.Struct, frozen=True, kw_only=True):
    """Receipts, newest first; `more` when there are older ones."""

    rows: tuple[ReceiptRow, ...]
    more: bool


class YoloAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether YOLO is on now, how many sessions the switch ended, and why it was refused."""

    on: bool
    revoked: int = 0
    refused: str | None = None


class Done(msgspec.Struct, frozen=True):
    """How many things a command touched, or why it was refused."""

    count: int
    refused: str | None = None
