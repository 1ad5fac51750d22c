"""`lomi logs`: the broker's structured log, oldest line first."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TextIO

import click

from lomi.cli.failing import fail
from lomi.cli.shown import Since, printable

LEVELS = ("debug", "info", "warning", "error", "critical")
_HEAD = ("time", "level", "logger", "event")
_LOOK_S = 0.2


@click.command()
@click.option("--session", metavar="ID", help="Only lines of this session.")
@click.option("--since", type=Since(), metavar="WHEN", help="Only lines from then on: 15m, 2h, 3d, or an ISO date.")
@click.option("--level", type=click.Choice(LEVELS), default="debug", help="Only lines of this level and above.")
@click.option("-n", "--lines", type=click.IntRange(1), default=200, show_default=True, help="The last so many.")
@click.option("--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as they are stored.")
def logs(session: str | None, since: int | None, level: str, lines: int, follow: bool, as_json: bool) -> None:
    """Show the broker's log. It holds ids, codes and numbers; never typed text, tokens or paths of projects."""
    from lomi.broker.log_file import DIRECTORY, KEPT, NAME
    from lomi.disk.home import state_home

    present = state_home(os.environ) / DIRECTORY / NAME
    files = _opened([present, *(present.with_name(f"{NAME}.{number}") for number in range(1, KEPT + 1))])
    if not files:
        fail("there is no log in this home yet", "start a broker with `lomi up`")

    def wanted(line: dict[str, object]) -> bool:
        at_least = LEVELS.index(level) <= _level(line)
        ours = session is None or line.get("session") == session
        return at_least and ours and (since is None or _moment(line) >= since)

    kept = [line for file in reversed(files) for line in file.lines() if wanted(line)]
    for line in kept[-lines:]:
        click.echo(_shown(line, as_json=as_json))
    if follow:
        # Ctrl-C is how following ends.
        with suppress(KeyboardInterrupt):
            for line in _follow(present, files[0]):
                if wanted(line):
                    click.echo(_shown(line, as_json=as_json))


def _level(line: dict[str, object]) -> int:
    return LEVELS.index(str(line.get("level"))) if line.get("level") in LEVELS else len(LEVELS)


def _moment(line: dict[str, object]) -> float:
    try:
        return datetime.fromisoformat(str(line.get("time"))).timestamp()
    except ValueError:
        return 0.0


def _parsed(text: str) -> dict[str, object] | None:
    """One line; a torn one, as a crash leaves it, is passed over."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


class _File:
    """One file of the log, read on from where it was left."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._rest = ""
        self.number = os.fstat(file.fileno()).st_ino

    def lines(self) -> Iterator[dict[str, object]]:
        """What has come since; a last line that is not whole yet waits for its rest."""
        *whole, self._rest = (self._rest + self._file.read()).split("\n")
        for text in whole:
            if (line := _parsed(text)) is not None:
                yield line

    def close(self) -> None:
        """Let go of it."""
        self._file.close()


def _opened(paths: Iterable[Path]) -> list[_File]:
    """Those that are there. The newest comes first: one that is rotated meanwhile is met again, and passed over."""
    found: dict[int, _File] = {}
    for path in paths:
        with suppress(FileNotFoundError):
            file = _File(path.open(encoding="utf-8", errors="replace"))
            if found.setdefault(file.number, file) is not file:
                file.close()
    return list(found.values())


def _follow(path: Path, file: _File) -> Iterator[dict[str, object]]:
    """New lines as they come, over rotations."""
    while True:
        number = _number(path)
        # Read after that look: nothing comes to a file any more once another has its name.
        yield from file.lines()
        if number in (None, file.number):
            time.sleep(_LOOK_S)
        elif newer := _opened([path]):
            file.close()
            (file,) = newer


def _number(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _shown(line: dict[str, object], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(line, ensure_ascii=False)
    more = " ".join(f"{name}={_value(value)}" for name, value in line.items() if name not in _HEAD)
    clock = str(line.get("time", "?"))[:23].replace("T", " ")
    return printable(f"{clock} {line.get('level', '?'):7} {line.get('event', '?')} {more}".rstrip())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
