"""From raw arguments to a tool's closed input model, and nothing less strict.

Wrong JSON, unknown fields and wrong types are invalid params. Values that are well typed but outside their bounds, or
that don't go together, are OutOfBounds, which the broker answers with an envelope error.
"""

import json
import re
from functools import cache
from typing import Any

import msgspec

from lomi.contract.bounds import InvalidParams, OutOfBounds, check_bounds
from lomi.contract.definition import Definition
from lomi.contract.limits import ARGUMENT_BYTES
from lomi.contract.model import Input

_KEY_END = re.compile(rb'"[ \t\n\r]*:')
_PLAIN = msgspec.json.Decoder()


@cache
def _decoder(kind: type[Input]) -> msgspec.json.Decoder[Input]:
    return msgspec.json.Decoder(kind)


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count_keys(item) for item in value.values() if isinstance(item, (dict, list)))
    return sum(_count_keys(item) for item in value if isinstance(item, (dict, list)))


def _refuse_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidParams("an object names a key twice")
    return found


def _refuse_duplicates(raw: bytes) -> None:
    """Refuse an object that names a key twice; `raw` is known to be an object of valid JSON.

    Every key ends in a quote and a colon. Texts can hold that too, so there are never fewer such places than keys:
    where their number equals the number of keys that decoding kept, no key was lost. Only else is it worth a slow look.
    """
    if len(_KEY_END.findall(raw)) != _count_keys(_PLAIN.decode(raw)):
        json.loads(raw, object_pairs_hook=_refuse_pairs)


def parse(definition: Definition, raw: bytes) -> Input:
    """The arguments of one call as the tool's input model.

    Raises:
        InvalidParams: not one JSON object in UTF-8, a key named twice, an unknown field, a wrong type.
        OutOfBounds: more than 64 KiB, a value outside its bounds, or fields that don't go together.
    """
    if len(raw) > ARGUMENT_BYTES:
        raise OutOfBounds("", "arguments_too_large", limit=ARGUMENT_BYTES)
    try:
        given = _decoder(definition.input).decode(raw)
        _refuse_duplicates(raw)
    except msgspec.ValidationError as error:
        raise InvalidParams(_one_line(error)) from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidParams("the arguments are not one JSON object in UTF-8") from None
    check_bounds(given)
    definition.rule(given)
    return given


def _one_line(error: msgspec.ValidationError) -> str:
    """What msgspec says of the field, without line breaks or anything else that a terminal would act on."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(error))[:300]
