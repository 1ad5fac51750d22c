"""Admission: ONE function over the definition, without an await. Steps 2 to 6 of the way of one call.

What it refuses is an envelope error and leaves nothing stored. The same checks of memory are made again before
dispatch.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from lomi.broker.operations import Operation
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.contract.codes import TERMINAL_STATES, Details, ErrorCode
from lomi.contract.definition import GENERATION_FIELDS, Definition
from lomi.core.fingerprint import fingerprint
from lomi.core.grant import Grant
from lomi.core.ids import GenerationId
from lomi.core.port import Call, Panel, Project, ResourceKey, Workspace
from lomi.core.refusal import Refusal
from lomi.core.sequences import InputLedger

STORED_INPUTS = 128
STORED_ACKS = 64
KEPT_LEDGERS = 16
"""Of how many ended leases a session can still repeat an input and be told what became of it."""
OWNED_FAMILIES = ("terminal", "browser")
"""Families whose runtimes belong to the session that made them; to any other they do not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the arguments name, as far as this session may see it."""

    workspace: Workspace | None
    project: Project | None
    panel: Panel | None
    resource: ResourceKey | None
    generation_given: str | None
    generation_field: str | None


NOTHING_SEEN = Sight(
    workspace=None, project=None, panel=None, resource=None, generation_given=None, generation_field=None
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A call that may go on. `replayed` is the operation that already answers it."""

    call: Call[Any]
    fingerprint: bytes
    replayed: Operation | None


def _not_found(field: str) -> Refusal:
    return Refusal(ErrorCode.TARGET_NOT_FOUND, field=field)


def _see_workspace(world: World, session: Session, given: msgspec.Struct) -> Workspace | None:
    workspace_id = getattr(given, "workspace_id", None)
    if workspace_id is None:
        return None
    workspace = world.layout.workspace(workspace_id)
    if workspace is None or not session.sees_workspace(workspace_id):
        raise _not_found("/workspaceId")
    return workspace


def _see_project(world: World, session: Session, given: msgspec.Struct, workspace: Workspace | None) -> Project | None:
    project_id = getattr(given, "project_id", None)
    if project_id is not None:
        owned = world.layout.layout.workspaces_of(project_id)
        if not owned or not all(session.sees_workspace(record.id) for record in owned):
            raise _not_found("/projectId")
        if workspace is not None and workspace.project_id != project_id:
            raise _not_found("/projectId")
        return world.layout.project(project_id)
    return world.layout.project(workspace.project_id) if workspace is not None else None


def _generation_given(given: msgspec.Struct) -> tuple[str | None, str | None]:
    for name, wire in zip(given.__struct_fields__, given.__struct_encode_fields__, strict=True):
        value = getattr(given, name) if name in GENERATION_FIELDS else None
        if value is not None:
            return value, f"/{wire}"
    return None, None


def see(world: World, session: Session, grant: Grant, definition: Definition, given: msgspec.Struct) -> Sight:
    """Step 3: resolve every id that the arguments name, inside the grant.

    Raises:
        Refusal: TARGET_NOT_FOUND, the same for a thing out of the grant as for one that does not exist.
    """
    workspace = _see_workspace(world, session, given)
    project = _see_project(world, session, given, workspace)
    resource: ResourceKey | None = None
    device_id = getattr(given, "device_id", None)
    if device_id is not None:
        if not grant.admits_device(device_id):
            raise _not_found("/deviceId")
        resource = ResourceKey("android", device_id)
    panel: Panel | None = None
    panel_id = getattr(given, "panel_id", None)
    if panel_id is not None:
        panel = world.layout.panel(panel_id)
        if panel is None or workspace is None or panel.workspace_id != workspace.id:
            raise _not_found("/panelId")
        if resource is not None and panel.resource != resource:
            raise _not_found("/panelId")
        resource = panel.resource
        if definition.family in OWNED_FAMILIES:
            _see_owned(world, session, definition, panel)
    generation, field = _generation_given(given)
    return Sight(
        workspace=workspace,
        project=project,
        panel=panel,
        resource=resource,
        generation_given=generation,
        generation_field=field,
    )


