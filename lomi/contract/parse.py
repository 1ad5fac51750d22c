"""From raw arguments to a tool's closed input model, and nothing less strict.

Wrong JSON, unknown fields and wrong types are invalid params. Values that are well typed but outside their bounds, or
that don't go together, are OutOfBounds, which the broker answers with an envelope error.
"""

from functools import cache

import msgspec

from lomi.contract.bounds import InvalidParams, OutOfBounds, check_bounds
from lomi.contract.definition import Definition
from lomi.contract.keys import names_twice
from lomi.contract.limits import ARGUMENT_BYTES
from lomi.contract.model import Input

_PLAIN = msgspec.json.Decoder()


@cache
def _decoder(kind: type[Input]) -> msgspec.json.Decoder[Input]:
    return msgspec.json.Decoder(kind)


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
        twice = names_twice(raw, _PLAIN.decode(raw))
    except msgspec.ValidationError as error:
        raise InvalidParams(_one_line(error)) from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidParams("the arguments are not one JSON object in UTF-8") from None
    if twice:
        raise InvalidParams("an object names a key twice")
    check_bounds(given)
    definition.rule(given)
    return given


def _one_line(error: msgspec.ValidationError) -> str:
    """What msgspec says of the field, without line breaks or anything else that a terminal would act on."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(error))[:300]
