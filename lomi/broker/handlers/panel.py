"""Panels: list, focus, move, close; and control, the one way to a lease of what exists already."""

from contextlib import suppress
from pathlib import Path

from lomi.broker.ancestry import ancestors_of
from lomi.broker.handlers.closing import Closing
from lomi.broker.layout_room import resource_of
from lomi.broker.ledger import BrokerLedger
from lomi.broker.paging import fit
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.contract.codes import Details, ErrorCode, OperationState
from lomi.contract.panel import (
    AndroidControl,
    Destination,
    Ownership,
    PanelChanged,
    PanelCloseInput,
    PanelControlInput,
    PanelFocusInput,
    PanelListInput,
    PanelMoved,
    PanelMoveIdentity,
    PanelMoveInput,
    Panels,
    PanelView,
    RuntimeState,
    TerminalControl,
    TransferTab,
)
from lomi.core import layout as layouts
from lomi.core.ids import GenerationId, LeaseId, SessionId
from lomi.core.layout import PanelRecord
from lomi.core.port import Act, AtOnce, Call, Outcome, Permit, Plan, Read, Reply, ResourceKey
from lomi.core.refusal import Refusal


class PanelHandlers:
    """Shows and arranges panels; gives and takes leases."""

    def __init__(self, world: World, ledger: BrokerLedger, closing: Closing) -> None:
        self._world = world
        self._ledger = ledger
        self._closing = closing

    def handlers(self) -> tuple[Read | Act, ...]:
        """The handlers, for the broker's table."""
        return (
            Read(tool="lomi_panel_list", read=self.list),
            Act(tool="lomi_panel_focus", act=self.focus, check=self.check_focus),
            Act(tool="lomi_panel_move", act=self.move),
            Act(
                tool="lomi_panel_control",
                act=self.control,
                check=self.check_control,
                plan=self.plan_control,
                plans=self.plans_control,
                at_once=self.control_at_once,
            ),
            Act(tool="lomi_panel_close", act=self.close, check=self.check_close),
        )

    async def list(self, call: Call[PanelListInput]) -> Reply:
        """The panels of one workspace, in tab order."""
        room, given = self._world.layout, call.input
        session = self._world.sessions.get(call.session_id)
        if session is None or call.workspace is None:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
        ids = layouts.panels_in(room.layout.workspaces[call.workspace.id])
        view = ("panels", call.workspace.id, str(room.revision))
        offset = session.cursors.offset(given.cursor, view)
        rows = [self._view(session, room.layout.panels[panel]) for panel in ids[offset : offset + given.limit]]
        page = fit(rows, given.limit)
        more = offset + len(page) < len(ids)
        return Reply(
            data=Panels(
                items=page,
                next_cursor=session.cursors.make(view, offset + len(page)) if more else None,
                domain_revision=str(room.revision),
            )
        )

    def _view(self, session: Session, record: PanelRecord) -> PanelView:
        room, resource = self._world.layout, resource_of(record)
        workspace, tab = room.layout.workspace_of(record.id), room.layout.tab_of(record.id)
        assert workspace is not None
        assert tab is not None
        generation = self._world.generations.current(resource) if resource else None
        kind = resource.kind if resource else None
        holder = self._world.leases.holder(generation) if generation else None
        owned = generation is not None and self._world.owners.get(generation) == session.id
        return PanelView(
            id=record.id,
            workspace_id=workspace.id,
            tab_id=tab.id,
            kind=record.kind,
            title=record.title,
            terminal_session_id=generation if kind == "terminal" and owned else None,
            browser_generation=generation if kind == "browser" and owned else None,
            android_device_id=self._device_id(session, resource),
            ownership=self._ownership(session, resource),
            runtime_state=self._state(resource),
            input_controlled=holder is not None and holder.session_id == session.id,
        )

    def _device_id(self, session: Session, resource: ResourceKey | None) -> str | None:
        grant = session.grant
        if resource is None or resource.kind != "android" or grant is None or "android.read" not in grant.scopes:
            return None
        return resource.name if grant.admits_device(resource.name) else None

    def _ownership(self, session: Session, resource: ResourceKey | None) -> Ownership:
        generation = self._world.generations.current(resource) if resource else None
        if generation is None:
            return "human_or_unassigned"
        holder = self._world.leases.holder(generation)
        owner = holder.session_id if holder else self._world.owners.get(generation)
        if owner is None or (resource is not None and self._world.leases.taken(resource)):
            return "human_or_unassigned"
        return "this_session" if owner == session.id else "another_session"

    def _state(self, resource: ResourceKey | None) -> RuntimeState:
        if resource is None or resource.kind not in self._world.runtimes:
            return "unobserved"
        return self._world.runtimes[resource.kind].state(resource)

    def check_focus(self, call: Call[PanelFocusInput]) -> None:
        """Focusing starts nothing: a panel whose runtime does not live is refused."""
        resource = call.panel.resource if call.panel else None
        if resource is None:
            return
        generation = self._world.generations.current(resource)
        if generation is None:
            raise Refusal(ErrorCode.SCOPE_DENIED, "panel_not_started", field="/panelId")
        if resource.kind != "android" and self._world.owners.get(generation) != call.session_id:
            raise Refusal(ErrorCode.SCOPE_DENIED, "panel_not_started", field="/panelId")

    async def focus(self, call: Call[PanelFocusInput], permit: Permit) -> Outcome:
        """Make it the active panel of its workspace."""
        room = self._world.layout
        async with permit.effect():
            await room.change_only(layouts.focus_panel(room.layout, call.input.panel_id))
        return Outcome(result=self._changed(call.input.workspace_id, call.input.panel_id, focused=True, closed=False))

    def _changed(self, workspace: str, panel: str, *, focused: bool, closed: bool) -> PanelChanged:
        return PanelChanged(workspace_id=workspace, panel_id=panel, focused=focused, closed=closed)

    async def move(self, call: Call[PanelMoveInput], permit: Permit) -> Outcome:
        """One movement; the runtimes never notice."""
        room, given = self._world.layout, call.input
        session = self._world.sessions.get(call.session_id)
        movement = given.movement
        if isinstance(movement, TransferTab) and (
            session is None or not session.sees_workspace(movement.target_workspace_id)
        ):
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/movement/targetWorkspaceId")
        changed = layouts.move(room.layout, given.workspace_id, movement)
        async with permit.effect():
            await room.change_only(changed)
        destination = None
        if isinstance(movement, TransferTab):
            target = room.layout.workspaces[movement.target_workspace_id]
            destination = Destination(
                workspace_id=target.id,
                tab_order=tuple(tab.id for tab in target.tabs),
                panels=self._identities(call, layouts.panels_in(target)),
            )
        here = layouts.panels_in(room.layout.workspaces[given.workspace_id])
        return Outcome(
            result=PanelMoved(
                workspace_id=given.workspace_id,
                movement=movement,
                panels=self._identities(call, here),
                destination=destination,
            )
        )

    def _identities(self, call: Call[PanelMoveInput], panels: tuple[str, ...]) -> tuple[PanelMoveIdentity, ...]:
        session = self._world.sessions.get(call.session_id)
        if session is None:
            return ()
        views = [self._view(session, self._world.layout.layout.panels[panel]) for panel in panels[:128]]
        return tuple(
            PanelMoveIdentity(
                panel_id=view.id,
                tab_id=view.tab_id,
                kind=view.kind,
                terminal_session_id=view.terminal_session_id,
                browser_generation=view.browser_generation,
                android_device_id=view.android_device_id,
            )
            for view in views
        )

    def check_control(self, call: Call[PanelControlInput]) -> None:
        """Only a live runtime of a kind that is leased this way can be claimed; only one's own lease be released."""
        given, resource = call.input, call.resource
        if resource is None or resource.kind == "browser" or resource.kind not in self._world.runtimes:
            raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "not_leased_here", field="/panelId")
        if (resource.kind == "android") != (given.device_id is not None):
            raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "not_leased_here", field="/panelId")
        generation = self._world.generations.current(resource)
        if generation is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/panelId")
        holder = self._world.leases.holder(generation)
        mine = holder is not None and holder.session_id == call.session_id
        if given.action == "release":
            if not mine:
                raise Refusal(ErrorCode.TARGET_NOT_FOUND, "not_held", field="/panelId")
        elif not mine:
            if holder is not None:
                raise Refusal(ErrorCode.TARGET_BUSY, "already_leased", details=Details(owner=holder.session_id))
            if self._world.leases.taken(resource):
                raise Refusal(ErrorCode.CONTROL_REVOKED, "taken_over")
            self._require_not_its_host(call, resource)
            self._world.runtimes[resource.kind].check_claim(call)

    def _require_not_its_host(self, call: Call[PanelControlInput], resource: ResourceKey) -> None:
        host = self._world.runtimes[resource.kind].process(resource)
        session = self._world.sessions.get(call.session_id)
        if host is not None and session is not None and host in ancestors_of(session.peer_pid, Path("/proc")):
            raise Refusal(ErrorCode.PROTECTED_ORIGIN_TERMINAL, "hosts_the_agent", field="/panelId")

    def plans_control(self, call: Call[PanelControlInput]) -> bool:
        """Only the claim of a terminal may be a person's to decide."""
        return call.input.action == "claim" and call.resource is not None and call.resource.kind == "terminal"

    async def plan_control(self, call: Call[PanelControlInput]) -> Plan | None:
        """A terminal that this session does not hold is claimed by a person's decision; a phone by the grant alone."""
        given, resource = call.input, call.resource
        if given.action == "release" or resource is None or resource.kind != "terminal":
            return None
        generation = self._world.generations.current(resource)
        holder = self._world.leases.holder(generation) if generation else None
        if holder is not None and holder.session_id == call.session_id:
            return None
        self._require_room_for_claim(call)
        title = call.panel.title if call.panel else ""
        return Plan(
            title="Let an agent type into a terminal",
            lines=(f"terminal {title!r} ({given.panel_id})", f"PTY {generation}"),
            binding=(("panel", given.panel_id), ("terminalSessionId", str(generation))),
        )

    def _require_room_for_claim(self, call: Call[PanelControlInput]) -> None:
        limit = self._world.limits.terminal_claims
        pending = [
            operation
            for operation in self._world.active.values()
            if operation.definition.name == call.tool and operation.state is OperationState.AWAITING_USER
        ]
        if len(pending) >= limit:
            raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, "limit_full", details=Details(limit=limit))

    async def control(self, call: Call[PanelControlInput], permit: Permit) -> Outcome:
        """Give or end the lease. The id itself is filled in when the receipt is read; it is never stored."""
        resource = call.resource
        generation = self._world.generations.current(resource) if resource else None
        if resource is None or generation is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/panelId")
        claimed = call.input.action == "claim"
        await self._world.counters.stock("lease")
        async with permit.effect():
            if claimed:
                self._ledger.grant_lease(generation, call.session_id)
                if resource.kind != "android":
                    self._world.owners[generation] = call.session_id
            else:
                self._ledger.release_lease(generation)
        return Outcome(result=self._controlled(call, resource, generation, claimed=claimed))

    def control_at_once(self, call: Call[PanelControlInput]) -> AtOnce | None:
        """A phone's lease is this broker's memory alone; a terminal's goes the long way, where a person may decide."""
        resource = call.resource
        generation = self._world.generations.current(resource) if resource else None
        if resource is None or generation is None or resource.kind != "android":
            return None
        claimed = call.input.action == "claim"
        if claimed and not self._world.counters.stocked("lease"):
            return None  # the long way makes new ids; the rest of the block is for leases that can't wait for them
        lease_id = LeaseId(self._world.counters.id("lease")) if claimed else None

        def apply() -> None:
            if not claimed:
                self._release_own(generation, call.session_id)
                return
            with suppress(Refusal):  # what ended while the receipt was stored: the lease has ended with it
                self._ledger.grant_lease(generation, call.session_id, lease_id)

        return AtOnce(result=self._controlled(call, resource, generation, claimed=claimed), apply=apply)

    def _release_own(self, generation: GenerationId, session_id: SessionId) -> None:
        holder = self._world.leases.holder(generation)
        if holder is not None and holder.session_id == session_id:
            self._ledger.release_lease(generation)

    def _controlled(
        self, call: Call[PanelControlInput], resource: ResourceKey, generation: GenerationId, *, claimed: bool
    ) -> AndroidControl | TerminalControl:
        given = call.input
        if resource.kind == "android":
            return AndroidControl(
                workspace_id=given.workspace_id,
                device_id=resource.name,
                generation=generation,
                controlled=claimed,
                lease_id=None,
            )
        return TerminalControl(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            terminal_session_id=generation,
            lease_id=None,
            controlled=claimed,
        )

    def check_close(self, call: Call[PanelCloseInput]) -> None:
        """Scopes and ownership of the runtime behind it."""
        self._closing.require_scopes(call, (call.input.panel_id,))

    async def close(self, call: Call[PanelCloseInput], permit: Permit) -> Outcome:
        """End what only this panel shows, then take the panel out."""
        given = call.input
        await self._world.counters.stock("panel", "tab")
        async with permit.effect():
            await self._closing.end_runtimes((given.panel_id,), permit)
            if given.panel_id in self._world.layout.layout.panels:
                await self._take_out(given.panel_id)
        return Outcome(result=self._changed(given.workspace_id, given.panel_id, focused=False, closed=True))

    async def _take_out(self, panel: str) -> None:
        """Take a panel out; a workspace that is left empty opens a scratch panel, as a person expects to find one."""
        room = self._world.layout
        workspace = room.layout.workspace_of(panel)
        left = layouts.close_panel(room.layout, panel)
        if workspace is not None and not left.workspaces[workspace.id].tabs:
            scratch = PanelRecord(room.counters.id("panel"), "file", "Scratch")
            left = layouts.open_panel(left, workspace.id, room.counters.id("tab"), scratch)
        await room.change(left)
