"""Arguments at and past every bound, of wrong shape and hostile text, sent to a real broker over the wire."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import ClientEntry, World, agent, opened_world, policy_text

from lomi.client.errors import BrokerFaultError, InvalidArgumentsError
from lomi.contract.bounds import Bound
from lomi.contract.definition import Definition, no_rule
from lomi.contract.tools import ALL

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from contract_samples import argument_samples, bounded_places, pointer, replaced

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "a\u202eb",
    "line\nbreak",
    "\ufeff",
    "e\u0301" * 10,
    "🙂" * 5,
    "' OR 1=1 --",
    "$(id)",
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker whose client may do everything a wildcard gives."""
    with opened_world(policy_text(ClientEntry(label="qa"))) as made:
        yield made


def spelled(value: float, bound: Bound, kind: type) -> Any:
    """A number as the field writes it: an integer, a float, or a decimal in text."""
    if bound.decimal:
        return str(int(value))
    return int(value) if kind is int else value


def outside(bounds: tuple[Bound, ...], kind: type) -> list[Any]:
    """Numbers just past the limits and far past them."""
    found: list[Any] = []
    for bound in bounds:
        if bound.least is not None and bound.most is not None:
            far = (bound.least - 1, bound.most + 1, bound.least - 2**40, bound.most + 2**40)
            found += [spelled(value, bound, kind) for value in far]
    return found


def kind_of(annotation: Any) -> type:
    """Whether a field is an integer or a float."""
    return int if "int" in str(annotation) else float


def number_places(definition: Definition) -> Iterator[tuple[dict[str, Any], tuple[str | int, ...], list[Any]]]:
    """Every numeric bound of a tool: a valid sample, the place, values out of range."""
    for sample in argument_samples(definition):
        for path, annotation, bounds in bounded_places(definition.input, sample):
            values = outside(bounds, kind_of(annotation))
            if values:
                yield sample, path, values


async def test_every_numeric_bound_is_refused_past_its_limits(world: World) -> None:
    """Limit + 1, below the least, negative and huge: an envelope error that names the field; the broker stays up."""
    asked = 0
    async with agent(world) as qa:
        for definition in ALL:
            for sample, path, values in number_places(definition):
                for value in values:
                    said = await qa.call(definition.name, replaced(sample, path, value))
                    asked += 1
                    assert said.code in ("RESOURCE_EXHAUSTED", "REVISION_CONFLICT", "ARTIFACT_TOO_LARGE"), (
                        definition.name,
                        path,
                        value,
                        said.raw,
                    )
                    assert said.error["field"] == pointer(path)
        assert (await qa.ask("lomi_status")).data["connection"] == "connected"
    assert asked > 100


async def test_the_limits_themselves_are_taken(world: World) -> None:
    """The least and the most value of each bound are parsed: what answers is never the bound."""
    asked = 0
    async with agent(world) as qa:
        for definition in ALL:
            if definition.rule is not no_rule:
                continue
            if definition.unpaired or ("wait_ms" not in definition.fields and definition.name == "lomi_status"):
                continue
            for sample, path, _ in number_places(definition):
                if path[-1] in ("waitMs", "timeoutMs"):
                    continue
                for _, annotation, bounds in [
                    entry for entry in bounded_places(definition.input, sample) if entry[0] == path
                ]:
                    for bound in bounds:
                        for limit in {bound.least, bound.most} - {None}:
                            value = spelled(limit, bound, kind_of(annotation))
                            said = await qa.call(definition.name, replaced(sample, path, value))
                            asked += 1
                            assert said.error.get("field") != pointer(path) or said.reason != "out_of_range", (
                                definition.name,
                                path,
                                value,
                                said.raw,
                                annotation,
                            )
    assert asked > 50


