"""The layout as one frozen value: projects, their workspaces, tabs of panes. Each change makes a new value.

The broker owns the layout; a window is only a view of it. Moving a pane never touches the runtime behind its panel.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import DockTab, Movement, MovePane, PanelKind, ReorderTab, Side, TransferTab
from lomi.core.refusal import Refusal


class Pane(msgspec.Struct, frozen=True, tag="pane"):
    """One panel's place."""

    panel: str


class Split(msgspec.Struct, frozen=True, tag="split"):
    """Panes beside each other (`row`) or below each other (`column`)."""

    axis: Literal["row", "column"]
    children: tuple["Pane | Split", ...]


class Tab(msgspec.Struct, frozen=True):
    """A tab and the panes in it."""

    id: str
    root: Pane | Split


class PanelRecord(msgspec.Struct, frozen=True):
    """A panel and the resource it shows."""

    id: str
    kind: PanelKind
    title: str
    resource_kind: ResourceKind | None = None
    resource_name: str | None = None


class WorkspaceRecord(msgspec.Struct, frozen=True):
    """A workspace with its tabs in order."""

    id: str
    project: str
    name: str
    tabs: tuple[Tab, ...] = ()
    active_panel: str | None = None


class ProjectRecord(msgspec.Struct, frozen=True):
    """An open folder by canonical path and identity."""

    id: str
    name: str
    path: str
    device: int
    inode: int


class Layout(msgspec.Struct, frozen=True):
    """Everything that is open, and which workspace is active."""

    projects: dict[str, ProjectRecord] = {}
    workspaces: dict[str, WorkspaceRecord] = {}
    panels: dict[str, PanelRecord] = {}
    active_workspace: str | None = None

    def workspace_of(self, panel: str) -> WorkspaceRecord | None:
        """The workspace that holds a panel."""
        return next((w for w in self.workspaces.values() if panel in panels_in(w)), None)

    def tab_of(self, panel: str) -> Tab | None:
        """The tab that holds a panel."""
        workspace = self.workspace_of(panel)
        return next((t for t in workspace.tabs if panel in panes(t.root)), None) if workspace else None

    def views_of(self, kind: ResourceKind, name: str) -> tuple[PanelRecord, ...]:
        """Every panel that shows a resource."""
        return tuple(p for p in self.panels.values() if p.resource_kind == kind and p.resource_name == name)

    def workspaces_of(self, project: str) -> tuple[WorkspaceRecord, ...]:
        """The workspaces of a project, in order of creation."""
        return tuple(w for w in self.workspaces.values() if w.project == project)


def panes(node: Pane | Split) -> Iterator[str]:
    """The panels under a node, in reading order."""
    waiting: list[Pane | Split] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Pane):
            yield current.panel
        else:
            waiting.extend(reversed(current.children))


def panels_in(workspace: WorkspaceRecord) -> tuple[str, ...]:
    """The panels of a workspace, in tab and reading order."""
    return tuple(panel for tab in workspace.tabs for panel in panes(tab.root))


def _missing(field: str) -> Refusal:
    return Refusal(ErrorCode.TARGET_NOT_FOUND, field=field)


def _with_workspace(layout: Layout, workspace: WorkspaceRecord) -> Layout:
    return msgspec.structs.replace(layout, workspaces={**layout.workspaces, workspace.id: workspace})


def open_project(layout: Layout, project: ProjectRecord) -> Layout:
    """Add a project.

    Raises:
        Refusal: REVISION_CONFLICT when the same folder is open already.
    """
    same = [p for p in layout.projects.values() if (p.device, p.inode) == (project.device, project.inode)]
    if same:
        raise Refusal(ErrorCode.REVISION_CONFLICT, "already_open", field="/projectPath")
    return msgspec.structs.replace(layout, projects={**layout.projects, project.id: project})


def create_workspace(layout: Layout, workspace: WorkspaceRecord, tab: str, scratch: PanelRecord) -> Layout:
    """Add a workspace that opens with one scratch panel, and make it active."""
    made = msgspec.structs.replace(workspace, tabs=(Tab(tab, Pane(scratch.id)),), active_panel=scratch.id)
    layout = msgspec.structs.replace(layout, panels={**layout.panels, scratch.id: scratch}, active_workspace=made.id)
    return _with_workspace(layout, made)


