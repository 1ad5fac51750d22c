"""Bounds of fields: declared once beside the type, shown in the schema, checked after decoding.

msgspec's own constraints would make an out-of-range value look like a wrong type. The contract wants wrong types as invalid
params and out-of-range values as envelope errors with a reason and a field, so bounds ride in `Meta` and are checked here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lomi.contract.codes import ErrorCode


class OutOfBounds(Exception):
    """Raised when a well-typed value is outside its bounds; `field` is a JSON pointer into the arguments."""

    def __init__(self, field: str, reason: str, *, code: ErrorCode | None = None, limit: int | None = None) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.code = code
        self.limit = limit


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One field's bounds: `least`/`most` for numbers, `shortest`/`longest` characters, `most_bytes` of UTF-8, items, pattern.

    `code` replaces RESOURCE_EXHAUSTED where the contract names another code for a malformed value.
    """

    least: float | None = None
    most: float | None = None
    shortest: int | None = None
    longest: int | None = None
    most_bytes: int | None = None
    pattern: str | None = None
    code: ErrorCode | None = None
    shown: bool = True


def _schema_of(bound: Bound) -> dict[str, Any]:
    pairs = {
        "minimum": bound.least,
        "maximum": bound.most,
        "minLength": bound.shortest,
        "maxLength": bound.longest,
        "pattern": f"^(?:{bound.pattern})$" if bound.pattern else None,
    }
    return {key: value for key, value in pairs.items() if value is not None} if bound.shown else {}


def _meta(bound: Bound) -> Meta:
    return Meta(extra_json_schema=_schema_of(bound), extra={"bound": bound})


def number(least: float, most: float) -> Meta:
    """A number from `least` to `most`, both included."""
    return _meta(Bound(least=least, most=most))


def text(
    longest: int | None = None,
    *,
    shortest: int | None = None,
    most_bytes: int | None = None,
    pattern: str | None = None,
    code: ErrorCode | None = None,
    shown: bool = True,
) -> Meta:
    """A text by characters, UTF-8 bytes and a pattern that the WHOLE text must match. `shown=False` keeps it out of the schema."""
    bound = Bound(longest=longest, shortest=shortest, most_bytes=most_bytes, pattern=pattern, code=code, shown=shown)
    return _meta(bound)


def items(most: int, *, least: int = 0) -> Meta:
    """An array of `least` to `most` items."""
    bound = Bound(shortest=least, longest=most)
    shown = {"minItems": least, "maxItems": most} if least else {"maxItems": most}
    return Meta(extra_json_schema=shown, extra={"bound": bound})


# Identity fields keep their bounds out of the input schema: they repeat in every tool, and the list is paid in every conversation.
Id = Annotated[str, text(128, shortest=1, pattern=r"[A-Za-z0-9_:.\-]+", shown=False)]
Hex64 = Annotated[str, text(pattern="[0-9a-f]{64}", shown=False)]
Hex32 = Annotated[str, text(pattern="[0-9a-f]{32}", shown=False)]
CommitHash = Annotated[str, text(pattern="[0-9a-f]{40}|[0-9a-f]{64}", shown=False)]
Uuid = Annotated[str, text(pattern="[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", shown=False)]
Decimal = Annotated[str, text(20, pattern="0|[1-9][0-9]*", shown=False)]
Epoch = Annotated[str, text(pattern="[0-9a-f]{40}", code=ErrorCode.RETRY_WINDOW_EXPIRED, shown=False)]
Sequence = Annotated[str, text(16, pattern="[1-9][0-9]{0,15}", shown=False)]
Cursor = Annotated[str, text(160, shortest=1, code=ErrorCode.CURSOR_EXPIRED, shown=False)]
RelativePath = Annotated[str, text(4096, shortest=1, shown=False)]
RelativeDirectory = Annotated[str, text(4096, shown=False)]
ArtifactBytes = Annotated[int, number(0, 536_870_912)]

Check = Callable[[Any, str], None]


def _length(value: Any) -> int:
    return len(value)


def _check_bound(bound: Bound, value: Any, field: str) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        if (bound.least is not None and not value >= bound.least) or (
            bound.most is not None and not value <= bound.most
        ):
            limit = bound.most if bound.most is not None and not value <= bound.most else bound.least
            raise OutOfBounds(field, "out_of_range", code=bound.code, limit=int(limit) if limit is not None else None)
        return
    if not isinstance(value, (str, tuple, list)):
        return
    if bound.longest is not None and _length(value) > bound.longest:
        raise OutOfBounds(field, "too_long", code=bound.code, limit=bound.longest)
    if bound.shortest is not None and _length(value) < bound.shortest:
        raise OutOfBounds(field, "malformed", code=bound.code, limit=bound.shortest)
    if isinstance(value, str):
        if bound.most_bytes is not None and len(value.encode()) > bound.most_bytes:
            raise OutOfBounds(field, "too_long", code=bound.code, limit=bound.most_bytes)
        if bound.pattern is not None and re.fullmatch(bound.pattern, value) is None:
            raise OutOfBounds(field, "malformed", code=bound.code)


def _bounds_in(annotation: Any) -> Iterator[Bound]:
    """Bounds that apply to the value itself: those of the annotation and of the members of a union with None."""
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        for meta in metas:
            if isinstance(meta, Meta) and meta.extra:
                yield meta.extra["bound"]
        yield from _bounds_in(inner)
    elif get_origin(annotation) not in (list, tuple):
        for member in get_args(annotation):
            yield from _bounds_in(member)


def _item_bounds(annotation: Any) -> tuple[Bound, ...]:
    if get_origin(annotation) is Annotated:
        return _item_bounds(get_args(annotation)[0])
    if get_origin(annotation) in (list, tuple):
        return tuple(_bounds_in(get_args(annotation)[0]))
    return tuple(bound for member in get_args(annotation) for bound in _item_bounds(member))


_plans: dict[type, tuple[tuple[str, str, tuple[Bound, ...], tuple[Bound, ...]], ...]] = {}


def _plan(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, tuple[Bound, ...], tuple[Bound, ...]], ...]:
    if kind not in _plans:
        hints = get_type_hints(kind, include_extras=True)
        _plans[kind] = tuple(
            (name, wire, tuple(_bounds_in(hints[name])), _item_bounds(hints[name]))
            for name, wire in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        )
    return _plans[kind]


def check_bounds(value: msgspec.Struct, pointer: str = "") -> None:
    """Check every declared bound of `value` and of the Structs inside it.

    Raises:
        OutOfBounds: the first field, in declaration order, that is outside its bounds.
    """
    for name, wire, bounds, item_bounds in _plan(type(value)):
        current = getattr(value, name)
        if current is None or current is msgspec.UNSET:
            continue
        field = f"{pointer}/{wire}"
        for bound in bounds:
            _check_bound(bound, current, field)
        if isinstance(current, msgspec.Struct):
            check_bounds(current, field)
        elif isinstance(current, (tuple, list)):
            for index, item in enumerate(current):
                if isinstance(item, msgspec.Struct):
                    check_bounds(item, f"{field}/{index}")
                for bound in item_bounds:
                    _check_bound(bound, item, f"{field}/{index}")
