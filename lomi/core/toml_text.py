"""TOML text from a person, read with bounds: the standard reader has neither a bound on nesting nor on long keys."""

import re
import tomllib
from typing import Any

_PARTS = r"""[ \t\[]*(?:[\w"'-]+[ \t]*\.[ \t]*){32}"""
_ENDLESS_KEY = re.compile(f"(?:^|[{{,]){_PARTS}", re.MULTILINE)
"""A dotted key of more than 32 parts, for which the reader takes time by the square of their number."""


class MalformedTomlError(ValueError):
    """Raised for text that is not TOML, or not within bounds; the message is one line and says where, if known."""


def read_toml(text: str) -> dict[str, Any]:
    """The tables of one document.

    Raises:
        MalformedTomlError: not TOML, nested too deep, a key of too many parts, a number too long.
    """
    if (found := _ENDLESS_KEY.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise MalformedTomlError(f"a key has too many parts (at line {line}, column 1)")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MalformedTomlError(str(error)) from error
    except RecursionError as error:
        raise MalformedTomlError("nested too deep") from error
    except ValueError as error:
        # Numbers and dates that Python's own types refuse.
        raise MalformedTomlError("a number or date is out of range") from error