def rename_workspace(layout: Layout, workspace: str, name: str) -> Layout:
    """Give a workspace another name."""
    return _with_workspace(layout, msgspec.structs.replace(layout.workspaces[workspace], name=name))


def select_workspace(layout: Layout, workspace: str) -> Layout:
    """Make a workspace the active one."""
    return msgspec.structs.replace(layout, active_workspace=workspace)


def close_workspace(layout: Layout, workspace: str) -> Layout:
    """Take a workspace and its panels out. No other is selected."""
    gone = set(panels_in(layout.workspaces[workspace]))
    return msgspec.structs.replace(
        layout,
        workspaces={k: v for k, v in layout.workspaces.items() if k != workspace},
        panels={k: v for k, v in layout.panels.items() if k not in gone},
        active_workspace=None if layout.active_workspace == workspace else layout.active_workspace,
    )


def close_project(layout: Layout, project: str) -> Layout:
    """Take a project and all its workspaces out."""
    for workspace in layout.workspaces_of(project):
        layout = close_workspace(layout, workspace.id)
    return msgspec.structs.replace(layout, projects={k: v for k, v in layout.projects.items() if k != project})


def open_panel(layout: Layout, workspace: str, tab: str, panel: PanelRecord) -> Layout:
    """Add a panel in a new tab at the end.

    Raises:
        Refusal: TARGET_NOT_FOUND when the workspace was closed meanwhile.
    """
    if workspace not in layout.workspaces:
        raise _missing("/workspaceId")
    record = layout.workspaces[workspace]
    layout = msgspec.structs.replace(layout, panels={**layout.panels, panel.id: panel})
    return _with_workspace(
        layout, msgspec.structs.replace(record, tabs=(*record.tabs, Tab(tab, Pane(panel.id))), active_panel=panel.id)
    )


def focus_panel(layout: Layout, panel: str) -> Layout:
    """Make a panel the active one of its workspace, and that workspace active.

    Raises:
        Refusal: TARGET_NOT_FOUND when it was closed meanwhile.
    """
    workspace = layout.workspace_of(panel)
    if workspace is None:
        raise _missing("/panelId")
    return select_workspace(
        _with_workspace(layout, msgspec.structs.replace(workspace, active_panel=panel)), workspace.id
    )


def _without(node: Pane | Split, panel: str) -> Pane | Split | None:
    if isinstance(node, Pane):
        return None if node.panel == panel else node
    children = tuple(c for c in (_without(child, panel) for child in node.children) if c is not None)
    if len(children) <= 1:
        return children[0] if children else None
    return Split(node.axis, children)


def _take_out(workspace: WorkspaceRecord, panel: str) -> WorkspaceRecord:
    tabs = tuple(Tab(t.id, root) for t in workspace.tabs if (root := _without(t.root, panel)) is not None)
    left = msgspec.structs.replace(workspace, tabs=tabs)
    if workspace.active_panel == panel:
        left = msgspec.structs.replace(left, active_panel=next(iter(panels_in(left)), None))
    return left


def close_panel(layout: Layout, panel: str) -> Layout:
    """Take a panel out; its tab goes with its last pane.

    Raises:
        Refusal: TARGET_NOT_FOUND when it was closed meanwhile.
    """
    workspace = layout.workspace_of(panel)
    if workspace is None:
        raise _missing("/panelId")
    layout = _with_workspace(layout, _take_out(workspace, panel))
    return msgspec.structs.replace(layout, panels={k: v for k, v in layout.panels.items() if k != panel})


def _beside(target: Pane | Split, added: Pane | Split, side: Side) -> Split:
    axis: Literal["row", "column"] = "row" if side in ("left", "right") else "column"
    first = side in ("left", "top")
    if isinstance(target, Split) and target.axis == axis:
        return Split(axis, (added, *target.children) if first else (*target.children, added))
    return Split(axis, (added, target) if first else (target, added))


def _insert(node: Pane | Split, at: str, added: Pane | Split, side: Side) -> Pane | Split:
    if isinstance(node, Pane):
        return _beside(node, added, side) if node.panel == at else node
    return Split(node.axis, tuple(_insert(child, at, added, side) for child in node.children))


