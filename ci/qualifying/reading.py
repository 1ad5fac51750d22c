"""Reads figures out of what the gates print. Nothing here knows a figure: what isn't printed isn't claimed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qualifying.shapes import AgentGate, Bench, Row, read_json, read_xml

Figures = dict[str, int | float | str | list[str]]
"""Names and values, in the order in which the page shows them; lists are shown apart."""

_FAILURES = (
    *("tests failed", "tests error", "runs that failed", "effects not so", "steps not good", "suites that failed"),
    *("tasks failed", "digests missing"),
)
"""How the names of those figures begin that count what went wrong."""
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)\b")
_SUMMARY = re.compile(r"^[= ]*((?:\d+ [a-z]+(?:, )?)+) in ([\d.]+)s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """A gate's figures, what follows from them alone, and why, in a sentence, where it isn't `passed`."""

    figures: Figures
    verdict: Literal["passed", "failed", "showed nothing", "showed nothing that can be read"]
    why: str = ""


def look(read: Callable[[str, Path], Figures], output: str, work: Path) -> Seen:
    """What a gate's output and the run's folder show, read by its reader."""
    try:
        figures = read(output, work)
    # UnreadableError, and a number in the output that has thousands of digits.
    except ValueError as error:
        return Seen({}, "showed nothing that can be read", f"What it showed can't be read: {error}.")
    if bad := _failures(figures):
        return Seen(figures, "failed", f"Its figures show failures: {'; '.join(bad)}.")
    return Seen(figures, "passed" if figures else "showed nothing")


def _failures(figures: Figures) -> list[str]:
    """The figures by which a gate has not passed, whatever its exit code was."""
    return [f"{name} {value}" for name, value in figures.items() if name.startswith(_FAILURES) and value]


def tests(output: str, work: Path) -> Figures:
    """What pytest's last summary line, its reasons for skipping say, and the linters before it."""
    del work
    found: Figures = {}
    for name, pattern in (
        ("files that mypy --strict passed", r"^Success: no issues found in (\d+) source files"),
        ("import contracts kept", r"^Contracts: (\d+) kept, 0 broken"),
    ):
        if said := re.search(pattern, output, re.MULTILINE):
            found[name] = int(said[1])
    if steps := re.findall(r"^== (.+)$", output, re.MULTILINE):
        found["steps"] = ", ".join(steps)
    if summaries := _SUMMARY.findall(output):
        counts, seconds = summaries[-1]
        found |= {f"tests {word}": int(number) for number, word in _COUNT.findall(counts)}
        found["pytest's own seconds"] = float(seconds)
    if skipped := re.findall(r"^SKIPPED (\[\d+\] .+)$", output, re.MULTILINE):
        found["skipped"] = sorted(skipped)
    return found if found.get("tests passed") or _failures(found) else {}


def demo(output: str, work: Path) -> Figures:
    """The demo's findings, and its JUnit file."""
    ended = re.search(r"^(all good|FAILED) in ([\d.]+) s, (\d+) calls$", output, re.MULTILINE)
    if not ended:
        return {}
    good, bad = (len(re.findall(rf"^{word} +\S", output, re.MULTILINE)) for word in ("ok", "FAIL"))
    found: Figures = {"effects found exactly once": good, "effects not so": bad, "calls": int(ended[3])}
    found["runs that failed"] = int(ended[1] == "FAILED")
    found["seconds without set-up"] = float(ended[2])
    suite = read_xml(work / "demo" / "junit.xml")
    if suite is not None:
        cases = list(suite.iter("testcase"))
        found["steps in the JUnit file"] = len(cases)
        found["steps not good"] = sum(any(case.find(one) is not None for one in ("failure", "error")) for case in cases)
    return found


def conformance(output: str, work: Path) -> Figures:
    """Which suites of which era passed, and how many scenarios each."""
    del work
    lines = re.findall(r"^((?:conformance|inspector) .+?): (ok|FAILED)(.*)$", output, re.MULTILINE)
    if not lines:
        return {}
    found: Figures = {"suites that passed": sum(verdict == "ok" for _, verdict, _ in lines)}
    found["suites that failed"] = sum(verdict != "ok" for _, verdict, _ in lines)
    for name, _, rest in lines:
        _, _, passed = rest.partition("passed: ")
        if passed:
            found[f"scenarios that passed, {name}"] = len([one for one in passed.split(";") if one.strip()])
    return found


def bench(output: str, work: Path) -> Figures:
    """How many targets are met, and every one that is missed by its name and value."""
    del output
    reports = read_json(work / "bench.json", list[Bench]) or []
    rows = [(report.bench, one) for report in reports for one in report.rows]
    judged = [(name, one) for name, one in rows if one.met is not None]
    if not rows:
        return {}
    missed = [_missed(name, one) for name, one in judged if not one.met]
    found: Figures = {"benches": len(reports), "rows measured": len(rows), "rows with a target": len(judged)}
    found |= {"targets met": len(judged) - len(missed), "targets missed": len(missed)}
    found["load average at start and end"] = _loads(reports)
    found["missed"] = missed
    found["measured"] = [_measured(name, one) for name, one in rows]
    return found


def _loads(reports: list[Bench]) -> str:
    return f"{reports[0].machine.load_at_start:.1f}, {reports[-1].machine.load_at_end:.1f}"


def _missed(name: str, one: Row) -> str:
    note = f" ({one.note})" if one.note else ""
    return _measured(name, one) + note


def _measured(name: str, one: Row) -> str:
    """One row: ours, the yardstick of the same run, their ratio and the target."""
    said = f"{name}: {one.what}: {one.ours.median:.3g} {one.unit}"
    if one.yardstick is not None:
        said += f"; {one.yardstick.name}: {one.yardstick.median:.3g} {one.unit}"
    if one.ratio is not None:
        said += f"; ratio {one.ratio:.2f}"
    if one.target is not None:
        said += f", at most {one.target:g}"
    return said


def agent_gate(output: str, work: Path) -> Figures:
    """Of each server: tasks passed and failed, and what they took."""
    del output
    said = read_json(work / "agent-gate.json", AgentGate)
    if said is None or not said.outcomes:
        return {}
    found: Figures = {"model": f"{said.model}{' (tokens estimated)' if said.tokens_estimated else ''}"}
    for server in (one.name for one in said.servers):
        run = [one for one in said.outcomes if one.server == server and one.applicable]
        passed = sum(one.result == "pass" for one in run)
        found |= {f"tasks passed, {server}": passed, f"tasks failed, {server}": len(run) - passed}
        found[f"calls, {server}"] = sum(one.calls for one in run)
        found[f"tokens in and out, {server}"] = sum(one.input_tokens + one.output_tokens for one in run)
        found[f"seconds, {server}"] = round(sum(one.seconds for one in run), 1)
    return found


def harness(output: str, work: Path) -> Figures:
    """How many scenarios were played how often, what was left out, and the digest that all runs share."""
    del work
    played = re.findall(r"^(\S+) +run (\d+) +(\d+) entries", output, re.MULTILINE)
    if not played:
        return {}
    found: Figures = {"scenarios": len({name for name, _, _ in played}), "runs": len(played)}
    found["entries"] = sum(int(entries) for _, _, entries in played)
    if digest := re.search(r"^digest (\S+) +\((.+)\)$", output, re.MULTILINE):
        found["digest"] = f"{digest[1]}, {digest[2]}"
    else:
        found["digests missing"] = 1
    if skipped := re.findall(r"^(\S+ +skipped: .+)$", output, re.MULTILINE):
        found["skipped"] = [re.sub(r"\s+", " ", one) for one in skipped]
    return found
