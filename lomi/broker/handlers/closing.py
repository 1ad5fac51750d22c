"""What closing panels means for the runtimes behind them: the last view ends its runtime, an earlier one does not."""

from collections.abc import Sequence
from typing import Any

from lomi.broker.layout_room import resource_of
from lomi.broker.world import World
from lomi.contract.codes import Details, ErrorCode
from lomi.core.ids import GenerationId
from lomi.core.port import Call, Permit, ResourceKey
from lomi.core.refusal import EffectFailed, Refusal


class Closing:
    """Shared by panel, workspace and project close."""

    def __init__(self, world: World) -> None:
        self._world = world

    def _last_views(self, panels: Sequence[str]) -> tuple[ResourceKey, ...]:
        """The resources that nothing shows any more once `panels` are closed."""
        records = self._world.layout.layout.panels
        gone = {resource_of(records[panel]) for panel in panels if panel in records}
        left = {resource_of(record) for panel, record in records.items() if panel not in panels}
        return tuple(resource for resource in gone - left if resource is not None)

    def _live(self, resource: ResourceKey) -> GenerationId | None:
        return self._world.generations.current(resource)

    def require_scopes(self, call: Call[Any], panels: Sequence[str]) -> None:
        """The scopes and ownership that closing these panels needs besides the tool's own.

        Raises:
            Refusal: SCOPE_DENIED, also for the last view of a running phone that is out of the grant;
                PROTECTED_ORIGIN_TERMINAL for a live terminal that is not this session's; TARGET_BUSY for a live page of
                another session that is still there.
        """
        records = self._world.layout.layout.panels
        last = self._last_views(panels)
        for panel in panels:
            resource = resource_of(records[panel]) if panel in records else None
            generation = self._live(resource) if resource else None
            if resource is None or generation is None:
                continue
            owner = self._world.owners.get(generation)
            match resource.kind:
                case "terminal":
                    self._require(call, "terminal.execute")
                    if owner != call.session_id:
                        raise Refusal(ErrorCode.PROTECTED_ORIGIN_TERMINAL, field="/panelId")
                case "browser":
                    # A page whose session is gone is nobody's: it could be neither claimed nor closed.
                    if owner != call.session_id and owner is not None and self._world.sessions.get(owner) is not None:
                        held = Details(owner=owner)
                        raise Refusal(ErrorCode.TARGET_BUSY, "already_leased", field="/panelId", details=held)
                case "android":
                    self._require(call, "android.read")
                    if resource in last:
                        # Closing its last view stops the phone, so it needs what stopping it needs.
                        self._require(call, "android.control")
                        if not call.grant.admits_device(resource.name):
                            raise Refusal(ErrorCode.SCOPE_DENIED, field="/panelId")

    def _require(self, call: Call[Any], scope: str) -> None:
        if scope not in call.grant.scopes:
            raise Refusal(ErrorCode.SCOPE_DENIED, "scope_missing", details=Details(need_scope=scope))

    def terminal_sessions(self, panels: Sequence[str]) -> tuple[str, ...]:
        """The live terminals among these panels."""
        records = self._world.layout.layout.panels
        resources = [resource_of(records[panel]) for panel in panels if panel in records]
        found = [self._live(resource) for resource in resources if resource and resource.kind == "terminal"]
        return tuple(generation for generation in found if generation is not None)

    async def end_runtimes(self, panels: Sequence[str], permit: Permit) -> None:
        """End every runtime whose last view is among these panels; returns when each is observed gone.

        Raises:
            EffectFailed: one could not be ended; it is partial once another one is gone.
        """
        gone = False
        for resource in self._last_views(panels):
            if self._live(resource) is not None and resource.kind in self._world.runtimes:
                try:
                    await self._world.runtimes[resource.kind].close(resource, permit)
                except EffectFailed as failed:
                    raise EffectFailed(failed.refusal, partial=failed.partial or gone) from failed
                gone = True
