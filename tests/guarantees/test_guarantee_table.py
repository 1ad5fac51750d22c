"""The guarantee table, measured again and compared with what is written down."""

import asyncio
from pathlib import Path

import pytest
from harness import opened_world, owner
from harness.site import serving

from guarantees.hazards import HAZARDS
from guarantees.table import table_policy, whole_table, written
from lomi.contract.tools import BY_NAME

DOCUMENT = Path(__file__).parents[2] / "docs" / "guarantees.md"
FAMILIES = (
    ("session", "workspace", "panel", "operation", "artifact"),
    ("terminal",),
    ("browser",),
    ("android",),
    ("files", "editor"),
    ("git",),
    ("chat", "settings"),
)


def test_every_working_tool_is_in_the_table() -> None:
    """The document covers exactly the tools that a real broker has handlers for; every tool belongs to a group."""
    with serving() as site, opened_world(table_policy(site)) as world:
        working = set(asyncio.run(owner(world, "status"))["tools_working"])  # type: ignore[call-overload]
    cells = written(DOCUMENT.read_text(encoding="utf-8"))
    assert {name for name, _ in cells} == working
    assert {definition.family for definition in BY_NAME.values()} == {name for group in FAMILIES for name in group}
    assert {hazard for _, hazard in cells} == set(HAZARDS)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("families", FAMILIES, ids="-".join)
def test_the_table_is_as_written(families: tuple[str, ...]) -> None:
    """Every cell of these tools, brought about on a real broker with kill -9, keeps its rule and is as documented."""
    cells = written(DOCUMENT.read_text(encoding="utf-8"))
    only = [name for name, definition in BY_NAME.items() if definition.family in families]
    if not any(name in only for name, _ in cells):
        return
    table = asyncio.run(whole_table(only=only))
    assert table.faults == []
    assert table.cells == {cell: said for cell, said in cells.items() if cell[0] in only}
