"""What a call may end with other than data."""

import msgspec

from lomi.contract.codes import Details, ErrorCode


class ToolError(Exception):
    """Raised when the broker answers with an error envelope.

    Attributes:
        code: one of the 25.
        reason: which documented case it is, or None.
        field: JSON pointer of the offending argument, or None.
        hint: what to do, or None.
        details: closed facts, or None.
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
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" ({reason})" if reason else ""))
        self.code = code
        self.reason = reason
        self.field = field
        self.hint = hint
        self.details = details


class InvalidArgumentsError(Exception):
    """Raised when the tool is unknown, or an argument is unknown or of the wrong type."""


class ConnectionLostError(ToolError):
    """Raised when the connection ended before the answer: what a mutation did is unknown until its receipt is read."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.CONTROL_REVOKED, "The connection to the broker ended.", reason="session_ended")


class BrokerFaultError(Exception):
    """Raised when the broker failed on a call for a reason of its own, or broke the protocol."""


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
    return ToolError(
        said.code, said.message, reason=said.reason, field=said.field, hint=said.hint, details=said.details
    )
