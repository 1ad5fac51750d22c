"""Annotations for GitHub Actions: one line a test that needs a look, escaped so that no text can end a command."""

from collections.abc import Iterable

from lomi.lab.report.model import RunReport, TestReport
from lomi.report.markup import visible

MOST = 50
"""GitHub shows few of a step; more would only fill the log."""


def annotations(run: RunReport, prefix: str) -> list[str]:
    """Lines for standard output. `prefix` is where the tests' folder lies in the repository, with `/` at its end."""
    found = [line for test in run.tests for line in _lines(test, prefix)]
    if len(found) > MOST:
        left = len(found) - MOST
        found = [*found[:MOST], f"::notice title={_property('lomi lab')}::{_text(f'{left} more are in the report')}"]
    return found


def _lines(test: TestReport, prefix: str) -> Iterable[str]:
    last = test.attempts[-1] if test.attempts else None
    file = prefix + (last.file if last is not None and last.file else test.file)
    line = last.line if last is not None and last.line else test.line
    reason = (last.reason if last is not None else "") or test.why
    if test.flaky:
        said = "; ".join(part for part in (f"passed on try {test.attempts[-1].attempt}", test.past) if part)
        yield _command("warning", prefix + test.file, test.line, f"flaky: {test.id}", said)
    elif test.state == "passed" or test.skipped:
        return
    elif not test.decides:
        yield _command("notice", file, line, f"in quarantine: {test.id}", f"{test.state}: {reason}")
    else:
        yield _command("error", file, line, f"{test.state}: {test.id}", reason or test.state)


def _command(kind: str, file: str, line: int, title: str, message: str) -> str:
    return f"::{kind} file={_property(file)},line={line},title={_property(title)}::{_text(message)}"


def _text(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
