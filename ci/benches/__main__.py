"""The program of `ci/bench`."""

import sys

from ending.overseer import overseen

if __name__ == "__main__":
    sys.exit(overseen("ci/bench", ["-m", "benches.program"]))
