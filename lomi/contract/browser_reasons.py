"""Reasons of the browser family."""

from lomi.contract.codes import ErrorCode, Reason

_C = ErrorCode

_ELEMENT = (
    Reason("disabled", _C.TARGET_BUSY, "The element is disabled; do first what enables it."),
    Reason("hidden", _C.UNSUPPORTED_CAPABILITY, "The element is not visible; open what contains it first."),
    Reason("detached", _C.STALE_SNAPSHOT, "The element left the document; take a new snapshot."),
    Reason("moving", _C.TARGET_BUSY, "The element did not stop moving in time; try again."),
    Reason("not_focused", _C.TARGET_BUSY, "Click the element first, so that it has the focus."),
    Reason("not_editable", _C.UNSUPPORTED_CAPABILITY, "That element takes no text; choose an editable one."),
    Reason(
        "not_checkable", _C.UNSUPPORTED_CAPABILITY, "That element has no checked state; click it without `checked`."
    ),
    Reason("value_refused", _C.UNSUPPORTED_CAPABILITY, "The field does not take such a value; see its type."),
    Reason("no_such_option", _C.TARGET_NOT_FOUND, "The select has no such enabled option; read its options first."),
    Reason("file_input", _C.UNSUPPORTED_CAPABILITY, "Use lomi_browser_upload for a file input."),
    Reason("not_a_file_input", _C.UNSUPPORTED_CAPABILITY, "Give the ref of an element with role file_input."),
    Reason("position_outside", _C.RESOURCE_EXHAUSTED, "`position` must be inside the element."),
    Reason("unknown_key", _C.UNSUPPORTED_CAPABILITY, "Give a key name of the tool's documentation, or one character."),
)

_PAGE = (
    Reason("navigated", _C.STALE_SNAPSHOT, "The document changed; take a new snapshot."),
    Reason("page_crashed", _C.STALE_GENERATION, "The page's process crashed; open the page again."),
    Reason("page_closed", _C.STALE_GENERATION, "The page has closed; open it again."),
    Reason("engine_crashed", _C.STALE_GENERATION, "The browser crashed and was restarted; open the page again."),
    Reason(
        "engine_missing", _C.HOST_UNQUALIFIED, "No such browser is installed here; ask the owner to run `lomi doctor`."
    ),
    Reason("page_hung", _C.DEADLINE_EXCEEDED, "The page does not answer; navigate, or open it again."),
    Reason(
        "dialog_open", _C.TARGET_BUSY, "A dialog is open on this page; it is in the observation, with its deadline."
    ),
    Reason("no_observation", _C.DEADLINE_EXCEEDED, "The page could not be observed, so nothing is known; try again."),
    Reason("navigation_failed", _C.OUTCOME_UNKNOWN, "The navigation failed; take a snapshot of what is there now."),
    Reason("too_many_pages", _C.RESOURCE_EXHAUSTED, "Close a page first."),
    Reason("no_memory_for_page", _C.RESOURCE_EXHAUSTED, "Too little memory is free for another page; close one first."),
    Reason("bad_url", _C.RESOURCE_EXHAUSTED, "Give a full http(s) URL without user name and password, or about:blank."),
)

_NETWORK = (
    Reason("origin_refused", _C.SCOPE_DENIED, "The page wanted to leave the granted origins; the old document stays."),
    Reason("address_refused", _C.SCOPE_DENIED, "That host is a private or loopback address that is not granted."),
    Reason("own_port", _C.SCOPE_DENIED, "That port belongs to Lomi and is never offered to pages."),
    Reason("unreachable", _C.OUTCOME_UNKNOWN, "The server did not answer; check the URL and that it runs."),
    Reason("redirected", _C.UNSUPPORTED_CAPABILITY, "The download was redirected; fetch the final URL."),
    Reason("foreign_origin", _C.SCOPE_DENIED, "Only URLs of the document's own origin can be fetched."),
    Reason("http_status", _C.TARGET_NOT_FOUND, "The server answered with another status than 200 or 204."),
    Reason("body_too_large", _C.ARTIFACT_TOO_LARGE, "The body is over maxBytes."),
)

_CAPTURE = (
    Reason("page_capture_invalid", _C.OUTCOME_UNKNOWN, "The browser gave no valid picture; try again."),
    Reason(
        "page_capture_too_large",
        _C.ARTIFACT_TOO_LARGE,
        "Ask for a smaller maxWidth, a larger maxBytes, or one element.",
    ),
)

REASONS = (*_ELEMENT, *_PAGE, *_NETWORK, *_CAPTURE)
