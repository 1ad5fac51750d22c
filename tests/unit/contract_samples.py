"""Sample values made from the contract's own models: arguments of every tool in every form, and data of every kind."""

import itertools
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from lomi.contract.android import Place
from lomi.contract.bounds import Bound, OutOfBounds, check_bounds, declared_bounds
from lomi.contract.definition import Definition
from lomi.contract.tools import ALL

TEXTS = (
    "a",
    "1",
    "0" * 40,
    "0" * 64,
    "0" * 32,
    "00000000-0000-0000-0000-000000000000",
    "/a",
    "refs/heads/main",
    "com.example",
    "appearance.fontSize",
)
FORMS: dict[type, tuple[dict[str, Any], ...]] = {
    Place: ({"snapshotId": "s1", "ref": "1"}, {"space": "hardware_display", "x": 1, "y": 2})
}
UUID = TEXTS[5]
TOP: dict[str, tuple[dict[str, Any], ...]] = {
    "lomi_operation_get": (
        {"operationId": "o1"},
        {"retryEpoch": "0" * 40, "requestKey": "k1", "tool": "lomi_android_stop", "projectId": "pr1"},
    ),
    "lomi_panel_control": (
        {"terminalSessionId": "t1", "action": "claim"},
        {"deviceId": UUID, "generation": UUID, "expectedRevision": "1", "action": "release"},
    ),
    "lomi_workspace_update": ({"name": "a"}, {"action": "close"}, {"action": "select"}),
    "lomi_artifact_import": (
        {"kind": "android_apk", "relativePath": "a.apk", "expectedByteLength": 4},
        {"kind": "file", "expectedByteLength": 0},
    ),
    "lomi_terminal_read": ({}, {"mode": "command", "operationId": "o1"}, {"mode": "screen"}, {"mode": "raw"}),
    "lomi_git_diff": ({}, {"comparison": "commit", "commit": "0" * 40}),
    "lomi_git_mutate": (
        {"operation": "stage", "paths": ["a"]},
        {"operation": "commit", "paths": ["a"], "message": "m"},
        {"operation": "fetch", "paths": [], "remote": "origin", "reference": "refs/heads/main"},
        {
            "operation": "push",
            "paths": [],
            "remote": "origin",
            "reference": "refs/heads/main",
            "sourceCommit": "0" * 40,
        },
        {
            "operation": "pull",
            "paths": [],
            "remote": "origin",
            "reference": "refs/heads/main",
            "sourceCommit": "0" * 40,
            "expectedRemoteCommit": "0" * 40,
            "pullMode": "rebase",
        },
    ),
}
"""Forms of the tools whose fields go together by a rule, laid over the sample of what is required."""


def within(annotation: Any, value: Any) -> bool:
    """Whether `value` is inside the bounds of an annotation."""
    probe = msgspec.defstruct("Probe", [("value", annotation)], frozen=True)
    try:
        check_bounds(probe(value))
    except OutOfBounds:
        return False
    return True


def is_struct(kind: Any) -> bool:
    """Whether an annotation is a model."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def struct_samples(kind: type[msgspec.Struct]) -> Iterator[dict[str, Any]]:
    """The required fields of a model, in as many samples as its field with the most forms needs."""
    if kind in FORMS:
        yield from FORMS[kind]
        return
    hints = get_type_hints(kind, include_extras=True)
    config = kind.__struct_config__
    tag = {config.tag_field: config.tag} if config.tag_field else {}
    wires = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    defaults = dict(zip(kind.__struct_fields__[::-1], kind.__struct_defaults__[::-1], strict=False))
    optional = {name for name, default in defaults.items() if default is not msgspec.NODEFAULT}
    needed = [name for name in kind.__struct_fields__ if name not in optional]
    forms = {name: list(samples(hints[name])) for name in needed}
    longest = max((len(values) for values in forms.values()), default=1)
    for index in range(longest):
        yield tag | {wires[name]: values[index % len(values)] for name, values in forms.items()}


def samples(annotation: Any) -> Iterator[Any]:
    """Valid JSON values of an annotation; at least one, and each form of a union of models."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from raw_samples(get_args(annotation)[0], annotation)
    else:
        yield from raw_samples(annotation, annotation)


