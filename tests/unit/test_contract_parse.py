"""Parsing arguments: every bound at its edges, every kind of malformed input, and agreement with the schemas."""

import json
from functools import cache
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from contract_samples import (
    Path,
    argument_samples,
    bounded_places,
    every_argument_sample,
    pointer,
    replaced,
    samples,
    struct_samples,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lomi.contract.android import input_wait_ms
from lomi.contract.bounds import Bound, InvalidParams, OutOfBounds
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import Definition
from lomi.contract.limits import ARGUMENT_BYTES
from lomi.contract.model import Failure, Receipt, Result
from lomi.contract.parse import parse
from lomi.contract.schema import input_schema, output_schema
from lomi.contract.scopes import SCOPES
from lomi.contract.tools import ALL, BY_NAME, REASONS

TOOLS = pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
NARROWED = {("lomi_artifact_import", "/expectedByteLength")}
"""Bounds that a rule makes narrower for some forms."""
OWN_REASONS = {"out_of_range", "too_long", "malformed", "path_refused"}


@cache
def validator(schema: bytes) -> Any:
    return jsonschema_rs.Draft202012Validator(json.loads(schema))


def refusal(tool: Definition, arguments: object) -> OutOfBounds | None:
    """What is out of bounds, or None; anything else than that fails the test."""
    try:
        parse(tool, json.dumps(arguments).encode())
    except OutOfBounds as outside:
        return outside
    return None


@TOOLS
def test_samples_are_accepted_and_valid(tool: Definition) -> None:
    """Every form of the arguments parses and validates against the tool's input schema; scopes can be asked of it."""
    for sample in argument_samples(tool):
        parsed = parse(tool, json.dumps(sample).encode())
        validator(input_schema(tool)).validate(sample)
        assert set(tool.more_scopes(parsed)) | set(tool.either_scopes(parsed)) <= set(SCOPES)
        assert tool.lacking_scopes(parsed, SCOPES) == ()
        assert tool.lacking_scopes(parsed, ()) == () if tool.unpaired else tool.lacking_scopes(parsed, ())


def number_edges(bound: Bound, *, whole: bool) -> tuple[list[Any], list[Any]]:
    """Values inside and outside a number's bounds."""
    least, most = bound.least, bound.most
    assert least is not None
    assert most is not None
    tried = [least, least - 1, most, most + 1, 0, -1, 2**53, 2**63, 2**64, 10**300]
    if not whole:
        tried = [float(value) for value in tried]
    inside = [value for value in tried if least <= value <= most]
    return inside, [value for value in tried if value not in inside]


def text_edges(bound: Bound) -> tuple[list[str], list[str]]:
    """Texts inside and outside a text's bounds, as far as its pattern lets them be known."""
    inside: list[str] = []
    outside: list[str] = []
    if bound.decimal:
        assert bound.most is not None
        inside, outside = (
            [str(int(bound.most))],
            [str(int(bound.most) + 1), "-1", "01", "1.0", "", "9" * 400, "1\n", " 1"],
        )
        (inside if bound.least == 0 else outside).append("0")
        return inside, outside
    if bound.longest is not None:
        outside.append("a" * (bound.longest + 1))
        if bound.components is not None:
            inside.append("a" * bound.longest)
            outside += ["../a", "a/../b", "/a", "a//b", "a\\b", "a\0", "/".join("a" * 129)]
        elif bound.pattern is None:
            inside.append("a" * bound.longest)
    if bound.most_bytes is not None and bound.pattern in (None, r"[^\x00]*"):
        inside.append("é" * (bound.most_bytes // 2))
        outside.append("é" * (bound.most_bytes // 2 + 1))
    if bound.shortest:
        outside.append("")
    if bound.pattern is not None and "\\x00" in bound.pattern:
        outside.append("a\0b")
    return inside, outside


def edges(annotation: Any, bound: Bound, sample: Any) -> tuple[list[Any], list[Any]]:
    """Values inside and outside one bound, for the kind of value that the place takes."""
    if (bound.least is not None or bound.most is not None) and not bound.decimal:
        return number_edges(bound, whole="int" in str(annotation) and "float" not in str(annotation))
    if isinstance(sample, list):
        assert bound.longest is not None
        few: list[list[Any]] = [[]] if bound.shortest else []
        one = sample[:1] or next(samples(annotation))
        return [], [*few, one * (bound.longest + 1)]
    return text_edges(bound)


@TOOLS
def test_every_bound_holds_at_its_edges(tool: Definition) -> None:
    """At the limit, limit+1, 0, negative, huge: the limit works, the others are refused by field, nothing breaks."""
    for sample in argument_samples(tool):
        for path, annotation, bounds in bounded_places(tool.input, sample):
            for bound in bounds:
                check_edges(tool, sample, path, annotation, bound)


def check_edges(tool: Definition, sample: dict[str, Any], path: Path, annotation: Any, bound: Bound) -> None:
    current: Any = sample
    for part in path:
        current = current.get(part) if isinstance(current, dict) else current[part]
    if current is None:
        current = next(samples(annotation))
    if isinstance(current, (str, bool)) and not bound.decimal and (bound.least is not None or bound.most is not None):
        return
    inside, outside = edges(annotation, bound, current)
    for value in inside:
        found = refusal(tool, replaced(sample, path, value))
        narrowed = (tool.name, pointer(path)) in NARROWED
        assert narrowed or found is None or found.field != pointer(path) or found.reason not in OWN_REASONS, (
            path,
            value,
        )
    for value in outside:
        found = refusal(tool, replaced(sample, path, value))
        assert found is not None, (path, value)
        assert found.reason in REASONS
        assert len(str(value)) * 4 > ARGUMENT_BYTES or pointer(path).startswith(found.field)


@TOOLS
def test_unknown_fields_and_wrong_types_are_invalid_params(tool: Definition) -> None:
    """An unknown field at any level and a value of another type are protocol errors, never envelope errors."""
    for sample in argument_samples(tool):
        for field, value in (*sample.items(), ("unknownField", 1)):
            for wrong in ({"odd": 1}, [["odd"]], 1.5 if isinstance(value, str) else "text"):
                changed = {**sample, field: wrong}
                if validator(input_schema(tool)).is_valid(changed):
                    continue
                with pytest.raises(InvalidParams):
                    parse(tool, json.dumps(changed).encode())
            if isinstance(value, dict):
                with pytest.raises(InvalidParams):
                    parse(tool, json.dumps({**sample, field: {**value, "unknownField": 1}}).encode())


STATUS = BY_NAME["lomi_status"]
CREATE = BY_NAME["lomi_workspace_create"]
CREATE_ARGUMENTS = b'{"workspaceId":"w1","retryEpoch":"%s","requestKey":"k","expectedRevision":"1","name":%%s}' % (
    b"0" * 40
)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{} {}",
        b"{",
        b'{"waitMs":NaN}',
        b'{"waitMs":Infinity}',
        b'{"waitMs":1e999}',
        b'{"waitMs":1.0}',
        b'{"waitMs":true}',
        b'{"waitMs":"1"}',
        b'{"waitMs":1,}',
        b"\xef\xbb\xbf{}",
        b"[" * 50_000,
        b'{"a":' * 10_000,
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_malformed_json_is_invalid_params(raw: bytes) -> None:
    """What is not one strict JSON object of the right types never gets further."""
    with pytest.raises(InvalidParams) as refused:
        parse(STATUS, raw)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [rb'"\ud800"', rb'"\udc00"', rb'"\ud800\ud800"', rb'"\ud800a"', b'"\xed\xa0\x80"', b'"\xff"', b'"a\x01"'],
    ids=repr,
)
def test_lone_surrogates_and_bad_utf8_are_refused(text: bytes) -> None:
    """Text that is no Unicode text never reaches a tool."""
    with pytest.raises(InvalidParams):
        parse(CREATE, CREATE_ARGUMENTS % text)


def test_astral_text_arrives() -> None:
    """A pair of surrogates is one character, and text may hold quotes and colons."""
    assert parse(CREATE, CREATE_ARGUMENTS % rb'"\ud83d\ude42 \" : {\"name\": 1}"').name == '🙂 " : {"name": 1}'  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "raw",
    [
        CREATE_ARGUMENTS[:-1] % b'"a","name":"b"' + b"}",
        CREATE_ARGUMENTS[:-1] % b'"a","na\\u006de":"b"' + b"}",
        CREATE_ARGUMENTS[:-1] % b'"a" , "name" \n:"a"' + b"}",
        CREATE_ARGUMENTS[:-1] % b'"\\":\\":","name":"a"' + b"}",
    ],
    ids=["plain", "escaped", "spaced", "hidden"],
)
def test_duplicate_keys_are_refused(raw: bytes) -> None:
    """An object that names a key twice is refused, however the key is written."""
    with pytest.raises(InvalidParams, match="twice"):
        parse(CREATE, raw)


def test_duplicate_keys_are_refused_deep_down() -> None:
    """Duplicates are found at every level."""
    sample = json.dumps(argument_samples(BY_NAME["lomi_android_input"])[0])
    twice = sample.replace('"ref": "1"', '"ref": "1", "ref": "1"')
    assert twice != sample
    with pytest.raises(InvalidParams, match="twice"):
        parse(BY_NAME["lomi_android_input"], twice.encode())


def test_arguments_are_at_most_64_kib() -> None:
    """64 KiB pass, one byte more is refused before parsing."""
    assert parse(STATUS, b"{}".ljust(ARGUMENT_BYTES)) == parse(STATUS, b"{}")
    with pytest.raises(OutOfBounds) as refused:
        parse(STATUS, b"{}".ljust(ARGUMENT_BYTES + 1))
    assert refused.value.reason == "arguments_too_large"


FORMLESS = [
    ("lomi_operation_get", {}, "/retryEpoch"),
    ("lomi_operation_get", {"operationId": "o1", "tool": "lomi_status"}, "/tool"),
    ("lomi_operation_get", {"retryEpoch": "0" * 40, "requestKey": "k"}, "/tool"),
    (
        "lomi_panel_control",
        {"terminalSessionId": "t1", "deviceId": "0" * 8 + "-0000-0000-0000-" + "0" * 12},
        "/deviceId",
    ),
    ("lomi_panel_control", {"terminalSessionId": "t1", "expectedRevision": "1"}, "/expectedRevision"),
    ("lomi_panel_control", {"terminalSessionId": None}, "/deviceId"),
    ("lomi_workspace_update", {"name": "a", "action": "close"}, "/action"),
    ("lomi_workspace_update", {"name": None}, "/name"),
]


@pytest.mark.parametrize(("name", "change", "field"), FORMLESS)
def test_unclear_forms_are_refused(name: str, change: dict[str, Any], field: str) -> None:
    """A tool with two forms takes exactly one of them and names the field that makes it unclear."""
    sample = {} if name == "lomi_operation_get" else argument_samples(BY_NAME[name])[0]
    found = refusal(BY_NAME[name], sample | change)
    assert found is not None
    assert (found.reason, found.field) == ("variant_unclear", field)


TOGETHER = [
    ("lomi_files_read", {"startUtf16": 1}, "/expectedDiskRevision", "field_needed"),
    ("lomi_editor_read", {"startUtf16": 1}, "/documentId", "field_needed"),
    ("lomi_git_diff", {"comparison": "commit"}, "/commit", "field_needed"),
    ("lomi_git_diff", {"commit": "0" * 40}, "/commit", "variant_unclear"),
    ("lomi_git_history", {"skip": 1}, "/commit", "field_needed"),
    ("lomi_git_mutate", {"operation": "fetch"}, "/paths", "variant_unclear"),
    ("lomi_git_mutate", {"paths": []}, "/paths", "field_needed"),
    ("lomi_chat_list", {"offset": 1}, "/expectedRevision", "field_needed"),
    ("lomi_chat_export", {"startUtf16": 1}, "/expectedRevision", "field_needed"),
    ("lomi_settings_read", {"offset": 1}, "/offset", "variant_unclear"),
    ("lomi_settings_read", {"offset": 1, "section": "keybinds"}, "/expectedRevision", "field_needed"),
    ("lomi_terminal_read", {"mode": "command"}, "/operationId", "field_needed"),
    ("lomi_terminal_read", {"mode": "raw", "operationId": "o1"}, "/operationId", "variant_unclear"),
    ("lomi_browser_click", {"hover": True, "checked": True}, "/hover", "variant_unclear"),
    ("lomi_browser_screenshot", {"area": "element"}, "/snapshotId", "field_needed"),
    ("lomi_artifact_import", {"kind": "file", "expectedByteLength": 4_194_305}, "/expectedByteLength", "out_of_range"),
    ("lomi_artifact_import", {"relativePath": "a.zip"}, "/relativePath", "not_an_apk"),
    (
        "lomi_editor_apply_edits",
        {"edits": [{"fromUtf16": 2, "toUtf16": 1, "insert": ""}]},
        "/edits/0",
        "edits_unordered",
    ),
    ("lomi_editor_apply_edits", {"edits": [{"fromUtf16": 1, "toUtf16": 1, "insert": ""}]}, "/edits/0", "edit_empty"),
    (
        "lomi_editor_apply_edits",
        {"edits": [{"fromUtf16": 0, "toUtf16": 3, "insert": ""}, {"fromUtf16": 2, "toUtf16": 4, "insert": ""}]},
        "/edits/1",
        "edits_unordered",
    ),
    (
        "lomi_android_setup_plan",
        {"action": {"type": "catalog", "offset": 1}},
        "/action/expectedCatalogRevision",
        "field_needed",
    ),
]


@pytest.mark.parametrize(("name", "change", "field", "reason"), TOGETHER)
def test_fields_that_do_not_go_together_are_refused(name: str, change: dict[str, Any], field: str, reason: str) -> None:
    """A field that is missing or does not belong is named, with a documented reason."""
    found = refusal(BY_NAME[name], argument_samples(BY_NAME[name])[0] | change)
    assert found is not None
    assert (found.field, found.reason) == (field, reason)
    assert reason in REASONS


def test_codes_of_fields_that_have_their_own() -> None:
    """Where the contract names another code than RESOURCE_EXHAUSTED for a malformed value, that one is given."""
    cases = [
        ("lomi_workspace_create", {"retryEpoch": "x"}, ErrorCode.RETRY_WINDOW_EXPIRED),
        ("lomi_workspace_list", {"cursor": "c" * 129}, ErrorCode.CURSOR_EXPIRED),
        ("lomi_files_mutate", {"expectedRevision": "x"}, ErrorCode.REVISION_CONFLICT),
        ("lomi_artifact_export", {"expectedSha256": "x"}, ErrorCode.REVISION_CONFLICT),
        ("lomi_files_read", {"relativePath": "../secret"}, ErrorCode.SCOPE_DENIED),
        ("lomi_terminal_create", {"cwdRelative": "/etc"}, ErrorCode.SCOPE_DENIED),
        ("lomi_workspace_create", {"name": ""}, None),
    ]
    for name, change, code in cases:
        found = refusal(BY_NAME[name], argument_samples(BY_NAME[name])[0] | change)
        assert found is not None
        assert found.code == code, name


def test_touch_and_key_events_do_not_wait_by_default() -> None:
    """`waitMs` of an Android event depends on its kind where it is left out, and is taken as given else."""
    tool = BY_NAME["lomi_android_input"]
    for sample in argument_samples(tool):
        parsed = parse(tool, json.dumps(sample).encode())
        expected = 0 if sample["event"]["type"] in ("touch", "key") else 2000
        assert tool.wait_of(parsed) == input_wait_ms(parsed) == expected  # type: ignore[arg-type]
        assert tool.wait_of(parse(tool, json.dumps({**sample, "waitMs": 7}).encode())) == 7


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["w1", "0" * 64]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
EVERY = list(every_argument_sample())


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_whatever_parses_is_valid_and_nothing_else_breaks(data: st.DataObject) -> None:
    """Changed arguments are refused by one of the two documented exceptions, or they validate against the schema."""
    tool, sample = data.draw(st.sampled_from(EVERY))
    changed = dict(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        field = data.draw(st.sampled_from([*tool.input.__struct_encode_fields__, "type", "odd"]))
        place = changed.get(field)
        if isinstance(place, dict) and data.draw(st.booleans()):
            changed[field] = {**place, data.draw(st.sampled_from([*place, "odd"])): data.draw(JSON)}
        else:
            changed[field] = data.draw(JSON)
    raw = msgspec.json.encode(changed)
    try:
        parsed = parse(tool, raw)
    except (InvalidParams, OutOfBounds):
        return
    validator(input_schema(tool)).validate(changed)
    assert msgspec.json.decode(msgspec.json.encode(parsed), type=tool.input) == parsed


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_of_any_kind_are_answered(raw: bytes) -> None:
    """No bytes make the parser fail in another way than it documents."""
    try:
        parse(STATUS, raw)
    except (InvalidParams, OutOfBounds):
        return


def replies(tool: Definition) -> list[dict[str, Any]]:
    """Envelopes with data of each kind of a tool, and an error."""
    failure = msgspec.to_builtins(
        Failure(code=ErrorCode.TARGET_BUSY, reason="covered", field="/elementRef", hint="h", details=None)
    )
    data: list[Any] = []
    results = [kind for kind in tool.results if issubclass(kind, Result)]
    for kind in tool.results:
        if kind is not Receipt and kind not in results:
            data += [msgspec.to_builtins(msgspec.convert(sample, kind)) for sample in struct_samples(kind)]
    if results or Receipt in tool.results:
        receipt = {
            "kind": "operation",
            "operationId": "o1",
            "state": "succeeded",
            "effectState": "complete",
            "workspaceId": "w1",
        }
        made = [msgspec.to_builtins(msgspec.convert(s, kind)) for kind in results for s in struct_samples(kind)]
        data += [{**receipt, "result": result} for result in (*made, failure, None)]
        data += [{**receipt, "result": None, "observation": {"settled": False, "lines": ["one"], "truncated": True}}]
    error = {"controlApiVersion": "1.0", "status": "error", "code": "TARGET_BUSY", "message": "m", "reason": "covered"}
    return [*({"controlApiVersion": "1.0", "status": "ok", "data": item} for item in data), error]


@TOOLS
def test_replies_validate_and_foreign_ones_do_not(tool: Definition) -> None:
    """Data of every kind of the tool, failures, receipts and errors validate; another field or kind does not."""
    check = validator(output_schema(tool))
    for reply in replies(tool):
        check.validate(reply)
        assert not check.is_valid({**reply, "odd": 1})
        if reply["status"] == "ok":
            assert not check.is_valid({**reply, "data": {**reply["data"], "odd": 1}})
            assert not check.is_valid({**reply, "data": {**reply["data"], "kind": "odd"}})
