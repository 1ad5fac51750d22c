"""Reasons: the code raises only documented ones, each with the code that it belongs to."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lomi.contract.codes import Reason
from lomi.contract.tools import REASONS

ROOT = Path(__file__).parents[2]
ROOMS = ("lomi", "devices", "browser")
FAULTS = ("devices/faults.py", "browser/errors.py")


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the rooms that raise reasons, but the contract itself."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("lomi/contract/"):
                yield name, ast.parse(path.read_text())


def called(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)


def fault_names() -> frozenset[str]:
    """The error classes of the libraries, whose first argument is a reason."""
    return frozenset(
        node.name
        for name in FAULTS
        if (ROOT / name).exists()
        for node in ast.parse((ROOT / name).read_text()).body
        if isinstance(node, ast.ClassDef)
    )


def words(node: ast.expr) -> list[str]:
    """The texts that an expression may be."""
    if isinstance(node, ast.IfExp):
        return words(node.body) + words(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def test_refusals_are_documented_and_keep_their_code() -> None:
    """A refusal's reason is in the closed list and belongs to the code that it is raised with."""
    wrong: list[str] = []
    for name, module in modules():
        for node in ast.walk(module):
            if called(node) not in ("Refusal", "OutOfBounds") or not isinstance(node, ast.Call) or len(node.args) < 2:
                continue
            code = getattr(node.args[0], "attr", None)
            for reason in words(node.args[1]):
                known: Reason | None = REASONS.get(reason)
                if known is None or (code and code in type(known.code).__members__ and known.code.name != code):
                    wrong.append(f"{name}:{node.lineno} {code} {reason}")
    assert wrong == []


def test_reasons_of_the_libraries_are_documented() -> None:
    """What a device or a page raises has a documented reason of the same name."""
    faults = fault_names()
    if not faults:
        pytest.skip("no library is here")
    wrong = [
        f"{name}:{node.lineno} {reason}"
        for name, module in modules()
        for node in ast.walk(module)
        if called(node) in faults and isinstance(node, ast.Call) and node.args
        for reason in words(node.args[0])
        if reason not in REASONS
    ]
    assert wrong == []
