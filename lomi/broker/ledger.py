"""The port's ledger: what adapters tell the broker about runtimes, leases and panels."""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from lomi.broker.layout_room import resource_of
from lomi.broker.storing import storing
from lomi.broker.world import World
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import PanelKind
from lomi.core import layout as layouts
from lomi.core.ids import GenerationId, LeaseId, PanelId, SessionId, WorkspaceId, android_panel_id, generation_id
from lomi.core.layout import PanelRecord
from lomi.core.log_fields import fields
from lomi.core.port import Artifacts, Call, Lease, Opening, Panel, Remembered, ResourceKey
from lomi.core.refusal import EffectFailed, Refusal

_log = logging.getLogger("lomi.broker.ledger")


class BrokerLedger:
    """Implements `lomi.core.port.Ledger` over the broker's world."""

    def __init__(self, world: World, artifacts: Artifacts) -> None:
        self._world = world
        self._artifacts = artifacts

    @property
    def artifacts(self) -> Artifacts:
        """The artifact store."""
        return self._artifacts

    async def begin_generation(self, resource: ResourceKey) -> GenerationId:
        """A new life of the resource; any earlier one ends."""
        await self._world.counters.stock(resource.kind, "lease")
        generation = generation_id(resource.kind, self._world.counters.take(resource.kind))
        earlier = self._world.generations.current(resource)
        if earlier is not None:
            self.end_generation(earlier)
        self._world.generations.begin(resource, generation)
        _log.info("generation began", extra=fields(generation=generation, resource=resource.name))
        return generation

    def end_generation(self, generation: GenerationId) -> None:
        """That life is over."""
        resource = self._world.generations.end(generation)
        self._world.leases.end(generation)
        if resource is not None:
            _log.info("generation ended", extra=fields(generation=generation, resource=resource.name))
        self._world.owners.pop(generation, None)

    def current(self, resource: ResourceKey) -> GenerationId | None:
        """The present life of a resource."""
        return self._world.generations.current(resource)

    def resource(self, generation: GenerationId) -> ResourceKey | None:
        """What a present generation is a life of."""
        return self._world.generations.resource(generation)

    async def remember(self, generation: GenerationId, identity: bytes) -> None:
        """Store a runtime's identity before it is used."""
        resource = self._world.generations.resource(generation)
        assert resource is not None, "only a current generation has a runtime"
        await storing(self._world.store.remember(resource.kind, resource.name, generation, identity))

    async def forget(self, generation: GenerationId) -> None:
        """The runtime is observed gone. What can't be forgotten now, the next broker finds dead and forgets."""
        try:
            await storing(self._world.store.forget(generation))
        except Refusal as failed:
            _log.warning(
                "a runtime that is gone stays remembered", extra=fields(generation=generation, reason=failed.reason)
            )

    async def remembered(self, kind: ResourceKind) -> Sequence[Remembered]:
        """Identities left by earlier brokers of this home."""
        return await self._world.store.remembered(kind)

    def grant_lease(self, generation: GenerationId, session_id: SessionId, lease_id: LeaseId | None = None) -> LeaseId:
        """Give input authority to a session that still has authority itself; `lease_id` was taken before."""
        resource = self._world.generations.resource(generation)
        session = self._world.sessions.get(session_id)
        if resource is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended")
        if session is None or not self._world.sessions.has_authority(session):
            raise Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
        lease = self._world.leases.grant(generation, session_id, resource, self._world.clock.monotonic(), lease_id)
        _log.info("lease granted", extra=fields(lease=lease.id, generation=generation, session=session_id))
        if resource.kind != "android":
            self._world.owners.setdefault(generation, session_id)
        return lease.id

    def release_lease(self, generation: GenerationId) -> None:
        """End the lease, if there is one."""
        self._world.leases.end(generation)

    def lease(self, generation: GenerationId) -> Lease | None:
        """Who holds input authority."""
        return self._world.leases.holder(generation)

    def take_over(self, resource: ResourceKey) -> None:
        """A person acts: the lease ends at once."""
        self._world.leases.take_over(resource, self._world.generations.current(resource))

    def admit_device(self, session_id: SessionId, device_id: str) -> None:
        """Bring a phone that a session made into its sight."""
        session = self._world.sessions.get(session_id)
        if session is not None and session.grant is not None:
            seen = session.grant.devices | {device_id}
            session.grant = msgspec.structs.replace(session.grant, devices=seen)

    async def open_panel(
        self, workspace_id: WorkspaceId, kind: PanelKind, title: str, resource_name: str | None
    ) -> Panel:
        """Add a panel at the end of the workspace."""
        room = self._world.layout
        await room.counters.stock("panel", "tab")
        room.require_staying(workspace_id)
        number = room.counters.take("panel")
        panel_id = android_panel_id(number) if kind == "android" else PanelId(f"p{number}")
        runtime: ResourceKind | None = kind if kind in ("terminal", "browser", "android") else None
        name = (resource_name or panel_id) if runtime is not None else None
        record = PanelRecord(panel_id, kind, title, runtime, name)
        await room.change(layouts.open_panel(room.layout, workspace_id, room.counters.id("tab"), record))
        panel = room.panel(panel_id)
        if panel is None:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/workspaceId")
        return panel

    async def open_leased(
        self, call: Call[Any], kind: PanelKind, title: str, runtime: Opening
    ) -> tuple[Panel, GenerationId]:
        """Open a panel, start its runtime and lease it to the caller: all of it, or nothing that stays."""
        assert call.workspace is not None
        try:
            panel = await self.open_panel(call.workspace.id, kind, title, None)
        except Refusal as refused:
            raise EffectFailed(refused, partial=False) from refused
        assert panel.resource is not None, "a panel of a runtime names its resource"
        try:
            generation = await runtime.start(panel.resource)
        except BaseException as failed:
            await self.close_panel(panel.id)
            if isinstance(failed, Refusal):
                raise EffectFailed(failed, partial=False) from failed
            raise
        try:
            self._lease_shown(panel.id, generation, call.session_id)
        except Refusal as ended:
            await runtime.end(panel.resource)
            await self.close_panel(panel.id)
            raise EffectFailed(ended, partial=runtime.leaves_traces) from ended
        return panel, generation

    def _lease_shown(self, panel_id: PanelId, generation: GenerationId, session_id: SessionId) -> None:
        if panel_id not in self._world.layout.layout.panels:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/workspaceId")
        self.grant_lease(generation, session_id)

    async def close_panel(self, panel_id: PanelId) -> None:
        """Take a panel out of the layout."""
        room = self._world.layout
        if panel_id in room.layout.panels:
            await room.change(layouts.close_panel(room.layout, panel_id))

    def panels_of(self, resource: ResourceKey) -> Sequence[Panel]:
        """Every view of a resource."""
        records = self._world.layout.layout.panels.values()
        views = [self._world.layout.panel(r.id) for r in records if resource_of(r) == resource]
        return tuple(view for view in views if view is not None)
