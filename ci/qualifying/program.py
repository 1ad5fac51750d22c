"""The command line of `ci/qualify`."""

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ending.stopping import Stop, Stopped

from lomi.report.folder import FolderTakenError, emptied
from qualifying import machine, record, sources
from qualifying.gates import GATES, Gate, choose, strangers
from qualifying.page import missing, page
from qualifying.reading import Seen, look
from qualifying.record import Qualification, Result, Verdict
from qualifying.running import Ran, command_of, run, tail

ROOT = Path(__file__).resolve().parents[2]
CANNOT_RUN = 77
INTERRUPTED = 130
MARK = "made-by-lomi-qualify"
"""Names the file that marks a folder of logs: only such a folder is emptied for the next run."""
EPILOG = """\
exit codes: 0 every gate of this run passed, 1 one did not, 2 wrong usage or a history that can't be read,
130 told to end (Ctrl-C, SIGTERM, SIGHUP)"""


class UnusableFolderError(Exception):
    """Raised when the page or the logs can't go where they were to go: no gate has been run."""


def options() -> argparse.Namespace:
    """The command line."""
    names = ", ".join(gate.name for gate in GATES)
    parser = argparse.ArgumentParser(
        prog="ci/qualify",
        description=f"Runs the gates that this tree has ({names}), and writes docs/qualification.md and .json.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="A,B", default="", help="run only these gates")
    parser.add_argument("--skip", metavar="A,B", default="", help="leave these gates out")
    parser.add_argument("--quick", action="store_true", help="run each gate in part; qualifies nothing")
    parser.add_argument("--bound", metavar="GATE=SECONDS", action="append", default=[], help="how long a gate may take")
    parser.add_argument("--no-wheel", action="store_true", help="build no wheel (building fetches hatchling)")
    parser.add_argument("--into", type=Path, default=ROOT / "docs", metavar="DIR", help="where the page is kept")
    parser.add_argument("--work", type=Path, default=ROOT / "dist" / "qualification", metavar="DIR", help="logs")
    parser.add_argument("--gates", type=Path, default=ROOT / "ci", metavar="DIR", help="where the gates are")
    parser.add_argument("--sources", type=Path, default=ROOT, metavar="DIR", help="the checkout to qualify")
    return parser.parse_args()


def bounds(pairs: list[str]) -> dict[str, float]:
    """The bounds that were given.

    Raises:
        ValueError: a pair isn't GATE=SECONDS.
    """
    known = {gate.name for gate in GATES}
    found = {}
    for pair in pairs:
        name, _, seconds = pair.partition("=")
        if name not in known:
            raise ValueError(f"--bound {pair}: no gate is named {name!r}")
        found[name] = float(seconds)
    return found


def main(stop: Stop) -> int:
    """Run the gates, keep what they showed, say where."""
    chosen = options()
    only, skip = (frozenset(filter(None, text.split(","))) for text in (chosen.only, chosen.skip))
    try:
        plan = choose(chosen.gates, only=only, skip=skip, quick=chosen.quick)
        longer = bounds(chosen.bound)
        runs = record.read(chosen.into / "qualification.json")
        _make_folders(chosen.into, chosen.work)
    except (ValueError, record.UnreadableHistoryError, UnusableFolderError) as error:
        print(f"ci/qualify: {error}", file=sys.stderr)
        return 2
    try:
        kept = _begin(chosen, {one.gate.name: one.why_not for one in plan if one.why_not}, stop)
        runs.append(kept)
        gates = [one.gate for one in plan if not one.why_not]
        _run_all([replace(one, bound_s=longer.get(one.name, one.bound_s)) for one in gates], chosen, runs, stop)
    except Stopped:
        print("ci/qualify: interrupted; what it ran has been ended, and what was shown is kept", file=sys.stderr)
        return INTERRUPTED
    if not kept.results:
        print("ci/qualify: no gate was run; nothing was written", file=sys.stderr)
        return 2
    print(chosen.into / "qualification.md")
    lacks = missing(runs)
    print("qualified" if not lacks else "not qualified: " + "; ".join(lacks))
    return 0 if all(result.passed for result in kept.results) else 1


def _run_all(gates: list[Gate], chosen: argparse.Namespace, runs: list[Qualification], stop: Stop) -> None:
    """Run one gate after the other, and keep what each showed before the next begins.

    Raises:
        Stopped: told to stop; the gate that ran then is kept as interrupted.
    """
    kept = runs[-1]
    for gate in gates:
        stop.check()
        result = _run(gate, chosen, stop)
        kept.results.append(result)
        kept.ended = _now()
        record.write(chosen.into / "qualification.json", record.as_json(runs))
        record.write(chosen.into / "qualification.md", page(runs))
        print(f"ci/{gate.name}: {result.verdict} after {result.seconds:.0f} s", flush=True)
    stop.check()


def _make_folders(into: Path, work: Path) -> None:
    """Have both folders there, the one of logs empty but for its mark; what this program didn't make is left alone.

    Raises:
        UnusableFolderError: one of them can't be used.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableFolderError(f"{into} can't be made: {error.strerror}; --into names another folder") from error
    if into.resolve().is_relative_to(work.resolve()):
        raise UnusableFolderError(f"{work} is emptied by each run and would take the page along; name another --work")
    try:
        emptied(work, MARK)
    except FolderTakenError as error:
        said = f"{work} holds things that ci/qualify didn't make; --work names another folder"
        raise UnusableFolderError(said) from error
    except OSError as error:
        said = f"{work} can't be emptied: {error.strerror or error}; --work names another folder"
        raise UnusableFolderError(said) from error


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _begin(chosen: argparse.Namespace, not_run: dict[str, str], stop: Stop) -> Qualification:
    host = machine.host()
    wheel = (
        {"wheel": "not built: left out by --no-wheel"}
        if chosen.no_wheel
        else sources.wheel(chosen.sources, chosen.work, stop)
    )
    return Qualification(
        began=_now(),
        commit=sources.commit(chosen.sources),
        changed=sources.changed(chosen.sources),
        tree=sources.tree_hash(chosen.sources),
        wheel=wheel,
        host=host,
        versions=machine.versions(stop),
        not_run={
            **not_run,
            **_elsewhere(stop),
            **dict.fromkeys(strangers(chosen.gates), "ci/qualify has no entry for it"),
        },
    )


def _elsewhere(stop: Stop) -> dict[str, str]:
    """What no gate can show on this machine."""
    systems = {"linux": "a Linux machine", "darwin": "a macOS machine"}
    found = {
        f"on {said}": f"this is a {sys.platform} machine" for name, said in systems.items() if name != sys.platform
    }
    return {**found, **machine.absent(stop)}


def _run(gate: Gate, chosen: argparse.Namespace, stop: Stop) -> Result:
    arguments = (gate.quick or ()) if chosen.quick else gate.arguments
    command = command_of(chosen.gates / gate.name, arguments, chosen.work)
    log = chosen.work / f"{gate.name}.log"
    print(f"ci/{gate.name}: at most {gate.bound_s:.0f} s, its output is in {log}", flush=True)
    began = _now()
    ran = run(command, folder=chosen.sources, log=log, bound_s=gate.bound_s, stop=stop)
    seen = look(gate.read, log.read_text(encoding="utf-8", errors="replace"), chosen.work)
    verdict = _verdict(ran, seen)
    return Result(
        gate=gate.name,
        command=" ".join([f"ci/{gate.name}", *arguments]),
        verdict=verdict,
        code=ran.code,
        began=began,
        seconds=round(ran.seconds, 1),
        quick=chosen.quick and gate.quick != gate.arguments,
        left_processes=ran.left,
        figures=seen.figures,
        why=seen.why,
        tail="" if verdict == "passed" else tail(log, {str(chosen.sources.absolute()): ".", str(Path.home()): "~"}),
    )


def _verdict(ran: Ran, seen: Seen) -> Verdict:
    if ran.ending != "ended":
        return ran.ending
    if ran.code == CANNOT_RUN:
        return "could not run"
    if ran.code != 0:
        return "killed" if ran.code < 0 or ran.code > 128 else "failed"
    return seen.verdict
