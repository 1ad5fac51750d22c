"""Workspace and project tools: list, create, rename, select, close; open and close a project."""

from typing import Annotated, Literal

from lomi.contract.bounds import LINE, NO_CONTROL, Cursor, Id, OutOfBounds, items, number, text
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, Input, Model, Result, RevisedInput
from lomi.contract.panel import PanelChanged

Name = Annotated[str, text(256, shortest=1, pattern=LINE)]
Ids = Annotated[tuple[str, ...], items(128)]


class WorkspaceListInput(Input, frozen=True, kw_only=True):
    """A page of the granted workspaces."""

    limit: Annotated[int, number(1, 500)] = 100
    cursor: Cursor | None = None


class WorkspaceView(Model, frozen=True, kw_only=True):
    """One workspace and the project that it belongs to."""

    id: str
    active_panel_id: str | None
    project_id: str
    name: str
    project_name: str
    project_path: str


class Workspaces(Data, frozen=True, kw_only=True, tag_field="kind", tag="workspaces"):
    """A page of workspaces with the domain revision."""

    items: tuple[WorkspaceView, ...]
    next_cursor: str | None
    domain_revision: str


class WorkspaceCreateInput(RevisedInput, frozen=True, kw_only=True):
    """`workspaceId` is any workspace of the project that the new one is for."""

    name: Name


class WorkspaceNamed(Result, frozen=True, kw_only=True, tag_field="kind", tag="workspace"):
    """A workspace that was created or renamed."""

    workspace_id: str
    name: str


class WorkspaceUpdateInput(RevisedInput, frozen=True, kw_only=True):
    """Rename form: `name`. Select or close form: `action`. Exactly one of them."""

    name: Name | None = None
    action: Literal["select", "close"] | None = None


class WorkspaceClosure(Result, frozen=True, kw_only=True, tag_field="kind", tag="workspace_closure"):
    """What a closing took along. `closed` is null while it is only prepared."""

    workspace_id: str
    project_id: str
    panel_ids: Ids
    terminal_session_ids: Ids
    closed: bool | None
    project_closed: bool | None


class ProjectOpenInput(RevisedInput, frozen=True, kw_only=True):
    """The folder to open, by absolute path. `workspaceId` only anchors the request."""

    project_path: Annotated[str, text(4096, shortest=1, pattern="/" + NO_CONTROL)]
    name: Name


class ProjectOpened(Result, frozen=True, kw_only=True, tag_field="kind", tag="project_opened"):
    """The project, its first workspace and panel. `opened` is null while it is only prepared."""

    anchor_workspace_id: str
    project_id: str
    project_path: str
    workspace_id: str
    panel_id: str
    name: str
    opened: bool | None


class ProjectCloseInput(RevisedInput, frozen=True, kw_only=True):
    """The project, and one of its workspaces."""

    project_id: Id


class ProjectClosure(Result, frozen=True, kw_only=True, tag_field="kind", tag="project_closure"):
    """What a closing took along. `closed` is null while it is only prepared."""

    workspace_id: str
    project_id: str
    workspace_ids: tuple[str, ...]
    panel_ids: tuple[str, ...]
    terminal_session_ids: tuple[str, ...]
    closed: bool | None


def _update_scopes(given: WorkspaceUpdateInput) -> tuple[str, ...]:
    if given.action == "close":
        return ("workspace.close", "panel.close")
    return ("panel.focus",) if given.action == "select" else ()


def _one_change(given: WorkspaceUpdateInput) -> None:
    if (given.name is None) == (given.action is None):
        raise OutOfBounds("/name" if given.action is None else "/action", "variant_unclear")


_CLOSE_SCOPES = (
    "with live terminals: terminal.execute",
    "with chat panels: chat.read, and chat.stop for a conversation's last view",
    "with phones: android.read, and android.control for a phone's last view",
)

