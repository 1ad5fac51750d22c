"""`python tests/guarantees [--write FILE] [--tools A,B] [--hazards A,B]`: measure the table and print or write it."""

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    """Measure; exits 1 when a cell breaks its rule."""
    from harness.process import close_nursery

    from guarantees.hazards import HAZARDS
    from guarantees.table import rendered, whole_table

    parser = argparse.ArgumentParser(prog="guarantees", description="Measure the guarantee table on a real broker.")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--tools", default="")
    parser.add_argument("--hazards", default="")
    given = parser.parse_args()
    only = [name for name in given.tools.split(",") if name]
    hazards = [hazard for hazard in HAZARDS if not given.hazards or hazard in given.hazards.split(",")]
    try:
        table = asyncio.run(whole_table(only=only, hazards=hazards))
    finally:
        close_nursery()
    text = rendered(table)
    if given.write is not None and not table.faults:
        given.write.write_text(text, encoding="utf-8")
    else:
        print(text)
    for fault in table.faults:
        print(fault, file=sys.stderr)
    return 1 if table.faults else 0


if __name__ == "__main__":
    sys.exit(main())
