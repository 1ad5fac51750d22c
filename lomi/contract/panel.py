"""Panel tools: list, focus, move, control (leases), close."""

from typing import Annotated, Literal

from lomi.contract.bounds import Decimal, Id, OutOfBounds, Uuid, items
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, Model, PagedInput, PanelKeyed, PanelRevised, Result, RevisedInput

Ownership = Literal["this_session", "another_session", "human_or_unassigned"]
RuntimeState = Literal["unobserved", "not_started", "starting", "running", "ready", "exited"]
PanelKind = Literal["file", "terminal", "browser", "android", "chat", "diff", "commit"]
Side = Literal["left", "right", "top", "bottom"]


class PanelListInput(PagedInput, frozen=True, kw_only=True):
    """A page of the panels of one workspace."""


class PanelView(Model, frozen=True, kw_only=True):
    """One panel with its runtime identity and who controls it."""

    id: str
    workspace_id: str
    tab_id: str
    kind: PanelKind
    title: str
    terminal_session_id: str | None
    browser_generation: str | None
    android_device_id: str | None
    ownership: Ownership
    runtime_state: RuntimeState
    input_controlled: bool


class Panels(Data, frozen=True, kw_only=True, tag_field="kind", tag="panels"):
    """A page of panels with the domain revision."""

    items: tuple[PanelView, ...]
    next_cursor: str | None
    domain_revision: str


class PanelFocusInput(PanelRevised, frozen=True, kw_only=True):
    """The panel to reveal, with its current runtime identity where it has one."""

    terminal_session_id: Id | None = None
    browser_generation: Id | None = None


class PanelChanged(Result, frozen=True, kw_only=True, tag_field="kind", tag="panel"):
    """A panel that was focused or closed."""

    workspace_id: str
    panel_id: str
    focused: bool
    closed: bool


class ReorderTab(Model, frozen=True, kw_only=True, tag_field="type", tag="reorder_tab"):
    """Put a tab before another, or at the end."""

    tab_id: Id
    before_tab_id: Id | None = None


class DockTab(Model, frozen=True, kw_only=True, tag_field="type", tag="dock_tab"):
    """Dock a tab at a side of another."""

    tab_id: Id
    target_tab_id: Id
    side: Side


class MovePane(Model, frozen=True, kw_only=True, tag_field="type", tag="move_pane"):
    """Move a pane to a side of another."""

    panel_id: Id
    target_panel_id: Id
    side: Side


class TransferTab(Model, frozen=True, kw_only=True, tag_field="type", tag="transfer_tab"):
    """Move a tab to another workspace of the same project."""

    tab_id: Id
    target_workspace_id: Id
    before_tab_id: Id | None = None


Movement = ReorderTab | DockTab | MovePane | TransferTab


class PanelMoveInput(RevisedInput, frozen=True, kw_only=True):
    """One movement inside the layout."""

    movement: Movement


class PanelMoveIdentity(Model, frozen=True, kw_only=True):
    """A panel that took part in a move, with the runtime that stayed alive."""

    panel_id: str
    tab_id: str
    kind: PanelKind
    terminal_session_id: str | None
    browser_generation: str | None
    android_device_id: str | None


class Destination(Model, frozen=True, kw_only=True):
    """Where a transferred tab is now."""

    workspace_id: str
    tab_order: tuple[str, ...]
    panels: tuple[PanelMoveIdentity, ...]


class PanelMoved(Result, frozen=True, kw_only=True, tag_field="kind", tag="panel_moved"):
    """The movement that was made and the panels it touched."""

    workspace_id: str
    movement: Movement
    panels: Annotated[tuple[PanelMoveIdentity, ...], items(128)]
    destination: Destination | None


class PanelControlInput(PanelKeyed, frozen=True, kw_only=True):
    """Terminal form: `terminalSessionId`.

    Android form: `deviceId`, `generation`, `expectedRevision`. Exactly one of them.
    """

    action: Literal["claim", "release"]
    terminal_session_id: Id | None = None
    device_id: Uuid | None = None
    generation: Uuid | None = None
    expected_revision: Decimal | None = None