TOOLS = (
    define(
        name="lomi_workspace_list",
        family="workspace",
        purpose="List the granted workspaces with their projects and the domainRevision.",
        input=WorkspaceListInput,
        results=(Workspaces,),
        scopes=("workspace.read",),
        queue="none",
        notes=("A cursor ends when the domain revision changes.",),
    ),
    define(
        name="lomi_workspace_create",
        family="workspace",
        purpose="Create a workspace in the project of workspaceId; it becomes the active one and starts no shell.",
        input=WorkspaceCreateInput,
        results=(WorkspaceNamed,),
        scopes=("workspace.write", "panel.create"),
        mutation=True,
        queue="layout",
        notes=("The creating session gains access to the new workspace.",),
    ),
    define(
        name="lomi_workspace_update",
        family="workspace",
        purpose="Rename (name), select or close (action) one workspace.",
        input=WorkspaceUpdateInput,
        results=(WorkspaceNamed, PanelChanged, WorkspaceClosure),
        scopes=("workspace.write",),
        more_scopes=_update_scopes,
        more_scopes_text=(
            "select: panel.focus",
            "close: workspace.close + panel.close",
            *(f"close {case}" for case in _CLOSE_SCOPES),
        ),
        rule=_one_change,
        mutation=True,
        destructive=True,
        deadline_s=120.0,
        queue="layout",
        notes=(
            "Close never selects another workspace on purpose; it takes at most 128 panels.",
            "Where a person chooses Save in the guard, the workspace stays open: failed/partial, closed false.",
        ),
    ),
    define(
        name="lomi_project_open",
        family="workspace",
        purpose="Open one absolute folder as a project, after a decision bound to that very folder.",
        input=ProjectOpenInput,
        results=(ProjectOpened,),
        scopes=("project.open", "workspace.write", "panel.create"),
        mutation=True,
        deadline_s=120.0,
        decision_s=120.0,
        queue="layout",
        notes=("The folder's device and inode are pinned; a path that is open already is a revision conflict.",),
    ),
    define(
        name="lomi_project_close",
        family="workspace",
        purpose="Close a project with all of its workspaces.",
        input=ProjectCloseInput,
        results=(ProjectClosure,),
        scopes=("project.close", "workspace.write", "workspace.close", "panel.close"),
        more_scopes_text=_CLOSE_SCOPES,
        mutation=True,
        destructive=True,
        deadline_s=120.0,
        queue="layout",
        notes=("Every workspace of the project must be in the grant.",),
    ),
)

_CONFLICT = ErrorCode.REVISION_CONFLICT
REASONS = (
    Reason("already_open", _CONFLICT, "That folder is open already; find it with lomi_workspace_list."),
    Reason(
        "folder_replaced", _CONFLICT, "The folder at this path is no longer the one that was decided on; ask again."
    ),
    Reason("not_a_folder", ErrorCode.TARGET_NOT_FOUND, "Give the absolute path of an existing folder."),
    Reason("layout_changed", _CONFLICT, "The panels changed meanwhile; list them and send a new request."),
    Reason("unsaved_changes", ErrorCode.TARGET_BUSY, "Save or discard the unsaved file first."),
    Reason("kept_open", ErrorCode.CONTROL_REVOKED, "The person chose to keep it open."),
    Reason("panel_not_started", ErrorCode.SCOPE_DENIED, "Focusing starts nothing; start that panel's runtime first."),
    Reason("into_itself", ErrorCode.UNSUPPORTED_CAPABILITY, "A tab or pane can't be put beside itself."),
    Reason("other_project", ErrorCode.UNSUPPORTED_CAPABILITY, "Transfers stay inside one project."),
    Reason("not_dockable", ErrorCode.UNSUPPORTED_CAPABILITY, "A diff or commit panel can't be docked."),
    Reason("own_terminal", ErrorCode.PROTECTED_ORIGIN_TERMINAL, "That terminal hosts you; leave it alone."),
)
