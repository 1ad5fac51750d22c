"""Bounds of fields: declared once beside the type, shown in the schema, checked after decoding.

msgspec's own constraints would make an out-of-range value look like a wrong type. The contract wants wrong types as
invalid params and out-of-range values as envelope errors with a reason and a field, so bounds ride in `Meta` and are
checked here.
"""

import re
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lomi.contract.codes import ErrorCode


class OutOfBounds(Exception):  # noqa: N818  named for what is wrong with the value
    """Raised when a well-typed value is outside its bounds; `field` is a JSON pointer into the arguments.

    `code` replaces the code of the reason where the contract names another one for this field.
    """

    def __init__(self, field: str, reason: str, *, code: ErrorCode | None = None, limit: int | None = None) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.code = code
        self.limit = limit


class InvalidParams(Exception):  # noqa: N818  an answer of the protocol, not a fault
    """Raised for unknown fields, wrong types and malformed JSON: JSON-RPC invalid params.

    The message is one line and safe to show.
    """


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One field's bounds.

    `least` and `most` are for numbers, and for decimals in text (`decimal`); `shortest` and `longest` count characters
    or items; `most_bytes` is UTF-8; the pattern is for the whole text; `components` are those of a project path.

    `code` replaces RESOURCE_EXHAUSTED where the contract names another code for a malformed value.
    """

    least: float | None = None
    most: float | None = None
    decimal: bool = False
    shortest: int | None = None
    longest: int | None = None
    most_bytes: int | None = None
    pattern: str | None = None
    components: int | None = None
    code: ErrorCode | None = None


def _meta(bound: Bound, **shown: float | None) -> Meta:
    schema = {key: value for key, value in shown.items() if value is not None}
    return Meta(extra_json_schema=schema or None, extra={"bound": bound})


def number(least: float, most: float, *, shown: bool = True) -> Meta:
    """A number from `least` to `most`, both included. `shown=False` keeps them out of the schema."""
    bound = Bound(least=least, most=most)
    return _meta(bound, minimum=least, maximum=most) if shown else _meta(bound)


def text(
    longest: int | None = None,
    *,
    shortest: int | None = None,
    most_bytes: int | None = None,
    pattern: str | None = None,
    code: ErrorCode | None = None,
    shown: bool = True,
) -> Meta:
    """A text by characters, UTF-8 bytes and a pattern that the WHOLE text must match.

    Patterns are never shown: dialects differ, and a list of tools is paid for in every conversation. `shown=False`
    keeps the lengths out of the schema too.
    """
    bound = Bound(longest=longest, shortest=shortest, most_bytes=most_bytes, pattern=pattern, code=code)
    if not shown:
        return _meta(bound)
    return _meta(bound, minLength=shortest, maxLength=longest if longest is not None else most_bytes)


def decimal(most: int, *, least: int = 0, code: ErrorCode | None = None) -> Meta:
    """A canonical decimal in text, from `least` to `most`."""
    digits = len(str(most))
    return _meta(Bound(decimal=True, least=least, most=most, longest=digits, pattern="0|[1-9][0-9]*", code=code))


def project_path(longest: int = 4096, *, shortest: int = 0, components: int = 128) -> Meta:
    """A path inside the project: relative, no empty, `.` or `..` part, no backslash, no NUL; else `path_refused`."""
    return _meta(Bound(longest=longest, shortest=shortest, components=components))


def items(most: int, *, least: int = 0) -> Meta:
    """An array of `least` to `most` items."""
    return _meta(Bound(shortest=least, longest=most), minItems=least or None, maxItems=most)


def says(meaning: str) -> Meta:
    """One short sentence for a model, shown in the schema where the name does not say enough."""
    return Meta(description=meaning)


NO_CONTROL = r"[^\x00-\x1f\x7f-\x9f]*"
NO_NUL = r"[^\x00]*"
LINE = r"(?=.*\S)[^\x00-\x1f\x7f-\x9f]*"
"""One line with something to see on it."""

# Identity fields keep their bounds out of the input schema: they repeat in every tool, and the list is paid in every
# conversation.
Id = Annotated[str, text(128, shortest=1, pattern=r"[A-Za-z0-9_:.\-]+", shown=False)]
Hex64 = Annotated[str, text(pattern="[0-9a-f]{64}", shown=False)]
Hex32 = Annotated[str, text(pattern="[0-9a-f]{32}", shown=False)]
CommitHash = Annotated[str, text(pattern="[0-9a-f]{40}|[0-9a-f]{64}", shown=False)]
Uuid = Annotated[str, text(pattern="[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", shown=False)]
Decimal = Annotated[str, decimal(2**64 - 1)]
SafeDecimal = Annotated[str, decimal(2**53 - 2)]
"""A revision that JavaScript can count: under 2^53 - 1."""
Epoch = Annotated[str, text(pattern="[0-9a-f]{40}", code=ErrorCode.RETRY_WINDOW_EXPIRED, shown=False)]
Sequence = Annotated[str, decimal(2**53 - 1, least=1)]
RelativePath = Annotated[str, project_path(shortest=1)]
RelativeDirectory = Annotated[str, project_path()]
FileName = Annotated[str, text(255, shortest=1, pattern=r"(?!\.\.?$)[^/\\\x00-\x1f\x7f-\x9f]+", shown=False)]
"""The name of one entry: no separator, no control character, not `.` or `..`."""
ArtifactBytes = Annotated[int, number(0, 536_870_912)]


def page_cursor(longest: int) -> Meta:
    """An opaque cursor; anything else than what a page gave is CURSOR_EXPIRED."""
    return text(longest, shortest=1, code=ErrorCode.CURSOR_EXPIRED, shown=False)


Cursor = Annotated[str, page_cursor(128)]

_Problem = tuple[str, int | None]
"""What is wrong with a value: the reason, and the limit that it is over."""
_Check = Callable[[Any], _Problem | None]


def _out_of_range(bound: Bound, value: float) -> _Problem | None:
    # `not >=` and not `<`, so that a NaN is refused too.
    if bound.least is not None and not value >= bound.least:
        return "out_of_range", int(bound.least)
    if bound.most is not None and not value <= bound.most:
        return "out_of_range", int(bound.most)
    return None


def _number_check(bound: Bound) -> _Check:
    def check(value: Any) -> _Problem | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        return _out_of_range(bound, value)

    return check


def _bad_path(value: str, most: int) -> bool:
    parts = value.split("/") if value else []
    return len(parts) > most or "\\" in value or "\0" in value or any(part in ("", ".", "..") for part in parts)


def _bad_size(bound: Bound, size: int) -> _Problem | None:
    if bound.longest is not None and size > bound.longest:
        return "too_long", bound.longest
    if bound.shortest is not None and size < bound.shortest:
        return "malformed", bound.shortest
    return None


def _sized_check(bound: Bound) -> _Check:
    """The check of a text or of an array: one comparison and one match where all is well, the rest only where not."""
    shortest, longest = bound.shortest or 0, bound.longest if bound.longest is not None else sys.maxsize
    matches = re.compile(bound.pattern, re.DOTALL).fullmatch if bound.pattern is not None else None
    plain = not bound.decimal and bound.components is None

    def check(value: Any) -> _Problem | None:
        if not isinstance(value, (str, tuple)):
            return None
        if not shortest <= len(value) <= longest:
            return _bad_size(bound, len(value))
        if isinstance(value, tuple):
            return None
        if bound.most_bytes is not None and len(value) * 4 > bound.most_bytes < len(value.encode()):
            return "too_long", bound.most_bytes
        if matches is not None and matches(value) is None:
            return "malformed", None
        return None if plain else further(value)

    def further(value: str) -> _Problem | None:
        if bound.decimal:
            return _out_of_range(bound, int(value))
        if bound.components is not None and _bad_path(value, bound.components):
            return "path_refused", None
        return None

    return check


def _check_of(bound: Bound) -> _Check:
    if (bound.least is not None or bound.most is not None) and not bound.decimal:
        return _number_check(bound)
    return _sized_check(bound)


def _bounds_in(annotation: Any) -> Iterator[Bound]:
    """Bounds that apply to the value itself: those of the annotation and of the members of a union with None."""
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        for meta in metas:
            if isinstance(meta, Meta) and meta.extra:
                yield meta.extra["bound"]
        yield from _bounds_in(inner)
    elif get_origin(annotation) is not tuple:
        for member in get_args(annotation):
            yield from _bounds_in(member)


def _item_bounds(annotation: Any) -> tuple[Bound, ...]:
    if get_origin(annotation) is Annotated:
        return _item_bounds(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return tuple(_bounds_in(get_args(annotation)[0]))
    return tuple(bound for member in get_args(annotation) for bound in _item_bounds(member))


def _holds_struct(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, msgspec.Struct)
    return any(_holds_struct(member) for member in get_args(annotation))


class FieldBounds(NamedTuple):
    """What is declared for one field: its name in Python and on the wire, its own bounds, those of its items."""

    name: str
    wire: str
    own: tuple[Bound, ...]
    of_items: tuple[Bound, ...]
    nested: bool


def declared_bounds(kind: type[msgspec.Struct]) -> tuple[FieldBounds, ...]:
    """The bounds of each field of `kind`, in declaration order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        FieldBounds(name, wire, tuple(_bounds_in(hints[name])), _item_bounds(hints[name]), _holds_struct(hints[name]))
        for name, wire in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    )


