"""The program of `ci/harness`."""

import sys

from ending.overseer import overseen

if __name__ == "__main__":
    sys.exit(overseen("ci/harness", ["-m", "rehearsal.program"]))
