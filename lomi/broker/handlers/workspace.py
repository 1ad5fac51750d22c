"""Workspaces and projects: the layout's larger pieces. Their closing ends the runtimes that nobody else shows."""

import asyncio
import stat
from pathlib import Path
from typing import Any

from lomi.broker.handlers.closing import Closing
from lomi.broker.paging import fit
from lomi.broker.world import World
from lomi.contract.codes import ErrorCode
from lomi.contract.panel import PanelChanged
from lomi.contract.workspace import (
    ProjectCloseInput,
    ProjectClosure,
    ProjectOpened,
    ProjectOpenInput,
    WorkspaceClosure,
    WorkspaceCreateInput,
    WorkspaceListInput,
    WorkspaceNamed,
    Workspaces,
    WorkspaceUpdateInput,
    WorkspaceView,
)
from lomi.core import layout as layouts
from lomi.core.layout import PanelRecord, ProjectRecord, WorkspaceRecord
from lomi.core.port import Act, Call, Outcome, Permit, Plan, Read, Reply
from lomi.core.refusal import Refusal
from lomi.disk.refusal import DiskRefusedError
from lomi.disk.root import PinnedRoot, Protected


def folder_identity(path: Path, protected: Protected = ()) -> tuple[Path, int, int]:
    """The canonical path of a folder, with its device and inode; blocking.

    Raises:
        Refusal: TARGET_NOT_FOUND (`not_a_folder`), SCOPE_DENIED (`protected_place`) inside a protected folder.
    """
    try:
        canonical = path.resolve(strict=True)
        found = canonical.stat()
    except (OSError, RuntimeError) as error:
        raise Refusal(ErrorCode.TARGET_NOT_FOUND, "not_a_folder", field="/projectPath") from error
    if not stat.S_ISDIR(found.st_mode):
        raise Refusal(ErrorCode.TARGET_NOT_FOUND, "not_a_folder", field="/projectPath")
    try:
        PinnedRoot.open(canonical, protected=protected).close()
    except DiskRefusedError as refused:
        raise Refusal(ErrorCode.SCOPE_DENIED, "protected_place", field="/projectPath") from refused
    return canonical, found.st_dev, found.st_ino


def _opening(name: str, path: Path, device: int, inode: int) -> Plan:
    return Plan(
        title="Open a folder as a project",
        lines=(f"folder {path}", f"as {name}"),
        binding=(("path", str(path)), ("device", str(device)), ("inode", str(inode)), ("name", name)),
    )


