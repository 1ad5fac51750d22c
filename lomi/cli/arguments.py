"""`key=value` as a person types it, made into what a tool's schema asks for."""

import json
from collections.abc import Mapping, Sequence

import click
import msgspec

from lomi.cli.failing import fail
from lomi.contract.listing import Entry, catalogue


class Schema(msgspec.Struct, frozen=True):
    """The part of an input schema that says which fields there are. A field's `type` is one name, or some."""

    properties: dict[str, dict[str, object]]
    required: tuple[str, ...] = ()


def entry_of(tool: str) -> Entry | None:
    """The tool of that name."""
    return next((known for known in catalogue().tools if known.name == tool), None)


def near(tool: str) -> str | None:
    """What to do about a name that no tool has; None for one that some tool has."""
    from difflib import get_close_matches

    names = [known.name for known in catalogue().tools]
    if tool in names:
        return None
    likely = get_close_matches(tool, names, 1)
    return f"did you mean {likely[0]}? `lomi tools` lists them" if likely else "`lomi tools` lists them"


def schema_of(entry: Entry) -> Schema:
    """Its fields."""
    return msgspec.json.decode(entry.input_schema, type=Schema)


def arguments_of(entry: Entry | None, pairs: Sequence[str]) -> dict[str, object]:
    """The arguments of a call: text where the schema asks for text, JSON where it asks for anything else.

    `key:=JSON` is JSON whatever the schema says. Of a field that no schema knows, JSON is JSON and the rest is text:
    the broker says what is wrong with it.

    Raises:
        click.UsageError: a pair is none, or a key comes twice.
        CommandFailed: a value is not of the field's type.
    """
    properties = schema_of(entry).properties if entry is not None else {}
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        name = key.removesuffix(":")
        if not equals or not name:
            raise click.UsageError(f"{pair!r} is not key=value")
        if name in found:
            raise click.UsageError(f"{name} is given twice")
        hint = f"`lomi tools {entry.name}` shows its fields" if entry is not None else None
        if not _is_text(text):
            fail(f"{name}: the value is no UTF-8", hint)
        if key != name:
            found[name] = _exactly(name, text, "JSON", hint)
        elif name in properties:
            found[name] = _typed(name, text, properties[name], hint)
        else:
            found[name] = _guessed(text)
    return found


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _typed(name: str, text: str, field: Mapping[str, object], hint: str | None) -> object:
    kinds = field.get("type", "object")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "null" in kinds and text == "null":
        return None
    if "string" in kinds:
        return text
    return _exactly(name, text, f"JSON ({' or '.join(map(str, kinds))})", hint)


def _exactly(name: str, text: str, wanted: str, hint: str | None) -> object:
    """JSON as it was typed: a number of any length keeps its digits."""
    try:
        msgspec.json.decode(text)
        json.loads(text)
    except (ValueError, RecursionError):
        fail(f"{name} takes {wanted}; {text[:60]!r} is not JSON", hint)
    return msgspec.Raw(text.encode())


def _guessed(text: str) -> object:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text
    return msgspec.Raw(text.encode())