def raw_samples(inner: Any, annotation: Any) -> Iterator[Any]:
    """Samples of the type under an annotation, held to the annotation's bounds."""
    origin = get_origin(inner)
    if origin in (Union, UnionType):
        members = [member for member in get_args(inner) if member is not msgspec.UnsetType]
        yield from itertools.chain.from_iterable(samples(member) for member in members if member is not NoneType)
    elif origin is Annotated:
        yield from samples(inner)
    elif origin is Literal:
        yield from get_args(inner)[:1]
    elif origin is tuple:
        arguments = get_args(inner)
        if arguments[-1] is Ellipsis:
            yield [next(samples(arguments[0]))]
        else:
            yield [next(samples(member)) for member in arguments]
    elif origin is dict:
        yield {"name": next(samples(get_args(inner)[1]))}
    elif is_struct(inner):
        yield from struct_samples(inner)
    elif inner is bool:
        yield False
    elif inner in (int, float):
        yield next(inner(value) for value in (1, 2, 512, 4, 64, 1024, 16_384) if within(annotation, value))
    elif inner is str:
        yield next(value for value in TEXTS if within(annotation, value))
    else:
        yield next(iter(inner)).value


def argument_samples(definition: Definition) -> list[dict[str, Any]]:
    """Valid arguments of a tool: each form of each union, each form of its rule."""
    made = []
    for base in struct_samples(definition.input):
        made.extend(base | form for form in TOP.get(definition.name, ({},)))
    return made


def every_argument_sample() -> Iterator[tuple[Definition, dict[str, Any]]]:
    """All tools with all samples."""
    for definition in ALL:
        for sample in argument_samples(definition):
            yield definition, sample


def chosen_model(annotation: Any, value: Any) -> type[msgspec.Struct] | None:
    """The model of a union that a sample belongs to, by its tag."""
    if is_struct(annotation):
        config = annotation.__struct_config__
        fits = config.tag_field is None or value.get(config.tag_field) == config.tag
        return annotation if fits else None
    found = (chosen_model(member, value) for member in get_args(annotation))
    return next((model for model in found if model is not None), None)


Path = tuple[str | int, ...]


def bounded_places(
    kind: type[msgspec.Struct], sample: dict[str, Any], path: Path = ()
) -> Iterator[tuple[Path, Any, tuple[Bound, ...]]]:
    """Every field of a sample (and every optional field that it leaves out) that has bounds: path, type, bounds."""
    hints = get_type_hints(kind, include_extras=True)
    for field in declared_bounds(kind):
        here = (*path, field.wire)
        if field.own:
            yield here, hints[field.name], field.own
        value = sample.get(field.wire)
        inner = [(here, value)] if isinstance(value, dict) else []
        if isinstance(value, list):
            inner = [((*here, index), item) for index, item in enumerate(value)]
            if field.of_items and value:
                yield (*here, 0), hints[field.name], field.of_items
        for place, item in inner:
            model = chosen_model(hints[field.name], item) if isinstance(item, dict) and field.nested else None
            if model is not None:
                yield from bounded_places(model, item, place)


def replaced(sample: Any, path: Path, value: Any) -> Any:
    """A copy of a sample with one place changed."""
    if not path:
        return value
    head, *rest = path
    copy = dict(sample) if isinstance(sample, dict) else list(sample)
    inner = copy[head] if not isinstance(copy, dict) else copy.get(str(head))
    copy[head] = replaced(inner, tuple(rest), value)  # type: ignore[index]
    return copy


def pointer(path: Path) -> str:
    """The JSON pointer of a path."""
    return "".join(f"/{part}" for part in path)
