"""How soon a command is there, beside a bare start of the interpreter. Target: under 100 ms on an idle machine."""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benches.broker import opened_broker
from benches.rows import Report, row
from benches.stdio import BenchFailedError

_WORDS = (("--help",), ("--version",), ("policy", "check", "--help"), ("status", "--json"))
_MOST_MS = 100.0
_EMPTY = "import click\n@click.group()\n@click.version_option('1')\ndef cli():\n    'An empty one.'\ncli()"
_MOST_TIMES_EMPTY = 2.0


def run(options: argparse.Namespace) -> Report:
    """All rows."""
    report = Report("cli")
    lomi = str(Path(sys.executable).with_name("lomi"))
    with opened_broker(scopes=("workspace.read",)) as broker:
        for words in _WORDS:
            commands = {"lomi": [lomi, *words], "import click": [sys.executable, "-c", "import click"]}
            if words == ("--help",):
                commands["empty"] = [sys.executable, "-c", _EMPTY, *words]
            taken: dict[str, list[float]] = {name: [] for name in commands}
            for _ in range(options.starts + 1):
                for name, command in commands.items():
                    taken[name].append(_timed(command, broker.environment))
            ours, bare = taken["lomi"][1:], taken["import click"][1:]
            report.rows.append(row(f"lomi {' '.join(words)}", ours, target=_MOST_MS))
            report.rows.append(row("  beside a bare import", ours, ("python -c 'import click'", bare)))
            if "empty" in taken:
                yardstick = ("an empty click program", taken["empty"][1:])
                report.rows.append(row("  beside an empty click program", ours, yardstick, target=_MOST_TIMES_EMPTY))
    return report


def _timed(command: Sequence[str], environment: Mapping[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise BenchFailedError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode()[-400:]}")
    return (time.perf_counter() - began) * 1e3


def add_options(parser: argparse._ActionsContainer) -> None:
    """How many starts."""
    parser.add_argument("--starts", type=int, default=15)
