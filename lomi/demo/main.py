"""The demo as a command: run, write the report folder, print its path."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from lomi.demo.apk import find_app
from lomi.demo.junit import junit
from lomi.demo.progress import show_for
from lomi.demo.record import Run
from lomi.demo.report import report
from lomi.demo.run import RunSetting, run_demo
from lomi.demo.transcript import transcript
from lomi.report.folder import emptied

MARK = "made-by-lomi-demo"
"""Names the file that marks a folder as a report: only such a folder is emptied for the next run."""


def prepared(folder: Path) -> Path:
    """An empty report folder.

    Raises:
        FolderTakenError: there is something else in it.
        OSError: it can't be made.
    """
    return emptied(folder, MARK)


def write_report(run: Run, folder: Path) -> None:
    """Write the page, the pictures, the transcript and the JUnit file."""
    for step in run.steps:
        for picture in step.pictures.values():
            (folder / picture.name).write_bytes(picture.png)
    (folder / "report.html").write_text(report(run), encoding="utf-8")
    (folder / "transcript.json").write_bytes(transcript(run))
    (folder / "junit.xml").write_bytes(junit(run))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def _whole(folder: Path, *, offline: bool) -> Run:
    """The run and its report. Told to end, it is cancelled once: what it had started then ends whole."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    told = asyncio.Event()

    def end() -> None:
        if not told.is_set():
            told.set()
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end)
    app = await find_app(os.environ, _say, offline=offline)
    with show_for(sys.stderr) as show:
        run = await run_demo(RunSetting(folder=folder, app=app, environment=os.environ), show)
    write_report(run, folder)
    return run


def demo(into: Path, *, offline: bool) -> int:
    """Run the demo; the exit code: 0 where every step ran and every effect was found exactly once, else 1."""
    try:
        folder = prepared(into.absolute())
    except OSError as error:
        why = f"{into.absolute()}: {error.strerror}" if error.strerror else str(error)
        sys.stderr.write(f"lomi: the report can't be written: {why}\nhint: name another folder with --into\n")
        return 1
    try:
        run = asyncio.run(_whole(folder, offline=offline))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("lomi: interrupted; what the demo had started has been ended\n")
        return 130
    for finding in run.findings:
        sys.stderr.write(f"{'ok  ' if finding.good else 'FAIL'}    {finding.title}\n")
        if not finding.good:
            sys.stderr.write(f"        {finding.source}: {finding.found}\n        expected: {finding.expected}\n")
    sys.stderr.write(f"{'all good' if run.good else 'FAILED'} in {run.total_s:.1f} s, {len(run.calls)} calls\n")
    sys.stdout.write(f"{folder}\n")
    return 0 if run.good else 1
