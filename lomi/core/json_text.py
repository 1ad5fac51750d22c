"""JSON text from outside, judged before anything acts on it: no decoder we use notices a key that comes twice."""

import json

import msgspec


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
        # The skipping decoder sees lone surrogates and NaN, which the standard library lets through.
        msgspec.json.decode(text, type=msgspec.Raw)
        found = json.loads(text.decode(), object_pairs_hook=_unique)
    except DuplicateKeyError:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedJsonError("not JSON") from error
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DuplicateKeyError("a key comes twice")
    return found
