"""The command line of `ci/bench`, run by `benches`, which ends it with all that it has started."""

import argparse
import importlib
import os
import sys
from pathlib import Path

from benches.peers import default_folder
from benches.rows import Report, write_json

BENCHES = {
    "spine": "calls, durable mutations, connects, an idle broker, a long run",
    "android": "tap, snapshot, capture, beside raw adb and @mobilenext/mobile-mcp on one simulated phone",
    "browser": "click, navigate, fill, snapshot, capture, beside @playwright/mcp and chrome-devtools-mcp",
    "egress": "a page load with and without the egress proxy",
    "store": "a durable receipt beside a bare commit, and group commit",
    "mcp": "calls, pictures and starts of the MCP helper beside the SDK's own server",
    "cli": "how soon a command is there",
    "plugin": "what the pytest plugin's fixtures add to a test, beside pytest-playwright's",
    "lab": "a plan beside pytest-xdist, a shard, a warm pool beside a cold one, eight phones beside one",
}


def main() -> int:
    """Run one bench, or all of them one after the other."""
    # Ours only: no process that is measured may find this package.
    os.environ.pop("PYTHONPATH", None)
    parser = argparse.ArgumentParser(
        prog="ci/bench",
        description="Figures of Lomi, each beside a yardstick of the same run. Compare ratios, never two runs.",
    )
    chosen = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    modules = {name: importlib.import_module(f"benches.{name}") for name in BENCHES}
    for name, text in {**BENCHES, "all": "every bench, each with its defaults"}.items():
        sub = chosen.add_parser(name, help=text)
        sub.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
        sub.add_argument("--peers", type=Path, default=default_folder(), metavar="DIR", help="where npm peers are kept")
        sub.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
        if name in modules:
            modules[name].add_options(sub)
    options = parser.parse_args()
    reports: list[Report] = []
    for name in modules if options.bench == "all" else (options.bench,):
        own = parser.parse_args([name]) if options.bench == "all" else options
        own.peers = options.peers.absolute()
        report = modules[name].run(own)
        report.print()
        reports.append(report)
        if options.json is not None:
            write_json(options.json, reports)
    missed = [f"{report.bench}: {one.what}" for report in reports for one in report.missed]
    print("\nmissed: " + "; ".join(missed) if missed else "\nall targets met")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