def _see_owned(world: World, session: Session, definition: Definition, panel: Panel) -> None:
    if panel.resource is None or panel.resource.kind != definition.family:
        raise _not_found("/panelId")
    current = world.current_generation(panel.resource)
    if current is not None and world.owners.get(current) != session.id:
        raise _not_found("/panelId")


def require_scope(grant: Grant, definition: Definition, given: Any) -> None:
    """Step 4: scopes, and the origins and packages that scopes are limited to.

    Raises:
        Refusal: SCOPE_DENIED.
    """
    lacking = definition.lacking_scopes(given, grant.scopes)
    if lacking:
        raise Refusal(ErrorCode.SCOPE_DENIED, "scope_missing", details=Details(need_scope=lacking[0]))
    url = getattr(given, "url", None)
    if url is not None and definition.family == "browser" and not grant.admits_origin(url):
        raise Refusal(ErrorCode.SCOPE_DENIED, "origin_not_granted", field="/url")
    package = getattr(given, "package_name", None)
    if package is not None and not grant.admits_package(package):
        raise Refusal(ErrorCode.SCOPE_DENIED, "package_not_granted", field="/packageName")


def _replay_by_key(
    world: World, session: Session, given: Any, project: Project | None, tool: str, mark: bytes
) -> Operation | None:
    key = (given.retry_epoch, project.id if project else "", tool, given.request_key)
    known = session.replay.get(key)
    if known is not None:
        if known.fingerprint != mark:
            raise Refusal(ErrorCode.IDEMPOTENCY_CONFLICT, "key_reused", field="/requestKey")
        return known
    require_epoch(world, session, given.retry_epoch)
    return None


def _replay_of_gone(session: Session, definition: Definition, given: Any, mark: bytes) -> Operation | None:
    """An exact retry whose target the first request itself closed: its receipt is still the answer."""
    if definition.retry_identity != "key":
        return None
    return next(
        (
            operation
            for (epoch, _, tool, key), operation in session.replay.items()
            if (epoch, tool, key) == (given.retry_epoch, definition.name, given.request_key)
            and operation.fingerprint == mark
        ),
        None,
    )


def require_epoch(world: World, session: Session, retry_epoch: str) -> None:
    """Pass only this session's unexpired epoch.

    Raises:
        Refusal: RETRY_WINDOW_EXPIRED.
    """
    if session.epoch is None or session.epoch.id != retry_epoch:
        raise Refusal(ErrorCode.RETRY_WINDOW_EXPIRED, "epoch_unknown", field="/retryEpoch")
    if world.clock.time() >= session.epoch.expires:
        raise Refusal(ErrorCode.RETRY_WINDOW_EXPIRED, "epoch_expired", field="/retryEpoch")


def input_ledger(session: Session, definition: Definition, given: Any) -> InputLedger[Operation] | None:
    """The ledger of the lease that an ordered input names, if the lease has one yet."""
    ledgers = session.inputs if definition.retry_identity == "sequence_stored" else session.acks
    return ledgers.get(given.lease_id)


def new_input_ledger(world: World, session: Session, definition: Definition, given: Any) -> InputLedger[Operation]:
    """The ledger of a lease that is known to be held, made at its first input."""
    known = input_ledger(session, definition, given)
    if known is None:
        if definition.retry_identity == "sequence_stored":
            known = session.inputs[given.lease_id] = InputLedger(STORED_INPUTS, ErrorCode.RETRY_WINDOW_EXPIRED)
        else:
            known = session.acks[given.lease_id] = InputLedger(STORED_ACKS, ErrorCode.CURSOR_EXPIRED)
        _forget_old_ledgers(world, session)
    return known


