"""The layout as the broker holds it: the frozen value, its stored revision, and the port's views of it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from lomi.broker.counters import Counters
from lomi.broker.storing import storing
from lomi.contract.codes import Details, ErrorCode
from lomi.core.ids import PanelId, ProjectId, WorkspaceId
from lomi.core.layout import Layout, PanelRecord, ProjectRecord, WorkspaceRecord
from lomi.core.port import Panel, Project, ResourceKey, Workspace
from lomi.core.refusal import EffectFailed, Refusal

SaveLayout = Callable[[int, bytes], "asyncio.Future[None]"]


def project_view(record: ProjectRecord) -> Project:
    """A project as adapters see it."""
    return Project(
        id=ProjectId(record.id), name=record.name, path=Path(record.path), device=record.device, inode=record.inode
    )


def workspace_view(record: WorkspaceRecord) -> Workspace:
    """A workspace as adapters see it."""
    return Workspace(id=WorkspaceId(record.id), project_id=ProjectId(record.project), name=record.name)


def resource_of(record: PanelRecord) -> ResourceKey | None:
    """What a panel shows."""
    if record.resource_kind is None or record.resource_name is None:
        return None
    return ResourceKey(record.resource_kind, record.resource_name)


class LayoutBuiltOnError(Exception):
    """Raised when a change could not be stored by itself, and a later one that holds it may yet be."""


class _Views:
    """Adapters' views of one layout, each made once: every call of a session asks for its three twice over."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._panels: dict[str, Panel] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._projects: dict[str, Project] = {}

    def panel(self, panel_id: str) -> Panel | None:
        known = self._panels.get(panel_id)
        if known is not None:
            return known
        record = self.layout.panels.get(panel_id)
        workspace = self.layout.workspace_of(panel_id)
        tab = self.layout.tab_of(panel_id)
        if record is None or workspace is None or tab is None:
            return None
        known = self._panels[panel_id] = Panel(
            id=PanelId(record.id),
            workspace_id=WorkspaceId(workspace.id),
            tab_id=tab.id,
            kind=record.kind,
            title=record.title,
            resource=resource_of(record),
        )
        return known

    def workspace(self, workspace_id: str) -> Workspace | None:
        record = self.layout.workspaces.get(workspace_id)
        if record is not None and workspace_id not in self._workspaces:
            self._workspaces[workspace_id] = workspace_view(record)
        return self._workspaces.get(workspace_id)

    def project(self, project_id: str) -> Project | None:
        record = self.layout.projects.get(project_id)
        if record is not None and project_id not in self._projects:
            self._projects[project_id] = project_view(record)
        return self._projects.get(project_id)


class LayoutRoom:
    """Holds the present layout. `revision` is the domain revision: stored, and only growing."""

    def __init__(self, stored: tuple[int, bytes] | None, *, save: SaveLayout, counters: Counters) -> None:
        self.revision, body = stored if stored is not None else (1, b"")
        self.layout = msgspec.json.decode(body, type=Layout) if body else Layout()
        self._save = save
        self.counters = counters
        self._closing: frozenset[str] = frozenset()
        self._views = _Views(self.layout)

    @contextmanager
    def closing(self, workspaces: Sequence[str]) -> Iterator[None]:
        """While their runtimes end, nothing opens in these workspaces. The layout's queue closes one at a time."""
        self._closing = frozenset(workspaces)
        try:
            yield
        finally:
            self._closing = frozenset()

    def require_staying(self, workspace_id: str) -> None:
        """Raise TARGET_NOT_FOUND when the workspace is being closed, as if it were gone already."""
        if workspace_id in self._closing:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/workspaceId")

    async def change(self, layout: Layout) -> None:
        """Make `layout` the present one; returns when it is durable. Later changes build on it at once.

        Raises:
            Refusal: STORAGE_UNAVAILABLE when it could not be stored; the earlier layout stands then.
            LayoutBuiltOnError: as above, but a later change has built on it, which may yet be stored with it.
        """
        before, revision = self.layout, self.revision
        if layout == before:
            return
        self.layout, self.revision = layout, revision + 1
        saved = self._save(self.revision, msgspec.json.encode(layout))
        try:
            await storing(saved)
        except Refusal as refused:
            if self.layout is not layout:
                raise LayoutBuiltOnError from refused
            self.layout = before
            raise

    async def change_only(self, layout: Layout) -> None:
        """As `change`, for an effect that is this change and nothing else.

        Raises:
            EffectFailed: it could not be stored and the earlier layout stands: nothing was done.
            LayoutBuiltOnError: it could not be stored, and a later change has built on it meanwhile.
        """
        try:
            await self.change(layout)
        except Refusal as refused:
            raise EffectFailed(refused, partial=False) from refused

    def _seen(self) -> "_Views":
        if self._views.layout is not self.layout:
            self._views = _Views(self.layout)
        return self._views

    def panel(self, panel_id: str) -> Panel | None:
        """A panel by id, as adapters see it."""
        return self._seen().panel(panel_id)

    def workspace(self, workspace_id: str) -> Workspace | None:
        """A workspace by id, as adapters see it."""
        return self._seen().workspace(workspace_id)

    def project(self, project_id: str) -> Project | None:
        """A project by id, as adapters see it."""
        return self._seen().project(project_id)

    def require_room_for_workspace(self, most: int) -> None:
        """Raise RESOURCE_EXHAUSTED when no further workspace may be opened."""
        if len(self.layout.workspaces) >= most:
            raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, "limit_full", details=Details(limit=most))
