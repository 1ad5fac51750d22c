"""What people read: aligned columns, ages, sizes; and text of strangers on one line with nothing to be obeyed in it."""

import re
import time
from collections.abc import Sequence
from datetime import datetime

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d+)([smhdw])")


def printable(text: str) -> str:
    """Text from a client or a page on one line, control and bidirectional characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short(text: str, most: int = 40) -> str:
    """The same, cut with an ellipsis."""
    line = printable(text)
    return line if len(line) <= most else line[: most - 1] + "…"


def age(seconds: float) -> str:
    """A span in its two largest units: `4s`, `2m10s`, `3h05m`, `2d04h`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02}h"


def size(count: int) -> str:
    """A number of bytes in its largest unit."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count} B"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows below their heads, columns two spaces apart; nothing where there are no rows."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    ]


class Since(click.ParamType[int]):
    """A moment in the past as seconds since the epoch: `90s`, `15m`, `2h`, `3d`, `1w`, or an ISO date and time."""

    name = "since"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it.

        Raises:
            click.UsageError: it is neither a span nor a date.
        """
        if isinstance(value, int):
            return value
        if span := _SPAN.fullmatch(value):
            return int(time.time()) - int(span[1]) * _UNITS[span[2]]
        try:
            return int(datetime.fromisoformat(value).astimezone().timestamp())
        except ValueError:
            self.fail(f"{value!r} is neither a span such as 15m or 2h nor an ISO date", param, ctx)
