"""What a call may end with other than data: one class for each code of the contract, and the client's own."""

import msgspec

from lomi.contract.codes import Details, ErrorCode


class ToolError(Exception):
    """Raised when the broker answers with an error envelope, or an act's receipt says that it did not succeed.

    Attributes:
        code: one of the 25; each has a subclass.
        reason: which documented case it is, or None.
        field: JSON pointer of the offending argument, or None.
        hint: what to do, or None.
        details: closed facts, or None.
        operation_id: the receipt's, where there is one.
        effect: what the receipt knows of the effect (`none`, `partial`, `complete`, `unknown`); `none` without one.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        reason: str | None = None,
        field: str | None = None,
        hint: str | None = None,
        details: Details | None = None,
        operation_id: str | None = None,
        effect: str = "none",
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" ({reason})" if reason else ""))
        if hint is not None:
            self.add_note(hint)
        self.code = code
        self.reason = reason
        self.field = field
        self.hint = hint
        self.details = details
        self.operation_id = operation_id
        self.effect = effect


class AppUnavailableError(ToolError):
    """The broker, or what stands behind the tool (emulator, adb, browser), can't be reached."""


class PairingRequiredError(ToolError):
    """This session is not approved yet."""


class ScopeDeniedError(ToolError):
    """The grant does not allow that."""


class UiNotReadyError(ToolError):
    """A person's window is needed."""


class AppClosingError(ToolError):
    """The broker is stopping."""


class TargetNotFoundError(ToolError):
    """No such target is visible to this session."""


class StaleGenerationError(ToolError):
    """The runtime, document or device was replaced, or has ended."""


class RevisionConflictError(ToolError):
    """A revision is no longer current, the destination exists, or an input sequence has a gap."""


class StaleSnapshotError(ToolError):
    """A snapshot or ref is no longer valid."""


class TargetBusyError(ToolError):
    """The target is at other work, or another session holds it."""


class ControlRevokedError(ToolError):
    """This session no longer holds control."""


class PromptStateUnknownError(ToolError):
    """The terminal's prompt is not known to be idle."""


class PanelNotRenderableError(ToolError):
    """The panel can't be drawn."""


class ProtectedOriginTerminalError(ToolError):
    """That terminal hosts the caller, or is not its own."""


class UnsupportedCapabilityError(ToolError):
    """Known, but not offered for this input."""


class HostUnqualifiedError(ToolError):
    """This host or shell is not qualified."""


class DeadlineExceededError(ToolError):
    """The bounded time ran out before any effect was seen."""


class CursorExpiredError(ToolError):
    """A cursor is too old."""


class ArtifactTooLargeError(ToolError):
    """Over the byte or pixel budget."""


class ArtifactInvalidError(ToolError):
    """Wrong hash, structure or class of an artifact; an APK that the installer refused."""


class OutcomeUnknownError(ToolError):
    """The effect may or may not exist; look at the resource before going on."""


class IdempotencyConflictError(ToolError):
    """One retry identity, two payloads."""


class RetryWindowExpiredError(ToolError):
    """The retry epoch is over."""


class ResourceExhaustedError(ToolError):
    """A limit is full, or an argument is out of range."""


class StorageUnavailableError(ToolError):
    """The broker can't store the receipt, so it did nothing."""


class ConnectionLostError(ControlRevokedError):
    """Raised when the connection ended before the answer: what a mutation did is unknown until its receipt is read."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.CONTROL_REVOKED, "The connection to the broker ended.", reason="session_ended")


class InvalidArgumentsError(Exception):
    """Raised when the tool is unknown, or an argument is unknown or of the wrong type."""


class BrokerFaultError(Exception):
    """Raised when the broker failed on a call for a reason of its own, or broke the protocol."""


ERROR_OF: dict[ErrorCode, type[ToolError]] = {
    ErrorCode.APP_UNAVAILABLE: AppUnavailableError,
    ErrorCode.PAIRING_REQUIRED: PairingRequiredError,
    ErrorCode.SCOPE_DENIED: ScopeDeniedError,
    ErrorCode.UI_NOT_READY: UiNotReadyError,
    ErrorCode.APP_CLOSING: AppClosingError,
    ErrorCode.TARGET_NOT_FOUND: TargetNotFoundError,
    ErrorCode.STALE_GENERATION: StaleGenerationError,
    ErrorCode.REVISION_CONFLICT: RevisionConflictError,
    ErrorCode.STALE_SNAPSHOT: StaleSnapshotError,
    ErrorCode.TARGET_BUSY: TargetBusyError,
    ErrorCode.CONTROL_REVOKED: ControlRevokedError,
    ErrorCode.PROMPT_STATE_UNKNOWN: PromptStateUnknownError,
    ErrorCode.PANEL_NOT_RENDERABLE: PanelNotRenderableError,
    ErrorCode.PROTECTED_ORIGIN_TERMINAL: ProtectedOriginTerminalError,
    ErrorCode.UNSUPPORTED_CAPABILITY: UnsupportedCapabilityError,
    ErrorCode.HOST_UNQUALIFIED: HostUnqualifiedError,
    ErrorCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    ErrorCode.CURSOR_EXPIRED: CursorExpiredError,
    ErrorCode.ARTIFACT_TOO_LARGE: ArtifactTooLargeError,
    ErrorCode.ARTIFACT_INVALID: ArtifactInvalidError,
    ErrorCode.OUTCOME_UNKNOWN: OutcomeUnknownError,
    ErrorCode.IDEMPOTENCY_CONFLICT: IdempotencyConflictError,
    ErrorCode.RETRY_WINDOW_EXPIRED: RetryWindowExpiredError,
    ErrorCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    ErrorCode.STORAGE_UNAVAILABLE: StorageUnavailableError,
}


class _ErrorEnvelope(msgspec.Struct, frozen=True, rename="camel"):
    code: ErrorCode
    message: str
    reason: str | None = None
    field: str | None = None
    hint: str | None = None
    details: Details | None = None


_envelope = msgspec.json.Decoder(_ErrorEnvelope)


def tool_error(structured: bytes) -> ToolError:
    """The error that an envelope states.

    Raises:
        BrokerFaultError: it is no error envelope.
    """
    try:
        said = _envelope.decode(structured)
    except msgspec.DecodeError as error:
        raise BrokerFaultError("an error envelope of another shape") from error
    return ERROR_OF[said.code](
        said.code, said.message, reason=said.reason, field=said.field, hint=said.hint, details=said.details
    )
