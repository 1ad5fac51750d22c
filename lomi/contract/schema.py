"""JSON Schemas of a tool, derived from its models: closed at every level, roots inlined, no references.

What hosts hand to a model is paid for in every conversation, so the input schema holds what a model needs and nothing
else: identity fields carry no bounds, patterns are left out, descriptions are there only where a name does not say
enough.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import inspect

from lomi.contract.codes import Details, ErrorCode
from lomi.contract.definition import Definition
from lomi.contract.model import Data, Failure, Model, Observation, Receipt, Result
from lomi.contract.tools import EVERY_RESULT

Schema = dict[str, Any]

_SCALARS: dict[type[inspect.Type], str] = {
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
}


class _Error(Model, frozen=True, kw_only=True, omit_defaults=True):
    """The error form of the envelope."""

    control_api_version: Literal["1.0"]
    status: Literal["error"]
    code: ErrorCode
    message: str
    reason: str | None = None
    field: str | None = None
    hint: str | None = None
    details: Details | None = None


_OPAQUE = frozenset({Details})
"""Closed models that outputs name only as objects: their fields would repeat twice in every tool."""


class _Writer:
    """Writes schemas for one direction.

    Outputs name every field that is always there as required, carry no descriptions or defaults, and show arrays of
    objects as opaque: the list of tools is held to a size that every client bears.
    """

    def __init__(self, *, output: bool) -> None:
        self.output = output

    def of(self, kind: inspect.Type) -> Schema:
        match kind:
            case inspect.Metadata():
                shown = dict(kind.extra_json_schema or {})
                if self.output:
                    shown.pop("description", None)
                return {**self.of(kind.type), **shown}
            case inspect.LiteralType():
                return self._choice(kind.values)
            case inspect.EnumType():
                return self._choice(tuple(member.value for member in kind.cls))
            case inspect.UnionType():
                return self._union(kind)
            case inspect.StructType():
                return self.struct(kind)
            case inspect.VarTupleType():
                items = {"type": "object"} if self.output and _holds_struct(kind.item_type) else self.of(kind.item_type)
                return {"type": "array", "items": items}
            case inspect.TupleType():
                size = len(kind.item_types)
                return {"type": "array", "items": self.of(kind.item_types[0]), "minItems": size, "maxItems": size}
            case inspect.RawType():
                return {}
            case inspect.DictType():
                return {"type": "object", "additionalProperties": self.of(kind.value_type)}
            case _:
                return {"type": _SCALARS[type(kind)]}

    @staticmethod
    def _choice(values: tuple[Any, ...]) -> Schema:
        if len(values) == 1:
            return {"const": values[0]}
        return {"type": "string" if isinstance(values[0], str) else "integer", "enum": list(values)}

    def _union(self, kind: inspect.UnionType) -> Schema:
        schemas = [self.of(member) for member in kind.types]
        if all("type" in schema and schema["type"] != "object" for schema in schemas):
            return self._scalars(schemas)
        null = {"type": "null"}
        others = [schema for schema in schemas if schema != null]
        if len(others) == 1 and null in schemas:
            return _nullable(others[0])
        return {"oneOf": schemas}

    @staticmethod
    def _scalars(schemas: list[Schema]) -> Schema:
        """One schema for a union of scalars: each keyword applies to its own type only."""
        joined: Schema = {}
        for schema in schemas:
            joined.update(schema)
        joined["type"] = list(dict.fromkeys(schema["type"] for schema in schemas))
        if "enum" in joined and "null" in joined["type"]:
            joined["enum"] = [*joined["enum"], None]
        return joined

    def struct(self, kind: inspect.StructType) -> Schema:
        if self.output and kind.cls in _OPAQUE:
            return {"type": "object"}
        properties: Schema = {}
        required: list[str] = []
        if kind.tag_field is not None:
            properties[kind.tag_field] = {"const": kind.tag}
            required.append(kind.tag_field)
        encodes_defaults = not kind.cls.__struct_config__.omit_defaults
        for field in kind.fields:
            schema = self.of(field.type if not self.output or encodes_defaults else _without_null(field.type))
            if not self.output and field.default not in (msgspec.NODEFAULT, None, ()):
                schema["default"] = field.default
            properties[field.encode_name] = schema
            if field.required or (self.output and encodes_defaults and not _may_be_unset(kind, field)):
                required.append(field.encode_name)
        return _closed(properties, required)


def _without_null(kind: inspect.Type) -> inspect.Type:
    """The type of a field that is left out instead of null."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    members = tuple(member for member in kind.types if not isinstance(member, inspect.NoneType))
    return members[0] if len(members) == 1 else inspect.UnionType(members)


def _holds_struct(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_holds_struct(member) for member in kind.types)
    return isinstance(kind, inspect.StructType)


def _nullable(schema: Schema) -> Schema:
    if "const" in schema:
        return {"enum": [schema["const"], None]}
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"oneOf": [*schema.get("oneOf", [schema]), {"type": "null"}]}


def _may_be_unset(kind: inspect.StructType, field: inspect.Field) -> bool:
    """`msgspec.inspect` drops UNSET from types and defaults, so ask the class."""
    defaults = dict(zip(kind.cls.__struct_fields__[::-1], kind.cls.__struct_defaults__[::-1], strict=False))
    return defaults.get(field.name) is msgspec.UNSET


def _closed(properties: Schema, required: Iterable[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if names := list(required):
        schema["required"] = names
    return {**schema, "additionalProperties": False}


def _struct_type(kind: type[msgspec.Struct]) -> inspect.StructType:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found


def _input(definition: Definition) -> Schema:
    return _Writer(output=False).struct(_struct_type(definition.input))


def _output(kind: type[msgspec.Struct]) -> Schema:
    return _Writer(output=True).struct(_struct_type(kind))


def _receipt(results: Iterable[Schema]) -> Schema:
    schema = _output(Receipt)
    schema["properties"]["result"] = {"oneOf": [*results, _output(Failure), {"type": "null"}]}
    schema["properties"]["observation"] = _output(Observation)
    return schema


def _data(definition: Definition) -> Schema:
    kinds = definition.results
    if Receipt in kinds:
        # Any tool's result: its kind is named here, its fields in the schema of its own tool.
        named = {"enum": [_struct_type(kind).tag for kind in EVERY_RESULT]}
        return _receipt([{"type": "object", "properties": {"kind": named}, "required": ["kind"]}])
    results = [_output(kind) for kind in kinds if issubclass(kind, Result)]
    if results:
        return _receipt(results)
    schemas = [_output(kind) for kind in kinds if issubclass(kind, Data)]
    return schemas[0] if len(schemas) == 1 else {"oneOf": schemas}


def input_schema(definition: Definition) -> bytes:
    """The arguments of a tool: a closed object, as compact JSON."""
    return msgspec.json.encode(_input(definition))


def output_schema(definition: Definition) -> bytes:
    """The reply envelope, narrowed to a tool's data kinds and for an operation to its result kinds, as compact JSON."""
    error = _output(_Error)
    ok = _closed(
        {
            "controlApiVersion": error["properties"]["controlApiVersion"],
            "status": {"const": "ok"},
            "data": _data(definition),
        },
        ("controlApiVersion", "status", "data"),
    )
    return msgspec.json.encode({"type": "object", "oneOf": [ok, error]})
