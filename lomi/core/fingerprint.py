"""Fingerprints: the same request has the same one, whatever the order of its keys.

Texts that may be secret enter as an HMAC.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from lomi.contract.codes import ErrorCode
from lomi.contract.definition import Definition
from lomi.core.refusal import Refusal

MOST_BYTES = 64 * 1024
MOST_DEPTH = 32


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted object keys, arrays in order, no white space.

    Raises:
        Refusal: RESOURCE_EXHAUSTED for more than 64 KiB, more than 32 levels, or a NUL.
    """
    _check(value, 1)
    body = msgspec.json.encode(value, order="deterministic")
    if len(body) > MOST_BYTES:
        raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, "too_long")
    return body


def _check(value: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, "malformed")
    if isinstance(value, str):
        if "\0" in value:
            raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, "malformed")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check(key, depth)
            _check(item, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check(item, depth + 1)


def _without_secrets(value: Any, secret: frozenset[str], key: bytes) -> Any:
    if isinstance(value, dict):
        return {
            name: hmac.new(key, item.encode(), hashlib.sha256).hexdigest()
            if name in secret and isinstance(item, str)
            else _without_secrets(item, secret, key)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(item, secret, key) for item in value]
    return value


def fingerprint(definition: Definition, given: msgspec.Struct, key: bytes) -> bytes:
    """SHA-256 over the tool and its arguments: defaults filled in, reply-only fields left out, secret texts as an HMAC.

    The arguments name the whole target (workspace, panel, generation), and the project is part of the retry key.
    `key` is the instance's own.

    Raises:
        Refusal: as `canonical`.
    """
    arguments = msgspec.to_builtins(given, str_keys=True)
    for name, wire in zip(given.__struct_fields__, given.__struct_encode_fields__, strict=True):
        if name in definition.reply_only:
            arguments.pop(wire, None)
    arguments = _without_secrets(arguments, definition.secret_fields, key)
    return hashlib.sha256(canonical([definition.name, arguments])).digest()
