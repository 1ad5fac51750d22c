"""Whether JSON text names a key twice, which no decoder that we use notices."""

import json
import re
from typing import Any

_KEY_END = re.compile(rb'"[ \t\n\r]*:')


class _TwiceError(ValueError):
    """Raised inside the slow look at the first such key."""


def names_twice(text: bytes, decoded: object) -> bool:
    """Whether an object in `text`, at any depth, names a key twice; `decoded` is what a decoder made of this text.

    Every key ends in a quote and a colon. Texts can hold that too, so there are never fewer such places than keys:
    where their number equals the number of keys that decoding kept, no key was lost. Only else is it worth a slow look.
    """
    if len(_KEY_END.findall(text)) == _count(decoded):
        return False
    try:
        json.loads(text, object_pairs_hook=_unique)
    except _TwiceError:
        return True
    return False


def _count(value: object) -> int:
    keys, rest = 0, [value]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            keys += len(one)
            rest.extend(one.values())
        elif isinstance(one, list):
            rest.extend(one)
    return keys


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError
    return found
