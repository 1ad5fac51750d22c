"""Who holds what since when: the broker's state as the owner reads it, from memory, without a wait."""

from collections.abc import Mapping

from lomi.broker.operations import Operation
from lomi.broker.owner.answers import Holdings, LeaseRow, OperationRow, ResourceRow, SessionRow
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.core.layout import PanelRecord
from lomi.core.port import Lease, ResourceKey


def holdings_of(world: World, devices: Mapping[str, str], *, yolo: bool) -> Holdings:
    """Everything that is held now. `devices` are the names of phones by device id."""
    return Holdings(
        instance_id=world.instance_id,
        yolo=yolo,
        sessions=tuple(session_row(world, session) for session in world.sessions),
        leases=tuple(_lease_row(world, lease) for lease in world.leases),
        resources=tuple(_resource_row(world, key, title) for key, title in _resources(world, devices).items()),
        operations=tuple(_operation_row(world, operation) for operation in world.active.values()),
    )


def session_row(world: World, session: Session) -> SessionRow:
    """One connection, its grant while it has authority, and what it holds."""
    grant = session.grant if world.sessions.has_authority(session) else None
    return SessionRow(
        id=session.id,
        label=session.label,
        pid=session.peer_pid,
        phase=world.sessions.phase(session),
        since_s=session.since,
        scopes=tuple(sorted(grant.scopes)) if grant else (),
        leases=tuple(f"{x.id} on {x.generation}" for x in world.leases if x.session_id == session.id),
        operations=sum(operation.session_id == session.id for operation in world.active.values()),
        age_s=max(0.0, world.clock.time() - session.since),
        granted_by=grant.decider if grant else "",
        workspaces=tuple(sorted(grant.workspaces)) if grant else (),
        devices=tuple(sorted(grant.devices)) if grant else (),
        packages=tuple(sorted(grant.packages)) if grant else (),
        origins=tuple(sorted(grant.origins)) if grant else (),
    )


def _label(world: World, session_id: str) -> str:
    session = world.sessions.get(session_id)
    return session.label if session is not None else ""


def _lease_row(world: World, lease: Lease) -> LeaseRow:
    resource = world.generations.resource(lease.generation)
    now = world.clock.monotonic()
    return LeaseRow(
        id=lease.id,
        kind=resource.kind if resource else "terminal",
        resource=resource.name if resource else "",
        generation=lease.generation,
        session=lease.session_id,
        label=_label(world, lease.session_id),
        age_s=max(0.0, now - lease.since),
        idle_s=max(0.0, now - (world.leases.last_active(lease.generation) or lease.since)),
    )


def _resources(world: World, devices: Mapping[str, str]) -> dict[ResourceKey, str]:
    """Every phone, shown or not, and every page and terminal that a panel shows, with the title it is known by."""
    found = {ResourceKey("android", device_id): name for device_id, name in devices.items()}
    for panel in world.layout.layout.panels.values():
        if panel.resource_kind is not None and panel.resource_name is not None:
            found.setdefault(ResourceKey(panel.resource_kind, panel.resource_name), panel.title)
    return found


def _panels(world: World, key: ResourceKey) -> tuple[PanelRecord, ...]:
    return world.layout.layout.views_of(key.kind, key.name)


def _resource_row(world: World, key: ResourceKey, title: str) -> ResourceRow:
    generation = world.generations.current(key)
    lease = world.leases.holder(generation) if generation is not None else None
    runtimes = world.runtimes.get(key.kind)
    return ResourceRow(
        kind=key.kind,
        name=key.name,
        title=title,
        panels=tuple(panel.id for panel in _panels(world, key)),
        generation=generation,
        state=runtimes.state(key) if runtimes is not None else "unobserved",
        holder=lease.session_id if lease is not None else None,
        taken=world.leases.taken(key),
    )


def _operation_row(world: World, operation: Operation) -> OperationRow:
    target = operation.generation or (operation.resource.name if operation.resource else operation.workspace_id) or ""
    return OperationRow(
        id=operation.id,
        tool=operation.definition.name,
        session=operation.session_id,
        label=_label(world, operation.session_id),
        target=target,
        state=operation.state,
        age_s=max(0.0, world.clock.time() - operation.created),
    )