class TerminalControl(Result, frozen=True, kw_only=True, tag_field="kind", tag="terminal_control"):
    """Who may type now. `leaseId` is filled in when the receipt is read, never stored."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    lease_id: str | None
    controlled: bool


class AndroidControl(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_control"):
    """Who may touch the phone now. `leaseId` is filled in when the receipt is read, never stored."""

    workspace_id: str
    device_id: str
    generation: str
    controlled: bool
    lease_id: str | None


class PanelCloseInput(PanelRevised, frozen=True, kw_only=True):
    """The panel to close, with its current runtime identity where it has one."""

    terminal_session_id: Id | None = None
    browser_generation: Id | None = None


def _move_scopes(given: PanelMoveInput) -> tuple[str, ...]:
    return () if isinstance(given.movement, ReorderTab) else ("panel.focus",)


def _one_form(given: PanelControlInput) -> None:
    if given.terminal_session_id is not None:
        for field, value in (
            ("/deviceId", given.device_id),
            ("/generation", given.generation),
            ("/expectedRevision", given.expected_revision),
        ):
            if value is not None:
                raise OutOfBounds(field, "variant_unclear")
        return
    for field, value in (
        ("/deviceId", given.device_id),
        ("/generation", given.generation),
        ("/expectedRevision", given.expected_revision),
    ):
        if value is None:
            raise OutOfBounds(field, "variant_unclear")


def _control_scopes(given: PanelControlInput) -> tuple[str, ...]:
    if given.device_id is not None or given.generation is not None:
        return ("android.read", "android.control", "android.interact")
    return ("terminal.execute",)


TOOLS = (
    define(
        name="lomi_panel_list",
        family="panel",
        purpose="List the panels of a workspace: runtime identity, ownership, domainRevision.",
        input=PanelListInput,
        queue="none",
        results=(Panels,),
        scopes=("workspace.read",),
    ),
    define(
        name="lomi_panel_focus",
        family="panel",
        purpose="Reveal one panel without starting anything.",
        input=PanelFocusInput,
        results=(PanelChanged,),
        scopes=("panel.focus",),
        mutation=True,
        queue="layout",
        more_scopes_text=("chat panel: chat.read + chat.open", "Android panel: android.read"),
    ),
    define(
        name="lomi_panel_move",
        family="panel",
        purpose="Reorder, dock, move or transfer panels inside a project; runtimes stay alive.",
        input=PanelMoveInput,
        results=(PanelMoved,),
        scopes=("workspace.write", "panel.move"),
        more_scopes=_move_scopes,
        more_scopes_text=("all but reorder_tab: panel.focus",),
        mutation=True,
        queue="layout",
    ),
    define(
        name="lomi_panel_control",
        family="panel",
        purpose="Claim or release input control of a terminal (terminalSessionId) or a phone (deviceId + generation).",
        input=PanelControlInput,
        results=(TerminalControl, AndroidControl),
        more_scopes=_control_scopes,
        rule=_one_form,
        more_scopes_text=(
            "terminal: terminal.execute",
            "phone: android.read + android.control + android.interact",
        ),
        mutation=True,
        decision_s=120.0,
    ),
    define(
        name="lomi_panel_close",
        family="panel",
        purpose="Close one panel; a terminal's PTY, a page or a phone's last view end with it.",
        input=PanelCloseInput,
        results=(PanelChanged,),
        scopes=("panel.close", "panel.create"),
        more_scopes_text=("terminal: terminal.execute", "last view of a phone: android.read + android.control"),
        mutation=True,
        destructive=True,
        deadline_s=120.0,
        queue="layout",
    ),
)
REASONS = (
    Reason("not_leased_here", ErrorCode.UNSUPPORTED_CAPABILITY, "Only terminals and phones are claimed this way."),
    Reason("not_held", ErrorCode.TARGET_NOT_FOUND, "This session does not hold control of it."),
    Reason("phone_not_running", ErrorCode.STALE_GENERATION, "Start the phone first, then claim its new generation."),
)
