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
    Reason("secret_name", _C.SCOPE_DENIED, "Names reserved for secrets are never offered; use another file."),
    Reason("protected_place", _C.SCOPE_DENIED, "That place belongs to Lomi or holds secrets; use another one."),
    Reason("path_not_absolute", _C.RESOURCE_EXHAUSTED, "Give an absolute path."),
    Reason("path_not_relative", _C.SCOPE_DENIED, "Give a path relative to the project."),
    Reason("name_invalid", _C.SCOPE_DENIED, "The path holds a name that is never opened; use a plain relative path."),
    Reason("name_too_long", _C.RESOURCE_EXHAUSTED, "The path or one of its names is too long."),
    Reason("not_found", _C.TARGET_NOT_FOUND, "Nothing of that name is there; list the directory."),
    Reason("symlink", _C.SCOPE_DENIED, "Symbolic links are never followed; give the real path."),
    Reason("hard_link", _C.SCOPE_DENIED, "Files with more than one name are never opened; copy the file first."),
    Reason("not_a_regular_file", _C.SCOPE_DENIED, "Directories, pipes, sockets and devices are never read as files."),
    Reason("not_a_directory", _C.UNSUPPORTED_CAPABILITY, "That entry is not a directory."),
    Reason("foreign_owner", _C.SCOPE_DENIED, "That entry belongs to another user."),
    Reason("mode_not_private", _C.SCOPE_DENIED, "Others may change that entry; ask the owner to close it."),
    Reason("permission_denied", _C.SCOPE_DENIED, "The system denies access."),
    Reason("too_large", _C.ARTIFACT_TOO_LARGE, "There are more bytes than the limit in details."),
    Reason("already_exists", _C.REVISION_CONFLICT, "Choose a name where nothing exists yet."),
    Reason("changed_during_call", _C.REVISION_CONFLICT, "The file changed while it was read; hash it again."),
    Reason("length_mismatch", _C.ARTIFACT_INVALID, "Give the exact byte length."),
    Reason("hash_mismatch", _C.ARTIFACT_INVALID, "Give the SHA-256 of the exact bytes."),
    Reason("sha256_mismatch", _C.ARTIFACT_INVALID, "Give the SHA-256 of the exact bytes."),
    Reason("not_delivered", _C.OUTCOME_UNKNOWN, "It did not arrive as meant; observe, and check the names given."),
    Reason("source_changed", _C.REVISION_CONFLICT, "The file changed while it was read; hash it again."),
    Reason("file_too_large", _C.ARTIFACT_TOO_LARGE, "The file is over the limit of its class."),
    Reason("capture_invalid", _C.OUTCOME_UNKNOWN, "No valid picture came; try again."),
    Reason(
        "capture_too_large", _C.ARTIFACT_TOO_LARGE, "Ask for a smaller or a larger-bounded picture, or one element."
    ),
    Reason("path_refused", _C.SCOPE_DENIED, "Use a plain relative path inside the project, without links."),
    Reason(
        "not_decided_here",
        _C.SCOPE_DENIED,
        "The policy does not take this decision; ask the owner to add it to `decide`.",
    ),
    Reason("declined", _C.SCOPE_DENIED, "The person declined; ask them before trying again."),
    Reason("decision_expired", _C.SCOPE_DENIED, "Nobody decided in time; ask the owner, then send a new request."),
    Reason(
        "decision_outdated", _C.REVISION_CONFLICT, "What was decided on has changed since; look again, then ask anew."
    ),
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
    Reason(
        "not_in_policy",
        _C.PAIRING_REQUIRED,
        "Nobody is there to ask, and no policy entry fits: check LOMI_CLIENT_LABEL and LOMI_CLIENT_TOKEN.",
    ),
    Reason("waiting_for_approval", _C.PAIRING_REQUIRED, "Ask the person at the broker to approve the pairing request."),
    Reason(
        "adapter_failed",
        _C.OUTCOME_UNKNOWN,
        "The adapter failed unexpectedly; look at the resource and at `lomi logs`.",
    ),
    Reason("adapter_failed_before", _C.APP_UNAVAILABLE, "The adapter failed before any effect; see `lomi logs`."),
    Reason("still_running", _C.DEADLINE_EXCEEDED, "The work goes on; read its receipt with lomi_operation_get."),
    Reason("deadline", _C.DEADLINE_EXCEEDED, "Nothing was done in time; look at the resource and try again."),
)
