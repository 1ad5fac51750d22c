"""JSON text from outside, judged before anything acts on it: no decoder we use notices a key that comes twice."""

import json

import msgspec

from lomi.contract.keys import names_twice


class MalformedJsonError(ValueError):
    """The text is not JSON: broken syntax or UTF-8, a lone surrogate, NaN, nested too deep, a number too long."""


class DuplicateKeyError(ValueError):
    """Valid JSON in which an object names a key twice; which of the two was meant can't be known."""


def read_object(text: bytes) -> dict[str, object] | None:
    """Decode one JSON text strictly; None if it is JSON but not an object.

    Raises:
        MalformedJsonError: not JSON.
        DuplicateKeyError: a key comes twice, at any depth.
    """
    try:
        found, twice = _read(text)
    except (ValueError, RecursionError) as error:
        raise MalformedJsonError("not JSON") from error
    if twice:
        raise DuplicateKeyError("a key comes twice")
    return found if isinstance(found, dict) else None


def _read(text: bytes) -> tuple[object, bool]:
    try:
        found: object = msgspec.json.decode(text)
    except msgspec.ValidationError:
        # JSON all the same: it holds a number that is too large for a float.
        msgspec.json.decode(text, type=msgspec.Raw)
        found = json.loads(text.decode())
    return found, names_twice(text, found)
