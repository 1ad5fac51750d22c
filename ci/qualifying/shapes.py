"""The files that gates leave for programs: as much of their shape as is read here, checked as it is read."""

import json
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

import msgspec

T = TypeVar("T")


class UnreadableError(ValueError):
    """Raised when a gate left a file that says nothing in the form that it should have."""


class Measure(msgspec.Struct, frozen=True):
    """One side of a row of `ci/bench`."""

    name: str
    median: float


class Row(msgspec.Struct, frozen=True):
    """What was measured, in `unit`; `ratio` is ours over the yardstick."""

    what: str
    unit: str
    ours: Measure
    yardstick: Measure | None
    ratio: float | None
    target: float | None
    met: bool | None
    note: str


class Load(msgspec.Struct, frozen=True, rename="camel"):
    """Load averages."""

    load_at_start: float
    load_at_end: float


class Bench(msgspec.Struct, frozen=True):
    """One report of `ci/bench`."""

    bench: str
    machine: Load
    rows: list[Row]


class Server(msgspec.Struct, frozen=True):
    """A server that the agent gate asked."""

    name: str


class Outcome(msgspec.Struct, frozen=True):
    """One task on one server."""

    server: str
    applicable: bool
    result: str
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


class AgentGate(msgspec.Struct, frozen=True, rename={"tokens_estimated": "tokensEstimated"}):
    """The results of `ci/agent-gate`."""

    model: str
    tokens_estimated: bool
    servers: list[Server]
    outcomes: list[Outcome]


def read_json(path: Path, shape: type[T]) -> T | None:
    """What the file says; None where there is no file.

    Raises:
        UnreadableError: it is of another shape.
    """
    try:
        # Not msgspec's own reader: a ratio to zero is written as Infinity.
        return msgspec.convert(json.loads(path.read_text(encoding="utf-8")), shape)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error


def read_xml(path: Path) -> ElementTree.Element | None:
    """The root element of the file; None where there is no file.

    Raises:
        UnreadableError: it is no XML.
    """
    try:
        return ElementTree.parse(path).getroot()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error
