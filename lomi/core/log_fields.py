"""Fields of log lines: bound once where a piece of work begins, carried by every line of it.

Only names of the closed list are written. Their values are ids, codes and numbers: never typed text, tokens, labels or
paths. What does not look like an id is withheld.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

FIELDS = (
    "session",
    "tool",
    "operation",
    "generation",
    "lease",
    "resource",
    "state",
    "effect",
    "code",
    "reason",
    "by",
    "count",
    "peer",
    "ms",
)
WITHHELD = "(withheld)"
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
Value = str | int | float | bool | None

_bound: ContextVar[Mapping[str, Value]] = ContextVar("lomi_log_fields", default=MappingProxyType({}))


@contextmanager
def bound(**values: Value) -> Iterator[None]:
    """Give these fields to every log line of this context, and of the tasks begun in it."""
    token = _bound.set({**_bound.get(), **values})
    try:
        yield
    finally:
        _bound.reset(token)


def bound_now() -> Mapping[str, Value]:
    """The fields of the present context."""
    return _bound.get()


def fields(**values: Value) -> dict[str, object]:
    """Fields of one line, as `extra` of a logging call."""
    return {"lomi_fields": values}


def shown(values: Mapping[str, Value]) -> dict[str, Value]:
    """What may be written of them: known names in their order, plain values."""
    return {name: _plain(values[name]) for name in FIELDS if values.get(name) is not None}


def _plain(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return value if _PLAIN.fullmatch(value) else WITHHELD
