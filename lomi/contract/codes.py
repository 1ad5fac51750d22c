"""The closed words of the wire: error codes, operation states, effect states, and reasons with their hints.

Source: Control API 1.0, sections 4 and 8.
"""

from enum import StrEnum

import msgspec

API_VERSION = "1.0"


class ErrorCode(StrEnum):
    """The 25 codes an envelope error or a failed receipt may carry."""

    APP_UNAVAILABLE = "APP_UNAVAILABLE"
    PAIRING_REQUIRED = "PAIRING_REQUIRED"
    SCOPE_DENIED = "SCOPE_DENIED"
    UI_NOT_READY = "UI_NOT_READY"
    APP_CLOSING = "APP_CLOSING"
    TARGET_NOT_FOUND = "TARGET_NOT_FOUND"
    STALE_GENERATION = "STALE_GENERATION"
    REVISION_CONFLICT = "REVISION_CONFLICT"
    STALE_SNAPSHOT = "STALE_SNAPSHOT"
    TARGET_BUSY = "TARGET_BUSY"
    CONTROL_REVOKED = "CONTROL_REVOKED"
    PROMPT_STATE_UNKNOWN = "PROMPT_STATE_UNKNOWN"
    PANEL_NOT_RENDERABLE = "PANEL_NOT_RENDERABLE"
    PROTECTED_ORIGIN_TERMINAL = "PROTECTED_ORIGIN_TERMINAL"
    UNSUPPORTED_CAPABILITY = "UNSUPPORTED_CAPABILITY"
    HOST_UNQUALIFIED = "HOST_UNQUALIFIED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CURSOR_EXPIRED = "CURSOR_EXPIRED"
    ARTIFACT_TOO_LARGE = "ARTIFACT_TOO_LARGE"
    ARTIFACT_INVALID = "ARTIFACT_INVALID"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    RETRY_WINDOW_EXPIRED = "RETRY_WINDOW_EXPIRED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"


MESSAGES: dict[ErrorCode, str] = {
    ErrorCode.APP_UNAVAILABLE: "The broker or the adapter for this tool can't be reached.",
    ErrorCode.PAIRING_REQUIRED: "This session is not approved yet.",
    ErrorCode.SCOPE_DENIED: "The grant of this session does not allow that.",
    ErrorCode.UI_NOT_READY: "The workbench is not ready for that.",
    ErrorCode.APP_CLOSING: "The broker is shutting down.",
    ErrorCode.TARGET_NOT_FOUND: "No such target is visible to this session.",
    ErrorCode.STALE_GENERATION: "The runtime, document or device was replaced.",
    ErrorCode.REVISION_CONFLICT: "The revision is no longer current.",
    ErrorCode.STALE_SNAPSHOT: "The snapshot or the ref is no longer valid.",
    ErrorCode.TARGET_BUSY: "The target is busy or can't take this input now.",
    ErrorCode.CONTROL_REVOKED: "This session no longer holds control.",
    ErrorCode.PROMPT_STATE_UNKNOWN: "The terminal's prompt is not known to be idle.",
    ErrorCode.PANEL_NOT_RENDERABLE: "The panel can't be drawn in its present state.",
    ErrorCode.PROTECTED_ORIGIN_TERMINAL: "That terminal hosts the calling agent or is not agent-owned.",
    ErrorCode.UNSUPPORTED_CAPABILITY: "That is known but not offered for this input.",
    ErrorCode.HOST_UNQUALIFIED: "This host or shell profile is not qualified.",
    ErrorCode.DEADLINE_EXCEEDED: "The bounded time ran out before any effect.",
    ErrorCode.CURSOR_EXPIRED: "The cursor is too old, foreign, or its view changed.",
    ErrorCode.ARTIFACT_TOO_LARGE: "The artifact is over its byte or pixel budget.",
    ErrorCode.ARTIFACT_INVALID: "The artifact's hash, structure or class is wrong.",
    ErrorCode.OUTCOME_UNKNOWN: "The effect may or may not exist; look at the resource.",
    ErrorCode.IDEMPOTENCY_CONFLICT: "The same retry identity was used with other content.",
    ErrorCode.RETRY_WINDOW_EXPIRED: "The retry epoch is unknown or expired.",
    ErrorCode.RESOURCE_EXHAUSTED: "A limit is full, or an argument is malformed or out of range.",
    ErrorCode.STORAGE_UNAVAILABLE: "The receipt store can't persist; nothing was done.",
}


class OperationState(StrEnum):
    """The states of an operation; the last four are terminal and never change."""

    QUEUED = "queued"
    AWAITING_USER = "awaiting_user"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    OUTCOME_UNKNOWN = "outcome_unknown"


TERMINAL_STATES = frozenset(
    {OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED, OperationState.OUTCOME_UNKNOWN}
)


class EffectState(StrEnum):
    """What is known of an operation's effect."""

    NONE = "none"
    PARTIAL = "partial"
    COMPLETE = "complete"
    UNKNOWN = "unknown"


class Reason(msgspec.Struct, frozen=True):
    """One documented case of a code: its wire name (snake_case), the code it belongs to, and the fixed hint."""

    name: str
    code: ErrorCode
    hint: str


class Details(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Closed facts that may ride on an error: numbers, ids the caller may see, an evidence artifact."""

    limit: int | None = None
    have: int | None = None
    need: int | None = None
    owner: str | None = None
    need_scope: str | None = None
    state: str | None = None
    stage: str | None = None
    current: str | None = None
    covered_by: str | None = None
    exit_code: int | None = None
    operation_id: str | None = None
    evidence_artifact_id: str | None = None
