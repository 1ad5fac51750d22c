"""Reasons that belong to no single family. Each family adds its own table beside its tools.

A reason never widens a code: it says which of the documented cases happened and what to do next.
"""

from lomi.contract.codes import ErrorCode, Reason

_C = ErrorCode

COMMON_REASONS: tuple[Reason, ...] = (
    Reason("out_of_range", _C.RESOURCE_EXHAUSTED, "Use a value inside the bounds of the tool's input schema."),
    Reason("too_long", _C.RESOURCE_EXHAUSTED, "Shorten the value to the stated limit."),
    Reason("malformed", _C.RESOURCE_EXHAUSTED, "Send the value in the form the tool's documentation states."),
    Reason("field_needed", _C.RESOURCE_EXHAUSTED, "Give this field too: it is needed together with the others given."),
    Reason("variant_unclear", _C.RESOURCE_EXHAUSTED, "Give exactly one of the documented forms of this input."),
    Reason("arguments_too_large", _C.RESOURCE_EXHAUSTED, "Keep the tool arguments under 64 KiB."),
    Reason("limit_full", _C.RESOURCE_EXHAUSTED, "Wait for running work to end, or close what is no longer needed."),
    Reason("store_full", _C.RESOURCE_EXHAUSTED, "Ask the owner to run `lomi store reconcile`."),
    Reason(
        "scope_missing", _C.SCOPE_DENIED, "Ask the owner for a grant with the scope named in the tool's documentation."
    ),
    Reason("origin_not_granted", _C.SCOPE_DENIED, "Use an origin of the grant, or ask the owner to add this one."),
    Reason("package_not_granted", _C.SCOPE_DENIED, "Use a package of the grant, or ask the owner to add this one."),
    Reason("secret_path", _C.SCOPE_DENIED, "Paths that hold secrets are never offered; use another file."),
    Reason("path_refused", _C.SCOPE_DENIED, "Use a plain relative path inside the project, without links."),
    Reason(
        "not_decided_here",
        _C.SCOPE_DENIED,
        "The policy does not take this decision; ask the owner to add it to `decide`.",
    ),
    Reason("declined", _C.SCOPE_DENIED, "The person declined; ask them before trying again."),
    Reason("decision_expired", _C.SCOPE_DENIED, "Nobody decided in time; ask the owner, then send a new request."),
    Reason("epoch_unknown", _C.RETRY_WINDOW_EXPIRED, "Call lomi_connect and use the retryEpoch it returns."),
    Reason("epoch_expired", _C.RETRY_WINDOW_EXPIRED, "Call lomi_connect for a new retryEpoch."),
    Reason("key_reused", _C.IDEMPOTENCY_CONFLICT, "Use a new requestKey for a new request; repeat a retry unchanged."),
    Reason("sequence_gap", _C.REVISION_CONFLICT, "Send the next inputSequence, exactly last + 1."),
    Reason(
        "sequence_old",
        _C.RETRY_WINDOW_EXPIRED,
        "That input is older than the ledger; observe, then go on with last + 1.",
    ),
    Reason("sequence_pending", _C.TARGET_BUSY, "Wait for the previous input to settle."),
    Reason("revision_stale", _C.REVISION_CONFLICT, "Read the list again and use its domainRevision in a new request."),
    Reason("generation_replaced", _C.STALE_GENERATION, "List again and use the current generation."),
    Reason("generation_ended", _C.STALE_GENERATION, "That runtime has ended; start or open it again."),
    Reason("lease_lost", _C.CONTROL_REVOKED, "Claim control again, or wait until its holder releases it."),
    Reason("session_ended", _C.CONTROL_REVOKED, "Restart the client process to pair again."),
    Reason("taken_over", _C.CONTROL_REVOKED, "A person took over; wait until they give control back."),
    Reason("already_leased", _C.TARGET_BUSY, "Another session holds control; see its owner in the list."),
    Reason("window_full", _C.TARGET_BUSY, "Too many calls wait on this connection; let some finish."),
    Reason("no_window", _C.UI_NOT_READY, "This needs a person's window; open the workbench."),
    Reason("adapter_absent", _C.UNSUPPORTED_CAPABILITY, "This build lists the tool but has no adapter for it yet."),
    Reason(
        "stale_ref", _C.STALE_SNAPSHOT, "That element is gone or was replaced; take a new snapshot and use its refs."
    ),
    Reason("unknown_ref", _C.STALE_SNAPSHOT, "That snapshot has no such ref; copy a ref from its elements or outline."),
    Reason("unknown_snapshot", _C.STALE_SNAPSHOT, "That snapshot is no longer kept; take a new one."),
    Reason("offscreen", _C.TARGET_BUSY, "The element is outside the viewport; scroll or swipe it into view first."),
    Reason("covered", _C.TARGET_BUSY, "Something covers the element; see details.coveredBy and deal with that first."),
    Reason("disk_full", _C.STORAGE_UNAVAILABLE, "Free disk space on the volume of LOMI_HOME; nothing was lost."),
    Reason("store_failed", _C.STORAGE_UNAVAILABLE, "See `lomi doctor`; the store is kept as it is."),
    Reason("closing", _C.APP_CLOSING, "The broker is stopping; start it again with `lomi up`."),
    Reason("waiting_for_approval", _C.PAIRING_REQUIRED, "Ask the person at the broker to approve the pairing request."),
    Reason(
        "adapter_failed",
        _C.OUTCOME_UNKNOWN,
        "The adapter failed unexpectedly; look at the resource and at `lomi logs`.",
    ),
    Reason("deadline", _C.DEADLINE_EXCEEDED, "Nothing was done in time; look at the resource and try again."),
)