class WorkspaceHandlers:
    """Lists, makes, renames, selects and closes."""

    def __init__(self, world: World, closing: Closing, protected: Protected) -> None:
        self._world = world
        self._closing = closing
        self._protected = protected

    def handlers(self) -> tuple[Read | Act, ...]:
        """The handlers, for the broker's table."""
        return (
            Read(tool="lomi_workspace_list", read=self.list),
            Act(tool="lomi_workspace_create", act=self.create),
            Act(tool="lomi_workspace_update", act=self.update, check=self.check_update),
            Act(tool="lomi_project_open", act=self.open_project, plan=self.plan_open),
            Act(tool="lomi_project_close", act=self.close_project, check=self.check_close_project),
        )

    async def list(self, call: Call[WorkspaceListInput]) -> Reply:
        """The granted workspaces, in order of creation."""
        room, given = self._world.layout, call.input
        session = self._world.sessions.get(call.session_id)
        if session is None:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
        seen = [record for record in room.layout.workspaces.values() if session.sees_workspace(record.id)]
        view = ("workspaces", str(room.revision))
        offset = session.cursors.offset(given.cursor, view)
        rows = [self._view(record) for record in seen[offset : offset + given.limit]]
        page = fit(rows, given.limit)
        more = offset + len(page) < len(seen)
        return Reply(
            data=Workspaces(
                items=page,
                next_cursor=session.cursors.make(view, offset + len(page)) if more else None,
                domain_revision=str(room.revision),
            )
        )

    def _view(self, record: WorkspaceRecord) -> WorkspaceView:
        project = self._world.layout.layout.projects[record.project]
        return WorkspaceView(
            id=record.id,
            active_panel_id=record.active_panel,
            project_id=record.project,
            name=record.name,
            project_name=project.name,
            project_path=project.path,
        )

    async def _new_workspace(self, project: str, name: str) -> tuple[WorkspaceRecord, str, PanelRecord]:
        room = self._world.layout
        room.require_room_for_workspace(self._world.limits.workspaces)
        await room.counters.stock("workspace", "panel", "tab", "project")
        workspace = WorkspaceRecord(room.counters.id("workspace"), project, name)
        return workspace, room.counters.id("tab"), PanelRecord(room.counters.id("panel"), "file", "Scratch")

    def _let_in(self, call: Call[Any], workspace: str) -> None:
        session = self._world.sessions.get(call.session_id)
        if session is not None:
            session.let_in(workspace)

    async def create(self, call: Call[WorkspaceCreateInput], permit: Permit) -> Outcome:
        """A workspace beside the anchor; its creator may use it."""
        room = self._world.layout
        assert call.project is not None
        workspace, tab, scratch = await self._new_workspace(call.project.id, call.input.name.strip())
        async with permit.effect():
            await room.change_only(layouts.create_workspace(room.layout, workspace, tab, scratch))
        self._let_in(call, workspace.id)
        return Outcome(result=WorkspaceNamed(workspace_id=workspace.id, name=workspace.name))

    def check_update(self, call: Call[WorkspaceUpdateInput]) -> None:
        """To close it, the scopes that its live panels add."""
        if call.input.action == "close" and call.workspace is not None:
            self._closing.require_scopes(
                call, layouts.panels_in(self._world.layout.layout.workspaces[call.workspace.id])
            )

    async def update(self, call: Call[WorkspaceUpdateInput], permit: Permit) -> Outcome:
        """Rename, select or close."""
        room, given = self._world.layout, call.input
        assert call.workspace is not None
        if given.name is not None:
            async with permit.effect():
                await room.change_only(layouts.rename_workspace(room.layout, call.workspace.id, given.name.strip()))
            return Outcome(result=WorkspaceNamed(workspace_id=call.workspace.id, name=given.name.strip()))
        if given.action == "select":
            async with permit.effect():
                await room.change_only(layouts.select_workspace(room.layout, call.workspace.id))
            active = room.layout.workspaces[call.workspace.id].active_panel
            changed = PanelChanged(workspace_id=call.workspace.id, panel_id=active or "", focused=True, closed=False)
            return Outcome(result=changed)
        panels = layouts.panels_in(room.layout.workspaces[call.workspace.id])
        terminals = self._closing.terminal_sessions(panels)
        async with permit.effect():
            with room.closing((call.workspace.id,)):
                await self._closing.end_runtimes(panels, permit)
                await room.change(layouts.close_workspace(room.layout, call.workspace.id))
        return Outcome(
            result=WorkspaceClosure(
                workspace_id=call.workspace.id,
                project_id=call.workspace.project_id,
                panel_ids=panels,
                terminal_session_ids=terminals,
                closed=True,
                project_closed=False,
            )
        )

    async def plan_open(self, call: Call[ProjectOpenInput]) -> Plan:
        """What a person decides on: this very folder, by device and inode."""
        path, device, inode = await asyncio.to_thread(folder_identity, Path(call.input.project_path), self._protected)
        return _opening(call.input.name, path, device, inode)

    async def open_project(self, call: Call[ProjectOpenInput], permit: Permit) -> Outcome:
        """Open it, if it is still the folder that was decided on."""
        room, given = self._world.layout, call.input
        path, device, inode = await asyncio.to_thread(folder_identity, Path(given.project_path), self._protected)
        if call.decided != _opening(given.name, path, device, inode):
            raise Refusal(ErrorCode.REVISION_CONFLICT, "folder_replaced", field="/projectPath")
        await room.counters.stock("project")
        project = ProjectRecord(room.counters.id("project"), given.name.strip(), str(path), device, inode)
        workspace, tab, scratch = await self._new_workspace(project.id, "main")
        with_project = layouts.open_project(room.layout, project)
        async with permit.effect():
            await room.change_only(layouts.create_workspace(with_project, workspace, tab, scratch))
        self._let_in(call, workspace.id)
        return Outcome(
            result=ProjectOpened(
                anchor_workspace_id=given.workspace_id,
                project_id=project.id,
                project_path=project.path,
                workspace_id=workspace.id,
                panel_id=scratch.id,
                name=project.name,
                opened=True,
            )
        )

    def _project_panels(self, project: str) -> tuple[str, ...]:
        owned = self._world.layout.layout.workspaces_of(project)
        return tuple(panel for workspace in owned for panel in layouts.panels_in(workspace))

    def check_close_project(self, call: Call[ProjectCloseInput]) -> None:
        """The scopes that its live panels add."""
        self._closing.require_scopes(call, self._project_panels(call.input.project_id))

    async def close_project(self, call: Call[ProjectCloseInput], permit: Permit) -> Outcome:
        """Close it with all that it shows."""
        room, given = self._world.layout, call.input
        panels = self._project_panels(given.project_id)
        workspaces = tuple(record.id for record in room.layout.workspaces_of(given.project_id))
        terminals = self._closing.terminal_sessions(panels)
        async with permit.effect():
            with room.closing(workspaces):
                await self._closing.end_runtimes(panels, permit)
                await room.change(layouts.close_project(room.layout, given.project_id))
        return Outcome(
            result=ProjectClosure(
                workspace_id=given.workspace_id,
                project_id=given.project_id,
                workspace_ids=workspaces,
                panel_ids=panels,
                terminal_session_ids=terminals,
                closed=True,
            )
        )