def _placed(tabs: tuple[Tab, ...], tab: Tab, before: str | None) -> tuple[Tab, ...]:
    if before is None:
        return (*tabs, tab)
    places = [t.id for t in tabs]
    if before not in places:
        raise _missing("/movement/beforeTabId")
    index = places.index(before)
    return (*tabs[:index], tab, *tabs[index:])


def _tab(workspace: WorkspaceRecord, tab: str, field: str) -> Tab:
    found = next((t for t in workspace.tabs if t.id == tab), None)
    if found is None:
        raise _missing(field)
    return found


def move(layout: Layout, workspace_id: str, movement: Movement) -> Layout:
    """Make one movement; every panel and runtime stays as it is.

    Raises:
        Refusal: TARGET_NOT_FOUND for an unknown tab, panel or workspace; UNSUPPORTED_CAPABILITY for one into itself,
            for a diff or commit panel in a dock, and for a transfer to another project.
    """
    workspace = layout.workspaces[workspace_id]
    match movement:
        case ReorderTab():
            tab = _tab(workspace, movement.tab_id, "/movement/tabId")
            if movement.before_tab_id == tab.id:
                return layout
            others = tuple(t for t in workspace.tabs if t.id != tab.id)
            placed = _placed(others, tab, movement.before_tab_id)
            return _with_workspace(layout, msgspec.structs.replace(workspace, tabs=placed))
        case DockTab():
            return _dock(layout, workspace, movement)
        case MovePane():
            return _move_pane(layout, workspace, movement)
        case TransferTab():
            return _transfer(layout, workspace, movement)


def _refuse_undockable(layout: Layout, panels: Iterator[str]) -> None:
    if any(layout.panels[panel].kind in ("diff", "commit") for panel in panels):
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "not_dockable", field="/movement")


def _dock(layout: Layout, workspace: WorkspaceRecord, movement: DockTab) -> Layout:
    tab = _tab(workspace, movement.tab_id, "/movement/tabId")
    target = _tab(workspace, movement.target_tab_id, "/movement/targetTabId")
    if tab.id == target.id:
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "into_itself", field="/movement/targetTabId")
    _refuse_undockable(layout, panes(tab.root))
    docked = Tab(target.id, _beside(target.root, tab.root, movement.side))
    tabs = tuple(docked if t.id == target.id else t for t in workspace.tabs if t.id != tab.id)
    return _with_workspace(layout, msgspec.structs.replace(workspace, tabs=tabs))


def _move_pane(layout: Layout, workspace: WorkspaceRecord, movement: MovePane) -> Layout:
    here = panels_in(workspace)
    if movement.panel_id not in here:
        raise _missing("/movement/panelId")
    if movement.target_panel_id not in here:
        raise _missing("/movement/targetPanelId")
    if movement.panel_id == movement.target_panel_id:
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "into_itself", field="/movement/targetPanelId")
    _refuse_undockable(layout, iter((movement.panel_id,)))
    active = workspace.active_panel
    left = _take_out(workspace, movement.panel_id)
    moved = Pane(movement.panel_id)
    tabs = tuple(Tab(t.id, _insert(t.root, movement.target_panel_id, moved, movement.side)) for t in left.tabs)
    return _with_workspace(layout, msgspec.structs.replace(left, tabs=tabs, active_panel=active))


def _transfer(layout: Layout, workspace: WorkspaceRecord, movement: TransferTab) -> Layout:
    tab = _tab(workspace, movement.tab_id, "/movement/tabId")
    target = layout.workspaces.get(movement.target_workspace_id)
    if target is None:
        raise _missing("/movement/targetWorkspaceId")
    if target.project != workspace.project:
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "other_project", field="/movement/targetWorkspaceId")
    if target.id == workspace.id:
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "into_itself", field="/movement/targetWorkspaceId")
    left = msgspec.structs.replace(workspace, tabs=tuple(t for t in workspace.tabs if t.id != tab.id))
    if left.active_panel in tuple(panes(tab.root)):
        left = msgspec.structs.replace(left, active_panel=next(iter(panels_in(left)), None))
    placed = _placed(target.tabs, tab, movement.before_tab_id)
    return _with_workspace(_with_workspace(layout, left), msgspec.structs.replace(target, tabs=placed))
