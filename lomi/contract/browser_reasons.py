"""Reasons of the browser family."""

from lomi.contract.codes import ErrorCode, Reason

_C = ErrorCode

_ELEMENT = (
    Reason("disabled", _C.TARGET_BUSY, "The element is disabled; do first what enables it."),
    Reason("hidden", _C.UNSUPPORTED_CAPABILITY, "The element is not visible; open what contains it first."),
    Reason("no_box", _C.UNSUPPORTED_CAPABILITY, "The element takes no space on the page; choose another one."),
    Reason("detached", _C.STALE_SNAPSHOT, "The element left the document; take a new snapshot."),
    Reason("moving", _C.TARGET_BUSY, "The element did not stop moving in time; try again."),
    Reason("read_only", _C.TARGET_BUSY, "The field is read-only now; do first what makes it editable."),
    Reason("not_focused", _C.TARGET_BUSY, "Click the element first, so that it has the focus."),
    Reason("not_focusable", _C.UNSUPPORTED_CAPABILITY, "That element can't have the focus; choose another one."),
    Reason("not_editable", _C.UNSUPPORTED_CAPABILITY, "That element takes no text; choose an editable one."),
    Reason("not_selectable", _C.UNSUPPORTED_CAPABILITY, "That element has no options to choose from."),
    Reason(
        "not_checkable", _C.UNSUPPORTED_CAPABILITY, "That element has no checked state; click it without `checked`."
    ),
    Reason("malformed_value", _C.UNSUPPORTED_CAPABILITY, "The field does not take such a value; see its type."),
    Reason("no_such_option", _C.TARGET_NOT_FOUND, "The select has no such enabled option; read its options first."),
    Reason("one_option_only", _C.UNSUPPORTED_CAPABILITY, "This select takes one option; leave out `alsoSelect`."),
    Reason("too_many_options", _C.RESOURCE_EXHAUSTED, "The select has more than 1,000 options."),
    Reason("file_input", _C.UNSUPPORTED_CAPABILITY, "Use lomi_browser_upload for a file input."),
    Reason("not_a_file_input", _C.UNSUPPORTED_CAPABILITY, "Give the ref of an element with role file_input."),
    Reason("position_outside", _C.RESOURCE_EXHAUSTED, "`position` must be inside the element."),
    Reason("unknown_key", _C.UNSUPPORTED_CAPABILITY, "Give a key name of the tool's documentation, or one character."),
)

_PAGE = (
    Reason("stale_snapshot", _C.STALE_SNAPSHOT, "That snapshot is no longer one of the page's last 8; take a new one."),
    Reason("navigated", _C.STALE_SNAPSHOT, "The document changed; take a new snapshot."),
    Reason("closed", _C.STALE_GENERATION, "The page has closed; open it again."),
    Reason("page_crashed", _C.STALE_GENERATION, "The page's process crashed; open the page again."),
    Reason("engine_crashed", _C.STALE_GENERATION, "The browser crashed and was restarted; open the page again."),
    Reason("engine_stopped", _C.APP_UNAVAILABLE, "The browser is stopping; open the page again later."),
    Reason("engine_start_failed", _C.APP_UNAVAILABLE, "The browser did not start; ask the owner to run `lomi doctor`."),
    Reason("engine_missing", _C.HOST_UNQUALIFIED, "No such browser is installed; ask the owner to run `lomi doctor`."),
    Reason("engine_unsupported", _C.UNSUPPORTED_CAPABILITY, "This engine is not offered here."),
    Reason("page_unresponsive", _C.DEADLINE_EXCEEDED, "The page does not answer; navigate, or open it again."),
    Reason(
        "dialog_open",
        _C.TARGET_BUSY,
        "A dialog (details.current is its id) is open: click ID-accept or ID-dismiss, or fill ID to answer a prompt.",
    ),
    Reason("not_answerable", _C.UNSUPPORTED_CAPABILITY, "Click ID-accept or ID-dismiss, or fill ID if it is a prompt."),
    Reason("no_such_dialog", _C.TARGET_NOT_FOUND, "That dialog is gone, or its deadline has passed."),
    Reason("no_such_chooser", _C.TARGET_NOT_FOUND, "That file chooser is gone, or its deadline has passed."),
    Reason("no_such_download", _C.TARGET_NOT_FOUND, "That download is gone, or its deadline has passed."),
    Reason("no_such_trace", _C.TARGET_NOT_FOUND, "No trace is being taken on this page."),
    Reason("trace_running", _C.TARGET_BUSY, "A trace of this page's context is being taken; stop it first."),
    Reason("document_gone", _C.STALE_SNAPSHOT, "The document went away while it was read; take a new snapshot."),
    Reason("opener_gone", _C.STALE_GENERATION, "The page that opened the popup has ended; the popup was closed."),
    Reason("no_panel", _C.STORAGE_UNAVAILABLE, "The popup's panel could not be stored; the popup was closed."),
    Reason("protocol_error", _C.APP_UNAVAILABLE, "The browser answered something else than asked; see `lomi logs`."),
    Reason("world_fault", _C.APP_UNAVAILABLE, "The page's own scripts broke what Lomi reads it with; load it again."),
    Reason("no_such_exchange", _C.TARGET_NOT_FOUND, "That request is no longer in the network log."),
    Reason("no_observation", _C.DEADLINE_EXCEEDED, "The page could not be observed, so nothing is known; try again."),
    Reason("navigation_failed", _C.OUTCOME_UNKNOWN, "No document arrived; take a snapshot of what is there now."),
    Reason("no_history", _C.TARGET_NOT_FOUND, "There is no such page in the history."),
    Reason("browsers_full", _C.RESOURCE_EXHAUSTED, "Close a page first."),
    Reason("memory_low", _C.RESOURCE_EXHAUSTED, "Too little memory is free for another page; close one first."),
    Reason(
        "not_http", _C.RESOURCE_EXHAUSTED, "Give a full http(s) URL without user name and password, or about:blank."
    ),
    Reason("cursor_expired", _C.CURSOR_EXPIRED, "Read again without a cursor."),
)

