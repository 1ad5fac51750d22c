"""The hazards, to which tools each applies, and what each may answer: pure functions of the definition."""

from typing import Any, Literal, get_args

from lomi.contract.definition import GENERATION_FIELDS, Definition

Hazard = Literal[
    "unknown id",
    "foreign id",
    "scope missing",
    "stale generation",
    "stale revision",
    "lease lost",
    "duplicate",
    "conflict",
    "cancelled before",
    "cancelled during",
    "revoked",
    "crash before start",
    "crash after dispatch",
]
HAZARDS: tuple[Hazard, ...] = get_args(Hazard)

ID_FIELDS = {
    "workspace_id": "workspaceId",
    "project_id": "projectId",
    "panel_id": "panelId",
    "device_id": "deviceId",
    "operation_id": "operationId",
    "artifact_id": "artifactId",
}
"""Fields that name a thing which a session may or may not see."""


def id_fields(definition: Definition, given: dict[str, Any]) -> tuple[str, ...]:
    """The wire names of the ids that a call names."""
    return tuple(wire for name, wire in ID_FIELDS.items() if name in definition.fields and wire in given)


def generation_field(definition: Definition, given: dict[str, Any]) -> str | None:
    """The wire name of the generation that a call names."""
    named = {"terminal_session_id": "terminalSessionId", "browser_generation": "browserGeneration"}
    fields = [named.get(name, name) for name in GENERATION_FIELDS if name in definition.fields]
    return next((wire for wire in fields if wire in given), None)


def _queued(definition: Definition) -> bool:
    return definition.queue != "none" or definition.decision_s > 0


def not_applicable(definition: Definition, hazard: Hazard, given: dict[str, Any]) -> str | None:
    """Why a hazard can't befall a tool, None where it can. `given` is an example of its arguments."""
    no_receipt = None if definition.stored else "leaves no receipt"
    match hazard:
        case "unknown id" | "foreign id":
            return None if id_fields(definition, given) else "names nothing"
        case "scope missing":
            if definition.unpaired:
                return "answers before pairing"
            needed = {*definition.scopes, *definition.more_scopes_text} - {"workspace.read"}
            return None if needed and not _only_of_target(definition) else "needs only what every grant holds"
        case "stale generation":
            return None if generation_field(definition, given) else "names no generation"
        case "stale revision":
            return None if definition.checks_revision and "expectedRevision" in given else "compares no domain revision"
        case "lease lost":
            return None if "lease_id" in definition.fields else "needs no lease"
        case "duplicate" | "conflict":
            return None if definition.retry_identity != "none" else "no retry identity: asking again is harmless"
        case "cancelled before" | "cancelled during":
            return None if definition.retry_identity != "none" else "no operation: only the wait ends"
        case "revoked":
            return None
        case _:
            return no_receipt


def _only_of_target(definition: Definition) -> bool:
    """Its further scopes are those of what it reads about, not its own."""
    return set(definition.scopes) <= {"workspace.read"} and bool(definition.scopes)


def allowed(definition: Definition, hazard: Hazard) -> tuple[str, ...]:
    """The outcomes that a cell may show, as prefixes; the rule that the measurement is held to."""
    if definition.stored:
        return _of_stored(definition, hazard) or _of_any(definition)[hazard]
    return _of_unstored().get(hazard) or _of_any(definition)[hazard]


def _of_any(definition: Definition) -> dict[Hazard, tuple[str, ...]]:
    # Sight precedes replay: where the first request closed its target, other content names nothing any more.
    closed = ("TARGET_NOT_FOUND",) if definition.destructive and definition.queue == "layout" else ()
    return {
        "unknown id": ("TARGET_NOT_FOUND",),
        "foreign id": ("TARGET_NOT_FOUND",),
        "scope missing": ("SCOPE_DENIED (scope_missing)",),
        "stale generation": ("STALE_GENERATION (generation_replaced)", "STALE_GENERATION (generation_ended)"),
        "stale revision": ("receipt failed/none REVISION_CONFLICT (revision_stale)",),
        "lease lost": ("CONTROL_REVOKED (taken_over)", "CONTROL_REVOKED (lease_lost)"),
        "conflict": ("IDEMPOTENCY_CONFLICT (key_reused)", *closed),
    }


def _of_unstored() -> dict[Hazard, tuple[str, ...]]:
    return {
        "duplicate": ("one effect, the same answer",),
        "cancelled before": ("no effect",),
        "cancelled during": ("the effect stands",),
        "revoked": ("CONTROL_REVOKED (session_ended)",),
    }


def _of_stored(definition: Definition, hazard: Hazard) -> tuple[str, ...]:
    ended = ("cancelled/partial", "cancelled/none", "succeeded/complete", "failed/none", "failed/partial")
    queued = "; queued: receipt cancelled/none" if _queued(definition) and _keyed(definition) else ""
    outcomes: dict[Hazard, tuple[str, ...]] = {
        "duplicate": ("one effect, one receipt",),
        "cancelled before": ("receipt cancelled/none",),
        "cancelled during": (*(f"receipt {state}" for state in ended), "receipt outcome_unknown/unknown"),
        "revoked": (
            "CONTROL_REVOKED (session_ended); receipt cancelled/none",
            "CONTROL_REVOKED (session_ended); receipt failed/none CONTROL_REVOKED",
        ),
        "crash before start": ("no receipt, no effect" + queued,),
        "crash after dispatch": ("receipt outcome_unknown/unknown OUTCOME_UNKNOWN; never repeated",),
    }
    return outcomes.get(hazard, ())


def _keyed(definition: Definition) -> bool:
    return definition.retry_identity == "key"
