"""The reader in front of the SDK: one line of JSON-RPC in, one judged message out.

The SDK answers nothing to a line that is not JSON, lets the last of two equal keys win and puts no bound on arguments.
So every line is judged here first, and what a client must not wait for in vain is answered from here.
"""

from dataclasses import dataclass
from typing import TypeGuard

import msgspec

from lomi.core.json_text import DuplicateKeyError, MalformedJsonError, read_object
from lomi.mcp.bounds import MAX_LINE

MAX_ARGUMENTS = 64 << 10
"""Bytes of a tool's arguments as they came."""
MAX_OTHER = 64 << 10
"""Bytes of a line beside the arguments."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TOO_MANY_PENDING = -32010

RequestId = int | str


class RefusedLine(Exception):  # noqa: N818  an answer of the protocol, not a fault
    """A line that is answered with a JSON-RPC error, not passed on. `id` is None where it can't be known."""

    def __init__(self, code: int, message: str, id: RequestId | None = None) -> None:  # noqa: A002  JSON-RPC's word
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request (`id` is set) or a notification. `params` are without a tool's arguments, which stay raw."""

    id: RequestId | None
    method: str
    params: dict[str, object] | None
    arguments: bytes | None = None


class _Envelope(msgspec.Struct):
    method: str
    params: msgspec.Raw = msgspec.Raw()


class _Params(msgspec.Struct):
    arguments: msgspec.Raw = msgspec.Raw()


class _Identity(msgspec.Struct):
    method: str | None = None
    id: int | str | None = None


_envelope = msgspec.json.Decoder(_Envelope)
_params = msgspec.json.Decoder(_Params)
_identity = msgspec.json.Decoder(_Identity)


def read_line(line: bytes) -> Incoming | None:
    """Judge one line; None for an empty line and for an answer, since nothing is ever asked of a client.

    Raises:
        RefusedLine: not JSON-RPC, or over a bound.
    """
    if len(line) > MAX_LINE:
        raise RefusedLine(INVALID_REQUEST, "a line is at most 8 MiB")
    if not line.strip():
        return None
    arguments = _raw_arguments(line)
    length = len(arguments) if arguments is not None else 0
    if length > MAX_ARGUMENTS:
        _refuse_size(line, "arguments are at most 64 KiB")
        return None
    if len(line) - length > MAX_OTHER:
        _refuse_size(line, "a message beside its arguments is at most 64 KiB")
        return None
    try:
        found = read_object(line)
    except MalformedJsonError:
        raise RefusedLine(PARSE_ERROR, "not JSON") from None
    except DuplicateKeyError:
        raise RefusedLine(INVALID_REQUEST, "an object names a key twice", _identify(line).id) from None
    if found is None:
        raise RefusedLine(INVALID_REQUEST, "a message is one JSON object")
    return _message(found, arguments)


def _raw_arguments(line: bytes) -> bytes | None:
    """The bytes of `params.arguments` as they came, for a call of a tool."""
    try:
        envelope = _envelope.decode(line)
        if envelope.method != "tools/call" or not bytes(envelope.params):
            return None
        return bytes(_params.decode(envelope.params).arguments) or None
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        raise RefusedLine(PARSE_ERROR, "not JSON") from None


def _refuse_size(line: bytes, what: str) -> None:
    """Refuse a request that is too long; a notification or an answer of that size is dropped."""
    identity = _identify(line)
    if identity.method is None or identity.id is None:
        return
    raise RefusedLine(INVALID_PARAMS, what, identity.id)


def _identify(line: bytes) -> _Identity:
    """Method and id of a line that is not read in full, as far as they can be answered to."""
    try:
        return _identity.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return _Identity()


def _message(found: dict[str, object], arguments: bytes | None) -> Incoming | None:
    method, params, given = found.get("method"), found.get("params"), found.get("id")
    if method is None and ("result" in found or "error" in found):
        return None
    known: RequestId | None = given if isinstance(given, str) or _is_number(given) else None
    if found.get("jsonrpc") != "2.0" or not isinstance(method, str) or ("id" in found and known is None):
        raise RefusedLine(INVALID_REQUEST, "not a JSON-RPC 2.0 request", known)
    if params is not None and not isinstance(params, dict):
        raise RefusedLine(INVALID_PARAMS, "params must be an object", known)
    if method != "tools/call" or params is None:
        return Incoming(id=known, method=method, params=params)
    if "arguments" in params:
        given_arguments = params.pop("arguments")
        if given_arguments is None:
            arguments = b"{}"
        elif not isinstance(given_arguments, dict):
            raise RefusedLine(INVALID_PARAMS, "arguments must be an object", known)
    return Incoming(id=known, method=method, params=params, arguments=arguments or b"{}")


def _is_number(given: object) -> TypeGuard[int]:
    """Whether it is an integer of 64 bits: what every JSON library on the way can carry."""
    return type(given) is int and -(1 << 63) <= given < 1 << 63
