"""`python -m lomi.demo` is `lomi demo`."""

import sys

from lomi.cli.main import run

sys.exit(run(["demo", *sys.argv[1:]]))