_NETWORK = (
    Reason("origin_denied", _C.SCOPE_DENIED, "That origin is not granted; the old document stays."),
    Reason("redirect_denied", _C.SCOPE_DENIED, "The address led out of the granted origins; the old document stays."),
    Reason("document_not_granted", _C.SCOPE_DENIED, "That host is granted for sub-resources only, not for pages."),
    Reason("scheme_not_granted", _C.SCOPE_DENIED, "That host is granted under the other scheme, http or https."),
    Reason("address_not_granted", _C.SCOPE_DENIED, "That host leads to a private or loopback address; not granted."),
    Reason("name_not_resolved", _C.OUTCOME_UNKNOWN, "The host's name has no address; check the URL."),
    Reason("connect_failed", _C.OUTCOME_UNKNOWN, "No server listens there; check the URL and that it runs."),
    Reason("connect_timeout", _C.OUTCOME_UNKNOWN, "The server did not answer in time; check that it runs."),
    Reason("empty_response", _C.OUTCOME_UNKNOWN, "The server closed the connection without an answer."),
    Reason("invalid_response", _C.OUTCOME_UNKNOWN, "The server's answer is not HTTP."),
    Reason("grant_changed", _C.SCOPE_DENIED, "The grant changed while the page loaded; load it again."),
    Reason("own_port", _C.SCOPE_DENIED, "That port belongs to Lomi and is never offered to pages."),
    Reason("redirect_refused", _C.UNSUPPORTED_CAPABILITY, "The download was redirected; fetch the final URL."),
    Reason("cross_origin", _C.SCOPE_DENIED, "Only URLs of the document's own origin can be fetched."),
    Reason("status_refused", _C.TARGET_NOT_FOUND, "The server answered with another status than 200 or 204."),
    Reason("too_slow", _C.DEADLINE_EXCEEDED, "The server did not send the whole body in time."),
    Reason("network_failed", _C.OUTCOME_UNKNOWN, "The server did not answer; check the URL and that it runs."),
    Reason("canceled", _C.OUTCOME_UNKNOWN, "The transfer was cancelled by the page; observe before going on."),
    Reason("no_such_transfer", _C.TARGET_NOT_FOUND, "That transfer is gone."),
    Reason("bad_file_name", _C.RESOURCE_EXHAUSTED, "Give a plain file name without separators."),
    Reason("no_such_file", _C.TARGET_NOT_FOUND, "The artifact's bytes are gone; import them again."),
    Reason("one_file_only", _C.UNSUPPORTED_CAPABILITY, "This file input takes one file."),
)

_CAPTURE = (Reason("capture_timeout", _C.DEADLINE_EXCEEDED, "The page could not be drawn in time; try again."),)

REASONS = (*_ELEMENT, *_PAGE, *_NETWORK, *_CAPTURE)
