"""The JSON frames of a `calls` connection, for both of its ends.

Client to broker: a JSON frame `{ipcVersion, requestId, request: {tool, arguments}}`; a cancel frame `{requestId}`.
Broker to client: a JSON frame `{requestId, result, text, pictures}` or `{requestId, error}`; with pictures one binary
frame follows at once, which holds their bytes one after the other.
"""

import msgspec

from lomi.core.backend import InvalidParams, ToolReply
from lomi.core.json_text import DuplicateKeyError, MalformedJsonError, read_object
from lomi.core.picture import Picture
from lomi.link.frames import Frame, Kind

IPC_VERSION = 1
MAX_ARGUMENTS = 64 << 10
"""Bytes of a tool's arguments as JSON."""


class ProtocolBrokenError(Exception):
    """Raised when the peer's frame is not of this protocol; the connection can't go on."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A closed message."""


class ToolCall(Wire, frozen=True, kw_only=True):
    """Which tool, and its arguments: a JSON object as raw text."""

    tool: str
    arguments: msgspec.Raw


class CallRequest(Wire, frozen=True, kw_only=True):
    """A call. `requestId` is unique among those in flight on the connection, 1 to 128 characters."""

    ipc_version: int
    request_id: str
    request: ToolCall


class CancelRequest(Wire, frozen=True, kw_only=True):
    """Asks to cancel a call that is in flight; one that is not is left alone."""

    request_id: str


class PictureHead(Wire, frozen=True, kw_only=True):
    """Type and length in bytes of one picture in the binary frame that follows."""

    media_type: str
    byte_length: int


class CallError(Wire, frozen=True, kw_only=True):
    """Why there is no envelope; `kind` is `invalid_params` (unknown tool or field, wrong type) or `internal`."""

    kind: str
    message: str


class CallResponse(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one call: an envelope with its short rendering, or an error."""

    request_id: str
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: CallError | None = None
    is_error: bool = False
    text: str = ""
    pictures: tuple[PictureHead, ...] = ()


_request = msgspec.json.Decoder(CallRequest)
_cancel = msgspec.json.Decoder(CancelRequest)
_response = msgspec.json.Decoder(CallResponse)


def encode_request(request_id: str, tool: str, arguments: bytes) -> Frame:
    """The frame of one call."""
    call = ToolCall(tool=tool, arguments=msgspec.Raw(arguments))
    return Frame(
        Kind.JSON, msgspec.json.encode(CallRequest(ipc_version=IPC_VERSION, request_id=request_id, request=call))
    )


def encode_cancel(request_id: str) -> Frame:
    """The frame that asks to cancel one call."""
    return Frame(Kind.CANCEL, msgspec.json.encode(CancelRequest(request_id=request_id)))


def decode_request(body: bytes | bytearray | memoryview) -> CallRequest:
    """Read a call; its arguments are still to be checked.

    Raises:
        ProtocolBrokenError: it is not one.
    """
    try:
        request = _request.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolBrokenError("not a call") from error
    if request.ipc_version != IPC_VERSION or not 1 <= len(request.request_id) <= 128:
        raise ProtocolBrokenError("unknown version or bad request id")
    return request


def checked_arguments(request: CallRequest) -> bytes:
    """The arguments as they came: one JSON object without duplicate keys, of at most 64 KiB.

    Raises:
        InvalidParams: they are not that.
    """
    arguments = bytes(request.request.arguments)
    if len(arguments) > MAX_ARGUMENTS:
        raise InvalidParams("arguments are at most 64 KiB")
    try:
        if read_object(arguments) is None:
            raise InvalidParams("arguments must be an object")
    except (MalformedJsonError, DuplicateKeyError) as error:
        raise InvalidParams("arguments are not JSON, or an object in them names a key twice") from error
    return arguments


def decode_cancel(body: bytes | bytearray | memoryview) -> CancelRequest:
    """Read the body of a cancel frame.

    Raises:
        ProtocolBrokenError: it is not one.
    """
    try:
        return _cancel.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolBrokenError("not a cancellation") from error


def encode_reply(request_id: str, reply: ToolReply) -> list[Frame]:
    """The frames of an answer; they are sent together."""
    response = CallResponse(
        request_id=request_id,
        result=msgspec.Raw(reply.structured),
        is_error=reply.is_error,
        text=reply.text,
        pictures=tuple(
            PictureHead(media_type=picture.media_type, byte_length=len(picture.content)) for picture in reply.pictures
        ),
    )
    frames = [Frame(Kind.JSON, msgspec.json.encode(response))]
    if any(picture.content for picture in reply.pictures):
        frames.append(Frame(Kind.BINARY, b"".join(picture.content for picture in reply.pictures)))
    return frames


def encode_error(request_id: str, kind: str, message: str) -> Frame:
    """The frame that refuses a call: `kind` is `invalid_params` or `internal`."""
    response = CallResponse(request_id=request_id, error=CallError(kind=kind, message=message))
    return Frame(Kind.JSON, msgspec.json.encode(response))


def decode_response(body: bytes | bytearray | memoryview) -> CallResponse:
    """Read an answer, still without its pictures.

    Raises:
        ProtocolBrokenError: it is not one.
    """
    try:
        response = _response.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolBrokenError("not an answer") from error
    if (response.result is msgspec.UNSET) is (response.error is None):
        raise ProtocolBrokenError("an answer is a result or an error")
    return response


def cut_pictures(heads: tuple[PictureHead, ...], content: bytes | bytearray | memoryview) -> tuple[Picture, ...]:
    """Cut a binary frame into the pictures that its JSON frame announced.

    Raises:
        ProtocolBrokenError: the lengths don't add up.
    """
    if any(head.byte_length < 0 for head in heads) or sum(head.byte_length for head in heads) != len(content):
        raise ProtocolBrokenError("the pictures are not as long as announced")
    pictures: list[Picture] = []
    view, start = memoryview(content), 0
    for head in heads:
        pictures.append(Picture(head.media_type, bytes(view[start : start + head.byte_length])))
        start += head.byte_length
    return tuple(pictures)