def _forget_old_ledgers(world: World, session: Session) -> None:
    """A lease that is over can still be asked about its inputs; only the last ones are remembered."""
    held = {lease.id for lease in world.leases}
    for ledgers in (session.inputs, session.acks):
        over = [lease_id for lease_id in ledgers if lease_id not in held]
        for lease_id in over[:-KEPT_LEDGERS]:
            del ledgers[lease_id]


def _replay_by_sequence(
    world: World, session: Session, definition: Definition, given: Any, mark: bytes
) -> Operation | None:
    ledger = input_ledger(session, definition, given)
    if ledger is not None:
        known = ledger.replay(int(given.input_sequence), mark)
        if known is not None:
            return known
        newest = ledger.newest()
        if newest is not None and newest.state not in TERMINAL_STATES:
            raise Refusal(ErrorCode.TARGET_BUSY, "sequence_pending", field="/inputSequence")
    if definition.retry_identity == "sequence_stored":
        require_epoch(world, session, given.retry_epoch)
    return None


def _require_first_of_lease(session: Session, definition: Definition, given: Any) -> None:
    """A lease that had no input yet begins with 1."""
    ordered = definition.retry_identity in ("sequence_stored", "sequence_in_memory")
    if ordered and input_ledger(session, definition, given) is None and int(given.input_sequence) != 1:
        none_yet = Details(current="0")
        raise Refusal(ErrorCode.REVISION_CONFLICT, "sequence_gap", field="/inputSequence", details=none_yet)


def check_memory(world: World, session: Session, definition: Definition, call: Call[Any], sight: Sight) -> None:
    """Step 6: generation, lease, and what lives in the adapter's memory.

    Raises:
        Refusal: STALE_GENERATION, CONTROL_REVOKED, or what the handler's own check says.
    """
    given = call.input
    if sight.resource is not None and sight.generation_given is not None:
        current = world.generations.check(sight.resource, sight.generation_given, sight.generation_field or "")
        lease_id = getattr(given, "lease_id", None)
        if lease_id is not None:
            world.leases.check(current, lease_id, session.id, sight.resource)
            world.leases.touch(current, world.clock.monotonic())
    handler = world.handlers[definition.name]
    if handler.check is not None:
        handler.check(call)


def admit(world: World, session: Session, definition: Definition, given: Any) -> tuple[Admitted, Sight]:
    """Steps 2 to 6 for one parsed call.

    Raises:
        Refusal: what the caller gets as an envelope error; nothing is stored.
    """
    grant = world.sessions.require_authority(session)
    if world.closing:
        raise Refusal(ErrorCode.APP_CLOSING, "closing")
    if definition.scope_before_sight:
        require_scope(grant, definition, given)
    mark = fingerprint(definition, given, world.fingerprint_key) if definition.retry_identity != "none" else b""
    try:
        sight = see(world, session, grant, definition, given)
    except Refusal:
        require_scope(grant, definition, given)
        gone = _replay_of_gone(session, definition, given, mark)
        if gone is None:
            raise
        return Admitted(call=gone.call, fingerprint=mark, replayed=gone), NOTHING_SEEN
    require_scope(grant, definition, given)
    if definition.name not in world.handlers:
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "adapter_absent")
    call: Call[Any] = Call(
        tool=definition.name,
        input=given,
        session_id=session.id,
        grant=grant,
        workspace=sight.workspace,
        project=sight.project,
        panel=sight.panel,
        resource=sight.resource,
        generation=GenerationId(sight.generation_given) if sight.generation_given is not None else None,
    )
    replayed: Operation | None = None
    if definition.retry_identity == "key":
        replayed = _replay_by_key(world, session, given, sight.project, definition.name, mark)
    elif definition.retry_identity != "none":
        replayed = _replay_by_sequence(world, session, definition, given, mark)
    if replayed is None:
        check_memory(world, session, definition, call, sight)
        _require_first_of_lease(session, definition, given)
    return Admitted(call=call, fingerprint=mark, replayed=replayed), sight
