"""The catalogue: exactly the recorded tools, fresh, inside its budgets, closed at every level."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lomi.contract import catalogue as generator
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import Definition
from lomi.contract.listing import LOCATION, catalogue
from lomi.contract.model import Failure, Receipt, Result
from lomi.contract.profiles import QA, UnknownSelectionError, select
from lomi.contract.schema import input_schema, output_schema
from lomi.contract.scopes import DEPENDENCIES, SCOPES
from lomi.contract.tools import ALL, BY_NAME, EVERY_RESULT, FAMILY_REASONS, REASONS

RECORDED: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "golden" / "tools.json").read_text())
NAMES = [tool["name"] for tool in RECORDED]

NEW_FIELDS = {
    "lomi_browser_click": {"button", "count", "modifiers", "position", "checked", "hover", "dragTo"},
    "lomi_browser_fill": {"alsoSelect"},
    "lomi_browser_key": {"modifiers", "count"},
    "lomi_browser_scroll": {"elementRef"},
    "lomi_browser_screenshot": {"area", "snapshotId", "elementRef", "video"},
    "lomi_browser_download": {"large", "downloadId"},
    "lomi_browser_logs": {"bodyOf", "trace"},
    "lomi_artifact_import": {"large"},
    "lomi_artifact_read": {"offset", "maxBytes"},
    "lomi_android_screenshot": {"video"},
}
"""Optional fields that tools gain beyond the recorded ones."""
NEW_OUTPUT = {
    "status": {"usage"},
    "browser_snapshot": {"omitted", "pending"},
    "browser_logs": {"artifact"},
    "android_snapshot": {"omitted"},
}
SCOPES_BY_FORM = {
    "lomi_panel_control": {"terminal.execute"},
    "lomi_android_setup_plan": {"android.setup"},
    "lomi_android_device_manage": {"android.manage"},
}
"""Scopes that are recorded as always needed, but which another form of the arguments replaces."""


def default_of(definition: Definition, wire: str) -> object:
    """The default of a field as JSON, or `required`."""
    names = dict(zip(definition.input.__struct_encode_fields__, definition.fields, strict=True))
    defaults = dict(zip(definition.fields[::-1], definition.input.__struct_defaults__[::-1], strict=False))
    default = defaults.get(names[wire], msgspec.NODEFAULT)
    return "required" if default is msgspec.NODEFAULT else default


def fields_of(kind: type[msgspec.Struct]) -> set[str]:
    return set(kind.__struct_encode_fields__)


def test_exactly_the_recorded_tools_in_their_order() -> None:
    """There are the 74 tools of the contract, in its order, and no other."""
    assert [tool.name for tool in ALL] == NAMES
    assert len(NAMES) == 74
    assert [entry.name for entry in catalogue().tools] == NAMES


@pytest.mark.parametrize("recorded", RECORDED, ids=NAMES)
def test_definition_matches_the_record(recorded: dict[str, Any]) -> None:
    """Family, scopes, lease, hints and retry fields are those of the contract."""
    tool = BY_NAME[recorded["name"]]
    assert tool.family == recorded["family"]
    assert set(tool.scopes) == set(recorded["scopes"]) - SCOPES_BY_FORM.get(tool.name, set())
    assert tool.needs_lease == recorded["lease"]
    hints = {"readOnly": not tool.mutation, "destructive": tool.destructive, "openWorld": tool.open_world}
    assert {hint for hint, on in hints.items() if on} == set(recorded["hints"])
    wire = fields_of(tool.input)
    retry = {"expectedRevision", "retryEpoch", "requestKey", "inputSequence"}
    assert set(recorded["retry"]) == (wire & retry if tool.mutation else set())


@pytest.mark.parametrize("recorded", RECORDED, ids=NAMES)
def test_input_fields_match_the_record(recorded: dict[str, Any]) -> None:
    """The input has the recorded fields with their defaults, the additions of the contract, and nothing else."""
    tool = BY_NAME[recorded["name"]]
    added = set(recorded["added"]) | NEW_FIELDS.get(tool.name, set())
    assert fields_of(tool.input) == set(recorded["fields"]) | added
    assert {wire: default_of(tool, wire) for wire in recorded["fields"]} == recorded["fields"]
    for wire in added - set(recorded["fields"]):
        assert default_of(tool, wire) != "required"


@pytest.mark.parametrize("recorded", RECORDED, ids=NAMES)
def test_output_kinds_match_the_record(recorded: dict[str, Any]) -> None:
    """The tool answers with the recorded kinds, each with its recorded fields."""
    tool = BY_NAME[recorded["name"]]
    if not recorded["kinds"]:
        assert tool.results == (Receipt,)
        return
    own = {str(kind.__struct_config__.tag): fields_of(kind) for kind in tool.results}
    assert set(own) == set(recorded["kinds"])
    for kind, fields in recorded["kinds"].items():
        if fields:
            assert own[kind] == set(fields) | NEW_OUTPUT.get(kind, set())


def test_waiting_defaults() -> None:
    """Every mutation waits 2000 ms for its receipt by default and reads that can wait wait 0."""
    for tool in ALL:
        if "wait_ms" in tool.fields and tool.name != "lomi_android_input":
            assert default_of(tool, "waitMs") == (2000 if tool.mutation else 0)
        assert not tool.mutation or "wait_ms" in tool.fields


def test_retry_identities() -> None:
    """Mutations are recognised by their key but for the two ordered inputs; cancelling and reading need none."""
    identities = {tool.name: tool.retry_identity for tool in ALL}
    assert identities["lomi_terminal_input"] == "sequence_in_memory"
    assert identities["lomi_android_input"] == "sequence_stored"
    without = {"lomi_terminal_input", "lomi_android_input", "lomi_operation_cancel"}
    for tool in ALL:
        if tool.name not in without:
            assert identities[tool.name] == ("key" if tool.mutation else "none")
        assert tool.stored == (tool.mutation and tool.name not in without - {"lomi_android_input"})


def test_every_scope_is_asked_for_by_some_tool_and_known() -> None:
    """Scopes named by tools and by dependencies are among the 54, of which none is without use."""
    assert len(SCOPES) == 54
    text = b"".join(msgspec.json.encode(entry) for entry in catalogue().tools).decode()
    assert [scope for scope in SCOPES if scope not in text] == []
    assert set(DEPENDENCIES) <= set(SCOPES)


def test_the_file_is_fresh(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped file is what the definitions generate, and `--check` notices when it is not."""
    assert LOCATION.read_bytes() == generator.build()
    assert generator.main(["--check"]) == 0
    stale = tmp_path / "catalogue.json"
    monkeypatch.setattr(generator, "LOCATION", stale)
    assert generator.main(["--check"]) == 1
    assert "--write" in capsys.readouterr().err
    assert generator.main(["--write"]) == 0
    assert stale.read_bytes() == LOCATION.read_bytes()
    assert generator.main([]) == 2


