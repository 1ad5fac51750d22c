"""Figures: rows of ours beside a yardstick, their judgement, the table and its JSON form."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figures:
    """Values of one thing, in the order in which they were measured."""

    name: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """The value that 95 of 100 do not exceed."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]

    def as_json(self) -> dict[str, object]:
        """Name, median, p95 and count."""
        return {"name": self.name, "median": self.median, "p95": self.p95, "count": len(self.values)}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Attributes:
        what: what was measured.
        unit: of all values.
        ours: Lomi's figures.
        yardstick: what they are judged by in the same run; None where `target` is a bound of its own, in `unit`.
        target: the most that ours may be, as a multiple of the yardstick's median; None for a figure that only informs.
        note: why it is missed, or what to know.
    """

    what: str
    unit: str
    ours: Figures
    yardstick: Figures | None = None
    target: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our median over the yardstick's."""
        if self.yardstick is None:
            return None
        return self.ours.median / self.yardstick.median if self.yardstick.median else float("inf")

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        measured = self.ours.median if self.ratio is None else self.ratio
        return measured <= self.target

    def as_json(self) -> dict[str, object]:
        """The row as plain values."""
        return {
            "what": self.what,
            "unit": self.unit,
            "ours": self.ours.as_json(),
            "yardstick": self.yardstick.as_json() if self.yardstick else None,
            "ratio": self.ratio,
            "target": self.target,
            "met": self.met,
            "note": self.note,
        }


def row(
    what: str,
    ours: Sequence[float],
    yardstick: tuple[str, Sequence[float]] | None = None,
    *,
    target: float | None = None,
    unit: str = "ms",
    note: str = "",
) -> Row:
    """A row from plain values."""
    beside = Figures(yardstick[0], tuple(yardstick[1])) if yardstick else None
    return Row(what, unit, Figures("lomi", tuple(ours)), beside, target, note)


@dataclass(slots=True)
class Report:
    """All rows of one bench, with what must be known of the machine."""

    bench: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    load_at_start: float = field(default_factory=lambda: os.getloadavg()[0])
    began: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def missed(self) -> list[Row]:
        """The rows whose target is not met."""
        return [one for one in self.rows if one.met is False]

    def as_json(self) -> dict[str, object]:
        """The report as plain values."""
        return {
            "bench": self.bench,
            "began": self.began,
            "machine": {
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "system": platform.platform(),
                "loadAtStart": self.load_at_start,
                "loadAtEnd": os.getloadavg()[0],
            },
            "notes": self.notes,
            "rows": [one.as_json() for one in self.rows],
        }

    def print(self) -> None:
        """The table."""
        print(
            f"\n{self.bench}: {self.began}, {os.cpu_count()} cores, Python {platform.python_version()}, "
            f"load average {self.load_at_start:.1f} at start, {os.getloadavg()[0]:.1f} at end"
        )
        for note in self.notes:
            print(f"  {note}")
        cells = [_HEAD, *(_cells(one) for one in self.rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
        for line in cells:
            shown = [
                cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            print("  " + "  ".join(shown).rstrip())


_HEAD = ("what", "ours", "p95", "yardstick", "median", "p95", "ratio", "target", "met")
_NUMBERS = frozenset({1, 2, 4, 5, 6, 7})


def _cells(one: Row) -> tuple[str, ...]:
    beside = one.yardstick
    ratio = one.ratio
    target = ""
    if one.target is not None:
        target = f"{one.target:g} {one.unit}" if beside is None else f"{one.target:.2f}"
    met = {None: "", True: "yes", False: "NO"}[one.met]
    return (
        one.what,
        f"{_number(one.ours.median)} {one.unit}",
        _number(one.ours.p95),
        beside.name if beside else "",
        _number(beside.median) if beside else "",
        _number(beside.p95) if beside else "",
        f"{ratio:.2f}" if ratio is not None else "",
        target,
        met + (f"  {one.note}" if one.note else ""),
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def write_json(path: Path, reports: Sequence[Report]) -> None:
    """All reports of one run as one file."""
    path.write_text(json.dumps([report.as_json() for report in reports], indent=2) + "\n", encoding="utf-8")