_CodedCheck = tuple[_Check, ErrorCode | None]


class _FieldPlan(NamedTuple):
    name: str
    pointer: str
    checks: tuple[_CodedCheck, ...]
    item_checks: tuple[_CodedCheck, ...]
    nested: bool


_plans: dict[type, tuple[_FieldPlan, ...]] = {}


def _coded(bounds: tuple[Bound, ...]) -> tuple[_CodedCheck, ...]:
    return tuple((_check_of(bound), bound.code) for bound in bounds)


def _plan(kind: type[msgspec.Struct]) -> tuple[_FieldPlan, ...]:
    plan = tuple(
        _FieldPlan(field.name, f"/{field.wire}", _coded(field.own), _coded(field.of_items), field.nested)
        for field in declared_bounds(kind)
        if field.own or field.of_items or field.nested
    )
    _plans[kind] = plan
    return plan


def _refusal(field: str, problem: _Problem, code: ErrorCode | None) -> OutOfBounds:
    reason, limit = problem
    return OutOfBounds(field, reason, code=ErrorCode.SCOPE_DENIED if reason == "path_refused" else code, limit=limit)


def _check_items(items_: tuple[Any, ...], plan: _FieldPlan, field: str) -> None:
    for index, item in enumerate(items_):
        for check, code in plan.item_checks:
            if (problem := check(item)) is not None:
                raise _refusal(f"{field}/{index}", problem, code)
        if plan.nested and isinstance(item, msgspec.Struct):
            check_bounds(item, f"{field}/{index}")


def check_bounds(value: msgspec.Struct, pointer: str = "") -> None:
    """Check every declared bound of `value` and of the Structs inside it.

    Raises:
        OutOfBounds: the first field, in declaration order, that is outside its bounds.
    """
    known = _plans.get(type(value))
    for plan in _plan(type(value)) if known is None else known:
        current = getattr(value, plan.name)
        if current is None:
            continue
        for check, code in plan.checks:
            if (problem := check(current)) is not None:
                raise _refusal(pointer + plan.pointer, problem, code)
        if isinstance(current, tuple):
            _check_items(current, plan, pointer + plan.pointer)
        elif plan.nested and isinstance(current, msgspec.Struct):
            check_bounds(current, pointer + plan.pointer)