def tokens(names: frozenset[str]) -> float:
    """What hosts hand to a model, at four bytes a token."""
    return sum(
        len(tool.name) + len(tool.purpose) + len(input_schema(tool)) for tool in ALL if tool.name in names
    ) / 4  # fmt: skip


def test_the_list_stays_inside_its_budgets() -> None:
    """All tools cost a model under 20,000 tokens, the qa profile under 5,000, and the whole list is under 300 kB."""
    assert tokens(frozenset(BY_NAME)) < 20_000
    assert tokens(QA) < 5_000
    listed = [
        {
            "name": entry.name,
            "description": entry.purpose,
            "inputSchema": entry.input_schema,
            "outputSchema": entry.output_schema,
            "annotations": entry.annotations,
        }
        for entry in catalogue().tools
    ]
    assert len(msgspec.json.encode({"tools": listed})) < 300_000


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(schema, dict):
        yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_schemas_are_closed_and_plain(tool: Definition) -> None:
    """Roots are objects, every input object is closed, and nothing needs a reference to be resolved."""
    given, reply = json.loads(input_schema(tool)), json.loads(output_schema(tool))
    assert given["type"] == reply["type"] == "object"
    for schema in (*objects(given), *objects(reply)):
        assert not {"$ref", "$defs", "discriminator", "anyOf", "pattern"} & {
            key for key in schema if not isinstance(schema[key], dict) or key.startswith("$")
        }
    for schema in objects(given):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
    ok, error = reply["oneOf"]
    assert ok["additionalProperties"] is error["additionalProperties"] is False
    assert error["properties"]["code"]["enum"] == [code.value for code in ErrorCode]


def test_operation_tools_name_every_result_kind() -> None:
    """Reading any receipt may answer with the result kind of any operation, or a failure."""
    kinds = {str(kind.__struct_config__.tag) for tool in ALL for kind in tool.results if issubclass(kind, Result)}
    schema = output_schema(BY_NAME["lomi_operation_get"]).decode()
    assert all(f'"{kind}"' in schema for kind in (*kinds, "failure"))
    assert len(EVERY_RESULT) == len(kinds)
    assert Failure not in EVERY_RESULT


def test_reasons_are_unique_and_say_what_to_do() -> None:
    """Each reason has one meaning, a snake_case name and a hint of one short sentence or two."""
    assert sum(len(table) for table in FAMILY_REASONS.values()) == len(REASONS)
    for name, reason in REASONS.items():
        assert name == reason.name
        assert name.replace("_", "").isalnum()
        assert name == name.lower()
        assert 10 <= len(reason.hint) <= 120
        assert reason.hint.endswith(".")
        assert reason.hint.isascii()


def test_selections() -> None:
    """A profile, families and tools by name, and all of them together."""
    assert len(select().names) == 74
    assert select(profile="qa").names == QA <= set(NAMES)
    assert len(QA) == 25
    chosen = select(tools="terminal, lomi_status")
    assert chosen.names == {"lomi_status", *(tool.name for tool in ALL if tool.family == "terminal")}
    assert not chosen.admits(BY_NAME["lomi_connect"])
    assert select(profile="qa", tools="git").names == QA | {tool.name for tool in ALL if tool.family == "git"}


@pytest.mark.parametrize("wish", [{"profile": "nobody"}, {"tools": "terminal,nothing"}])
def test_unknown_selections_are_named(wish: dict[str, str]) -> None:
    """An unknown profile, family or tool is refused and the message says which names exist."""
    with pytest.raises(UnknownSelectionError, match=r"qa|families are session"):
        select(**wish)


def test_form_is_the_sessions_own_where_left_open() -> None:
    """A snapshot without `form` is an outline in the qa profile and elements elsewhere."""
    kind = BY_NAME["lomi_android_snapshot"].input
    raw = b'{"workspaceId":"w1","panelId":"p1","deviceId":"d","generation":"g"%s}'
    open_, wished = (msgspec.json.decode(raw % more, type=kind) for more in (b"", b',"form":"elements"'))
    assert select(profile="qa").defaulted(open_).form == "outline"  # type: ignore[attr-defined]
    assert select().defaulted(open_).form == "elements"  # type: ignore[attr-defined]
    assert select(profile="qa").defaulted(wished).form == "elements"  # type: ignore[attr-defined]
