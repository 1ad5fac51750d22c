"""The table of complaints: every row is answered, and every test that it names exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \|$", (ROOT / "docs" / "pains.md").read_text(encoding="utf-8"), re.MULTILINE
)
LEFT_OUT = {18, 33, 41, 45, 47, 55, 60}
"""Numbers that the list of complaints does not use."""


def functions_of(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_complaint_has_its_row() -> None:
    """Rows 1 to 61, in order, each with a test or with the part that it belongs to."""
    assert [int(number) for number, _, _ in ROWS] == [n for n in range(1, 62) if n not in LEFT_OUT]
    assert [row for row in ROWS if "`tests/" not in row[2] and "the device lab" not in row[2]] == []


def test_every_named_test_exists() -> None:
    """File and function of each are there."""
    named = [one for _, _, shown in ROWS for one in re.findall(r"`(tests/[^`]+)`", shown)]
    assert len(named) > 50
    files = {name.split("::")[0] for name in named}
    found = {f"{file}::{test}" for file in files for test in functions_of(ROOT / file)}
    assert [name for name in named if name not in found] == []
