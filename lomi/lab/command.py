"""`lomi lab run` as a command: run, say what happens, leave the folder, the annotations and the exit code."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lomi.lab.engines.opening import UnknownEngineError
from lomi.lab.lanes import HostClock
from lomi.lab.outcome import CANCELLED, WRONG_PLAN
from lomi.lab.plan import PlanError
from lomi.lab.report.annotations import annotations
from lomi.lab.run import RunEnd, RunOrder, run_plan
from lomi.report.folder import FolderTakenError
from lomi.report.markup import visible

_LONGEST = 2000


def run_command(plan: Path, arguments: tuple[str, ...], into: Path | None, engine: str, *, as_json: bool) -> int:
    """Run a plan; the exit code, as docs/cli.md lists them."""
    order = RunOrder(
        plan=plan,
        arguments=arguments,
        environment=os.environ,
        told=_say,
        today=datetime.now(UTC).date(),
        into=into,
        engine=engine,
        clock=HostClock(),
    )
    try:
        end = asyncio.run(run_plan(order))
    except PlanError as error:
        for fault in error.faults:
            sys.stderr.write(f"lomi: {visible(str(plan))}: {_lines(str(fault))}\n")
        sys.stderr.write("hint: docs/ci.md shows a plan, and what each field means\n")
        return WRONG_PLAN
    except FolderTakenError as error:
        sys.stderr.write(f"lomi: {error}\nhint: name another folder with --into\n")
        return WRONG_PLAN
    except UnknownEngineError as error:
        sys.stderr.write(f"lomi: {error}\nhint: `lomi lab run --help`\n")
        return WRONG_PLAN
    except OSError as error:
        sys.stderr.write(f"lomi: the report can't be written: {error}\nhint: name another folder with --into\n")
        return WRONG_PLAN
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("lomi: cancelled without a report; what the run had started has been ended\n")
        return CANCELLED
    _tell(end, order, as_json=as_json)
    return end.exit_code


def _say(line: str) -> None:
    """One line for people; it begins with a word of ours, so no text in it is a command to a CI."""
    sys.stderr.write(f"{visible(line).replace(chr(10), ' ').replace(chr(9), ' ')[:_LONGEST]}\n")
    sys.stderr.flush()


def _lines(text: str) -> str:
    return "\n".join(f"  {line}" if number else line for number, line in enumerate(visible(text).splitlines()))


def _tell(end: RunEnd, order: RunOrder, *, as_json: bool) -> None:
    run = end.report
    if order.environment.get("GITHUB_ACTIONS") == "true":
        for line in annotations(run, _prefix(end, order)):
            sys.stdout.write(f"{line}\n")
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in run.counts.items() if count)
    _say(f"{run.outcome}: {counts} of {len(run.tests)} in {run.wall_s:.1f} s, {run.retries} retries")
    for line in run.warnings:
        _say(f"warning: {line}")
    if end.unwritten is not None:
        _say(f"lomi: {end.unwritten}")
    if as_json:
        told = {"outcome": run.outcome, "exitCode": end.exit_code, "counts": run.counts, "report": str(end.folder)}
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    else:
        sys.stdout.write(f"{end.folder}\n")
    sys.stdout.flush()


def _prefix(end: RunEnd, order: RunOrder) -> str:
    """Where the tests' folder lies in the repository that GitHub checked out, with `/` at the end, or nothing."""
    root = order.environment.get("GITHUB_WORKSPACE")
    if root is None or not end.tests.is_relative_to(Path(root).resolve()) or end.tests == Path(root).resolve():
        return ""
    return f"{end.tests.relative_to(Path(root).resolve()).as_posix()}/"
