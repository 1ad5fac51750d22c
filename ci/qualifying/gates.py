"""The gates that `ci/qualify` knows: what each is run with, for how long, and how its output is read."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qualifying import reading
from qualifying.reading import Figures


@dataclass(frozen=True, slots=True)
class Gate:
    """One command of the gates' folder.

    Attributes:
        name: the file's name.
        arguments: what a full run gives it; `{work}` is the run's folder.
        bound_s: the longest that it may take.
        read: makes figures of its output and the run's folder; empty where it showed none.
        quick: the arguments of a quick run; None where a quick run leaves it out.
    """

    name: str
    bound_s: float
    read: Callable[[str, Path], Figures]
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ()


GATES = (
    Gate("test", 1800, reading.tests, quick=("tests/unit",)),
    Gate("demo", 600, reading.demo, ("--into", "{work}/demo"), ("--into", "{work}/demo")),
    Gate("conformance", 900, reading.conformance, quick=None),
    Gate("bench", 3600, reading.bench, ("all", "--json", "{work}/bench.json"), ("cli", "--json", "{work}/bench.json")),
    Gate("agent-gate", 1800, reading.agent_gate, ("--json", "{work}/agent-gate.json"), quick=None),
    Gate("harness", 1800, reading.harness, ("run", "--image", "paper", "--seed", "7", "--repeat", "2"), quick=None),
    Gate("deep", 3600, reading.tests, quick=None),
)
"""In the order in which they run: what shows most in the least time first."""
NO_SUCH_GATE = "this tree has no such gate"
NOT_GATES = frozenset({"qualify"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """A gate of this run, or the reason why it is none."""

    gate: Gate
    why_not: str = ""


def choose(folder: Path, *, only: frozenset[str], skip: frozenset[str], quick: bool) -> list[Chosen]:
    """Every gate that is known, each with the reason why it isn't run, if there is one.

    Raises:
        ValueError: `only` or `skip` names what is no gate.
    """
    known = {gate.name for gate in GATES}
    if unknown := (only | skip) - known:
        raise ValueError(f"no gate is named {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")
    chosen = []
    for gate in GATES:
        why = ""
        if not os.access(folder / gate.name, os.X_OK):
            why = NO_SUCH_GATE
        elif only and gate.name not in only:
            why = "left out by --only"
        elif gate.name in skip:
            why = "left out by --skip"
        elif quick and gate.quick is None:
            why = "left out by --quick"
        chosen.append(Chosen(gate, why))
    return chosen


def strangers(folder: Path) -> list[str]:
    """Commands in the gates' folder that this program doesn't know: they are named on the page, never run."""
    known = {gate.name for gate in GATES} | NOT_GATES
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file() and os.access(path, os.X_OK) and path.name not in known and path.suffix == ""
    )
