"""How a run shows itself: a bar on a terminal, plain lines elsewhere."""

from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lomi.demo.plan import PLAN
from lomi.demo.record import CallRecord, Step

_WIDTH = max(len(planned.title) for planned in PLAN)


def line_of(step: Step) -> str:
    """One ended step in one line."""
    number = next((n for n, planned in enumerate(PLAN, 1) if planned.key == step.key), 0)
    calls = f"{len(step.calls)} call{'' if len(step.calls) == 1 else 's'}" if step.calls else ""
    verdict = "FAIL" if step.problem else "ok  "
    line = f"[{number:2d}/{len(PLAN)}] {verdict} {step.title:{_WIDTH}} {step.took_s:5.1f} s  {calls}"
    return line.rstrip() + (f"\n        {step.problem}" if step.problem else "")


class Show(Protocol):
    """A listener with a beginning and an end."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def began(self, step: Step) -> None:
        """A step has begun."""

    def called(self, step: Step, call: CallRecord) -> None:
        """A call of the step has been answered."""

    def ended(self, step: Step) -> None:
        """A step has ended."""


class Lines:
    """One plain line an ended step; for logs."""

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def began(self, step: Step) -> None:
        """Nothing: a log gets one line a step."""

    def called(self, step: Step, call: CallRecord) -> None:
        """Nothing: the calls are in the report."""

    def ended(self, step: Step) -> None:
        """The step's line, at once."""
        self._target.write(line_of(step) + "\n")
        self._target.flush()


class Bar:
    """A bar over the plan with the call under way; ended steps scroll above it."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[call]}", style="dim", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=len(PLAN), call="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def began(self, step: Step) -> None:
        """Name the step."""
        self._progress.update(self._task, description=step.title, call="")

    def called(self, step: Step, call: CallRecord) -> None:
        """Name the last call."""
        self._progress.update(self._task, description=step.title, call=f"{call.tool} {call.took_s * 1000:.0f} ms")

    def ended(self, step: Step) -> None:
        """Print the step's line above the bar."""
        self._progress.console.print(
            line_of(step), style="red" if step.problem else None, markup=False, highlight=False
        )
        self._progress.advance(self._task)


def show_for(target: TextIO) -> Show:
    """A bar where `target` is a terminal that can move its cursor, else lines."""
    console = Console(file=target)
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else Lines(target)
