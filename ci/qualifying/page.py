"""The page: the newest run and what is still true of earlier ones, and every failure that there ever was."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qualifying.gates import GATES, NO_SUCH_GATE
from qualifying.record import Qualification, Result
from qualifying.sources import BY_HAND

_LONG = 60
"""Lists longer than this are folded away."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The result that the page shows for a gate, and the run that it came from."""

    result: Result
    run: Qualification


def shown_of(runs: list[Qualification], gate: str) -> Shown | None:
    """A gate's newest result; a quick one that passed hides no full one of the same sources."""
    every = [Shown(result, run) for run in runs for result in run.results if result.gate == gate]
    if not every:
        return None
    newest = every[-1]
    if newest.result.quick and newest.result.passed:
        full = [one for one in every if not one.result.quick and one.run.tree == newest.run.tree]
        return full[-1] if full else newest
    return newest


def missing(runs: list[Qualification]) -> list[str]:
    """What keeps the newest sources from being qualified; empty when nothing does."""
    last, found = runs[-1], []
    for gate in GATES:
        seen = shown_of(runs, gate.name)
        if last.not_run.get(gate.name) == NO_SUCH_GATE:
            continue
        if seen is None:
            found.append(f"`ci/{gate.name}` was never run")
        elif seen.run.tree != last.tree:
            found.append(f"`ci/{gate.name}` was run on other sources")
        elif not seen.result.passed:
            found.append(f"`ci/{gate.name}`: {seen.result.verdict}")
        elif seen.result.quick:
            found.append(f"`ci/{gate.name}` was run only in part (--quick)")
    if last.changed:
        found.append(f"{len(last.changed)} files differ from the commit")
    return found


def page(runs: list[Qualification]) -> str:
    """The whole page, from the history alone."""
    last, lacks = runs[-1], missing(runs)
    lines = [
        "# Qualification",
        "",
        "Written by `ci/qualify` from what the gates printed; programs read `qualification.json` beside it.",
        "",
        "**Qualified**: every gate of this tree passed in full."
        if not lacks
        else "**Not qualified**: " + "; ".join(lacks) + ".",
        "",
        "## Gates",
        "",
        "| Gate | Verdict | Began (UTC) | Seconds | Sources | Counts |",
        "|---|---|---|---|---|---|",
        *(_gate_row(runs, gate.name) for gate in GATES),
        "",
        "## Sources",
        "",
        *_table({"commit": last.commit, "SHA-256 of the tree": last.tree, **last.wheel}),
        "",
        f"The tree's hash by hand: `{BY_HAND}`",
        "",
        *_list("files that differ from the commit", last.changed),
        "## Machine",
        "",
        *_table(last.host),
        "",
        "## Versions",
        "",
        *_table(last.versions),
        "",
        "## Figures",
        "",
        *_figures(runs),
        "## Not run",
        "",
        *_table(
            {name if " " in name else f"ci/{name}": why for name, why in last.not_run.items()}
            or {"-": "everything was run"}
        ),
        "",
        "## Failures kept",
        "",
        *_failures(runs),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _gate_row(runs: list[Qualification], gate: str) -> str:
    seen = shown_of(runs, gate)
    if seen is None:
        return f"| `ci/{gate}` | not run | | | | |"
    result, last = seen.result, runs[-1]
    sources = "these" if seen.run.tree == last.tree else f"others: {seen.run.tree[:12]}"
    counts = "; ".join(f"{name} {value}" for name, value in result.figures.items() if isinstance(value, int))
    part = " (in part: --quick)" if result.quick else ""
    left = f"; {result.left_processes} processes left behind" if result.left_processes else ""
    verdict = f"{result.verdict if result.passed else f'**{result.verdict}**'}{part}{left}"
    return f"| `ci/{gate}` | {verdict} | {result.began} | {result.seconds:.0f} | {sources} | {_cell(counts)} |"


def _figures(runs: list[Qualification]) -> list[str]:
    lines: list[str] = []
    for gate in GATES:
        seen = shown_of(runs, gate.name)
        if seen is None or not seen.result.figures:
            continue
        figures = seen.result.figures
        lines += [f"### `{_cell(seen.result.command)}`", ""]
        lines += _table({name: str(value) for name, value in figures.items() if not isinstance(value, list)})
        lines += [""]
        for name, value in figures.items():
            if isinstance(value, list):
                lines += _list(name, value)
    return lines


def _failures(runs: list[Qualification]) -> list[str]:
    lines: list[str] = []
    for run in reversed(runs):
        for result in run.results:
            if result.passed:
                continue
            sources = f"commit {run.commit[:12]}, tree {run.tree[:12]}"
            lines += [
                f"### `ci/{result.gate}`, {result.began}: {result.verdict}",
                "",
                f"Exit code {result.code} after {result.seconds:.0f} s; {sources}; `{_cell(result.command)}`.",
                "",
                *([_cell(result.why), ""] if result.why else []),
                *_fenced(result.tail or "(it printed nothing)"),
                "",
            ]
    return lines or ["None so far."]


def _table(rows: Mapping[str, str]) -> list[str]:
    return ["| | |", "|---|---|", *(f"| {_cell(name)} | {_cell(value)} |" for name, value in rows.items())]


def _list(title: str, values: Iterable[str]) -> list[str]:
    """A list under its name, folded away where it is long."""
    lines = [f"- {_cell(value)}" for value in values]
    if not lines:
        return []
    if len(lines) <= _LONG // 4:
        return [f"{title[:1].upper()}{title[1:]}:", "", *lines, ""]
    return ["<details>", f"<summary>{title}: {len(lines)}</summary>", "", *lines, "", "</details>", ""]


def _cell(text: str) -> str:
    """A text on one line, that can neither end a cell nor begin markup."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")


def _fenced(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", text, fence]
