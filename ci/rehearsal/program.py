"""The command line of `ci/harness`, run by `rehearsal`, which ends it with all that it has started."""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from rehearsal.images import absent, resolved
from rehearsal.place import BrokerTroubleError
from rehearsal.play import ExpectationError, play
from rehearsal.scenario import Scenario, ScenarioError, find, load
from rehearsal.transcript import Transcript, difference, whole_digest
from rehearsal.values import UnknownNameError

OK, DIFFERS, WRONG_USE, SKIPPED = 0, 1, 2, 77
"""Exit codes: reproduced; a difference or a wrong answer; wrong use; nothing was run (the reason is printed)."""


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="ci/harness",
        description="Play scenarios against a real broker, several times, and hold the transcripts against each other.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="play scenarios")
    run.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="names or .toml files; default: all")
    run.add_argument("--image", default="paper", help="image of the phone; `paper` is the newest simulated one")
    run.add_argument("--seed", type=int, default=7)
    run.add_argument("--repeat", type=int, default=2, metavar="N", help="how often each is played (default 2)")
    run.add_argument("--into", type=Path, metavar="DIR", help="write the transcripts there, one JSON object per line")
    run.add_argument("--expect", metavar="DIGEST", help="fail unless the digest is this one (its first digits do)")
    commands.add_parser("list", help="list the scenarios")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run; the exit code."""
    _forget_own_path()
    options = parsed(arguments)
    try:
        if options.command == "list":
            for path in find(()):
                print(f"{path.stem:24} {load(path).title}")
            return OK
        chosen = [(path, load(path)) for path in find(options.scenarios)]
    except ScenarioError as error:
        print(f"harness: {error}", file=sys.stderr)
        return WRONG_USE
    try:
        return asyncio.run(_run(options, chosen))
    except (ExpectationError, UnknownNameError, BrokerTroubleError) as error:
        print(f"harness: {error}", file=sys.stderr)
        return DIFFERS


def _forget_own_path() -> None:
    """No process that is played with may find this package."""
    own = str(Path(__file__).parent.parent)
    others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and each != own]
    os.environ.pop("PYTHONPATH", None)
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)


async def _run(options: argparse.Namespace, chosen: list[tuple[Path, Scenario]]) -> int:
    image = resolved(options.image)
    reason = absent(image)
    if reason:
        print(f"harness: skipped: {reason}", file=sys.stderr)
        return SKIPPED
    first: list[Transcript] = []
    same = True
    for path, scenario in chosen:
        if scenario.simulated_only and not image.simulated:
            print(f"{path.stem:24} skipped: {scenario.simulated_only}")
            continue
        runs: list[Transcript] = []
        for number in range(1, options.repeat + 1):
            began = time.monotonic()
            made = await play(path.stem, scenario, image=image.name, simulated=image.simulated, seed=options.seed)
            took = time.monotonic() - began
            print(
                f"{path.stem:24} run {number}  {len(made.entries):4} entries  {made.digest[:16]}  {took:5.1f} s",
                flush=True,
            )
            if options.into is not None:
                options.into.mkdir(parents=True, exist_ok=True)
                made.write(options.into / f"{path.stem}-{number}.jsonl")
            runs.append(made)
        lines = [line for run in runs[1:] for line in difference(runs[0].entries, run.entries)]
        print("\n".join(lines) + ("\n" if lines else ""), end="")
        same = same and not lines
        first.append(runs[0])
    return _verdict(options, image.name, first, same=same)


def _verdict(options: argparse.Namespace, image: str, first: list[Transcript], *, same: bool) -> int:
    if not first:
        print("harness: skipped: no chosen scenario runs on this image", file=sys.stderr)
        return SKIPPED
    digest = whole_digest(first)
    if not same:
        print("harness: the runs differ", file=sys.stderr)
        return DIFFERS
    print(f"digest {digest}  ({image}, seed {options.seed}, {options.repeat} runs alike)")
    if options.expect and not digest.startswith(options.expect.lower()):
        print(f"harness: expected the digest {options.expect}", file=sys.stderr)
        return DIFFERS
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
