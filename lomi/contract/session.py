"""Session tools: status, diagnostics, connect, events."""

from lomi.contract.bounds import Id
from lomi.contract.codes import Reason
from lomi.contract.definition import define
from lomi.contract.model import Connection, Data, Input, LongWaitMs, Model, PagedInput


class StatusInput(Input, frozen=True, kw_only=True):
    """`waitMs` waits until the phase changes."""

    wait_ms: LongWaitMs = 0


class Capability(Model, frozen=True, kw_only=True):
    """One scope and how it stands for this session."""

    name: str
    available: bool
    authorized: bool
    qualified: bool


class Usage(Model, frozen=True, kw_only=True):
    """How much of a limit is used."""

    name: str
    used: int
    limit: int


class Status(Data, frozen=True, kw_only=True, tag_field="kind", tag="status"):
    """Where this connection stands."""

    connection: Connection
    pairing_request_id: str | None
    instance_id: str | None
    ui_ready: bool
    platform: str
    capabilities: tuple[Capability, ...]
    limitations: tuple[str, ...]
    usage: tuple[Usage, ...] = ()


class DiagnosticsInput(Input, frozen=True, kw_only=True):
    """No arguments."""


class Diagnostics(Data, frozen=True, kw_only=True, tag_field="kind", tag="diagnostics"):
    """A short diagnosis."""

    connection: Connection
    ui_ready: bool
    next_step: str


class ConnectInput(Input, frozen=True, kw_only=True):
    """The workspace to bind to."""

    workspace_id: Id


class Connected(Data, frozen=True, kw_only=True, tag_field="kind", tag="connected"):
    """What this session may do here, and its retry epoch (40 hex, 24 h)."""

    instance_id: str
    workspace_id: str
    project_id: str
    retry_epoch: str
    scopes: tuple[str, ...]


class EventsInput(PagedInput, frozen=True, kw_only=True):
    """A page of this session's operation events in one workspace; `waitMs` waits until there is one."""

    wait_ms: LongWaitMs = 0


class ControlEvent(Model, frozen=True, kw_only=True):
    """One state change of one operation. `sequence` is its place in this view, from 1."""

    sequence: str
    kind: str
    operation_id: str
    workspace_id: str
    tool: str
    state: str
    effect_state: str
    timestamp_seconds: int


class Events(Data, frozen=True, kw_only=True, tag_field="kind", tag="events"):
    """A page of events; `nextCursor` is always there."""

    items: tuple[ControlEvent, ...]
    next_cursor: str
    has_more: bool
    gap: bool = False


TOOLS = (
    define(
        name="lomi_status",
        family="session",
        purpose="Connection phase and what this session may do. Works before pairing.",
        input=StatusInput,
        queue="none",
        results=(Status,),
        unpaired=True,
    ),
    define(
        name="lomi_diagnostics",
        family="session",
        purpose="Short connection diagnosis with the next step to take.",
        input=DiagnosticsInput,
        queue="none",
        results=(Diagnostics,),
        unpaired=True,
    ),
    define(
        name="lomi_connect",
        family="session",
        purpose="Bind work to one granted workspace; returns the retryEpoch that mutations need.",
        input=ConnectInput,
        queue="none",
        results=(Connected,),
        scopes=("workspace.read",),
    ),
    define(
        name="lomi_events_read",
        family="session",
        purpose="Paged feed of this connection's operation state changes in one workspace.",
        input=EventsInput,
        queue="none",
        results=(Events,),
        scopes=("workspace.read",),
    ),
)
REASONS: tuple[Reason, ...] = ()