async def test_unknown_fields_and_wrong_types_are_invalid_params(world: World) -> None:
    """For every tool: a field too many, each field with another type, another tag of a union."""
    asked = 0
    async with agent(world) as qa:
        for definition in ALL:
            sample = argument_samples(definition)[0]
            wrong = [{**sample, "decision": "approved"}, {**sample, "__proto__": {}}]
            for name, value in sample.items():
                wrong.append({**sample, name: [value] if not isinstance(value, list) else {"x": value}})
                if isinstance(value, dict) and "type" in value:
                    wrong.append({**sample, name: {**value, "type": "nothing"}})
            for arguments in wrong:
                asked += 1
                with pytest.raises(InvalidArgumentsError):
                    await qa.client.call_raw(definition.name, json.dumps(arguments).encode())
        with pytest.raises(InvalidArgumentsError):
            await qa.client.call_raw("lomi_nothing", b"{}")
        assert (await qa.ask("lomi_status")).data["connection"] == "connected"
    assert asked > 300


@pytest.mark.parametrize(
    "raw",
    [
        b'{"workspaceId": "w1", "workspaceId": "w2"}',
        b'{"workspaceId": "\\ud800"}',
        b'{"workspaceId": "\xff"}',
        b'["w1"]',
        b"null",
        b"",
        b'{"workspaceId": NaN}',
        b'{"workspaceId": "w1"} x',
        b"{" * 3000,
        b'{"workspaceId": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    ],
)
async def test_text_that_is_not_one_clean_object_is_refused(world: World, raw: bytes) -> None:
    """Duplicate keys, lone surrogates, other JSON, trailing text, depth: invalid params at once, nothing breaks."""
    async with agent(world) as qa:
        with pytest.raises((InvalidArgumentsError, BrokerFaultError)) as refused:
            await qa.client.call_raw("lomi_connect", raw)
        assert refused.type is InvalidArgumentsError
        assert (await qa.ask("lomi_status")).data["connection"] == "connected"


async def test_arguments_over_64_kib_are_refused_and_exactly_64_kib_are_read(world: World) -> None:
    """One byte more is refused for its size; at the limit itself it is the fields that are judged."""
    frame = b'{"workspaceId":"w1","cursor":"%s"}'
    room = 64 * 1024 - len(frame) + 2
    async with agent(world) as qa:
        with pytest.raises(InvalidArgumentsError, match="64 KiB"):
            await qa.client.call_raw("lomi_panel_list", frame % (b"x" * (room + 1)))
        said = await qa.client.call_raw("lomi_panel_list", frame % (b"x" * room))
        assert json.loads(said.structured)["field"] == "/cursor"


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_names_come_back_as_they_are_or_not_at_all(world: World, text: str) -> None:
    """Control and bidirectional characters are refused or kept as data; the short text never carries a raw escape."""
    async with agent(world) as qa:
        said = await qa.call("lomi_workspace_create", {**await qa.revised(name=text), "waitMs": 15000})
        if said.code is not None:
            assert said.code == "RESOURCE_EXHAUSTED"
            return
        assert said.state == "succeeded/complete", said.raw
        listed = await qa.client.call_raw("lomi_workspace_list", b"{}")
        assert text.strip() in [row["name"] for row in json.loads(listed.structured)["data"]["items"]]
        assert "\x1b" not in listed.text


async def test_pages_never_split_a_character(world: World) -> None:
    """Terminal output of astral characters, read in pages of every small size, joins to the whole."""
    async with agent(world) as qa:
        created = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="pages"))
        place = {name: created.result[name] for name in ("panelId", "terminalSessionId")}
        run = {**await qa.keyed(), **place, "leaseId": created.result["leaseId"]}
        done = await qa.do("lomi_terminal_run", {**run, "command": "printf '🙂漢é%.0s' {1..40}; echo"})
        where = {"workspaceId": qa.workspace, **place, "mode": "command", "operationId": done.data["operationId"]}
        for size in (4, 5, 7, 9):
            text, cursor = "", None
            while True:
                at = {"cursor": cursor} if cursor is not None else {}
                page = (await qa.ask("lomi_terminal_read", **where, **at, maxBytes=size)).data
                assert "\ufffd" not in page["text"]
                text += page["text"]
                if page["nextCursor"] == cursor or not page["text"]:
                    break
                cursor = page["nextCursor"]
            assert text.strip() == "🙂漢é" * 40
