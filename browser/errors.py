"""What can go wrong, precisely: one class per kind, a closed `reason`, closed `details`.

An error raised before an action's effect was entered proves that nothing happened. Inside the effect only an
error whose
`proves_no_effect` is true does; after any other the outcome is unknown.
"""

from collections.abc import Mapping

Detail = str | int | float | bool | None


class BrowserError(Exception):
    """Base of all errors of this library.

    Attributes:
        reason: closed lower-case word for the documented case, e.g. ``covered``.
        details: small, bounded facts about this case.
    """

    proves_no_effect = False

    def __init__(self, reason: str, /, **details: Detail) -> None:
        self.reason = reason
        self.details: Mapping[str, Detail] = details
        shown = ", ".join(f"{name}={value!r}" for name, value in details.items())
        super().__init__(f"{reason} ({shown})" if shown else reason)


class RefusedError(BrowserError):
    """The target can't take the action now.

    Reasons: ``detached``, ``hidden``, ``no_box``, ``disabled``, ``covered`` (details say by what), ``offscreen``,
    ``moving``, ``read_only``,
    ``not_editable``, ``not_selectable``, ``not_focusable``, ``not_focused``, ``not_checkable``, ``file_input``,
    ``not_a_file_input``,
    ``no_such_option``, ``one_option_only``, ``too_many_options``, ``malformed_value``, ``unknown_key``.
    """

    proves_no_effect = True


class InterceptedError(RefusedError):
    """``covered``: something moved over the target after the check, and our guard swallowed the pointer event."""


class StaleRefError(BrowserError):
    """``stale_ref``: the ref's node or document is gone, or the ref was never handed out."""

    proves_no_effect = True


class StaleSnapshotError(BrowserError):
    """``stale_snapshot``: not one of the page's remembered snapshots."""

    proves_no_effect = True


class BlockedError(BrowserError):
    """``dialog_open``: a dialog of this page must be answered first (details name it)."""

    proves_no_effect = True


class PageEndedError(BrowserError):
    """The generation is over: ``closed``, ``page_crashed``, ``engine_crashed``, ``engine_stopped``."""


class UnresponsiveError(BrowserError):
    """``page_unresponsive``: the page did not answer within the bound."""


class OriginDeniedError(BrowserError):
    """``origin_denied``: a document outside the grant was asked for; the old document stays."""

    proves_no_effect = True


class RedirectDeniedError(OriginDeniedError):
    """``redirect_denied``.

    An admitted address led outside the grant. The old document stays; the admitted requests were made.
    """

    proves_no_effect = False


class NavigationFailedError(BrowserError):
    """``navigation_failed``.

    No document arrived (details carry the network error); ``not_http``: the address is not for us.
    """


class NotDeliveredError(BrowserError):
    """``not_delivered``: text was typed but the field does not hold it (details: lengths)."""


class EngineUnavailableError(BrowserError):
    """``engine_missing``, ``engine_unsupported``, ``engine_start_failed`` or ``engine_stopped``."""

    proves_no_effect = True


class AdmissionRefusedError(BrowserError):
    """``browsers_full`` or ``memory_low``: not another page now."""

    proves_no_effect = True


class CaptureFailedError(BrowserError):
    """``capture_invalid`` (empty or truncated picture), ``capture_too_large``, ``capture_timeout``."""

    proves_no_effect = True


class CursorExpiredError(BrowserError):
    """``cursor_expired``: a cursor of another document, or older than the ring."""

    proves_no_effect = True


class TransferFailedError(BrowserError):
    """A download or upload that did not happen.

    Reasons: ``redirect_refused``, ``status_refused``, ``too_large``, ``too_slow``, ``cross_origin``,
    ``network_failed``, ``canceled``, ``no_such_transfer``,
    ``bad_file_name``, ``hash_mismatch``, ``one_file_only``.
    """


class NoSuchThingError(BrowserError):
    """An unknown id, or one whose deadline has passed.

    Reasons: ``no_such_dialog``, ``no_such_chooser``, ``no_such_download``, ``no_such_exchange``, ``no_such_trace``.
    """

    proves_no_effect = True


class ContextGoneError(BrowserError):
    """``document_gone``: the document a call was meant for was replaced meanwhile; the page itself may live on."""


class ProtocolError(BrowserError):
    """``protocol_error``: the engine refused a call of ours."""


class WorldFaultError(BrowserError):
    """``world_fault``: our script in the page failed: a fault of ours, or a document the engine can't lay out."""
