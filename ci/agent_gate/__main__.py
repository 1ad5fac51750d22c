"""`python -m agent_gate`."""

import os
import sys

from agent_gate.main import main

try:
    code = main()
    sys.stdout.flush()
except BrokenPipeError:
    # Whoever read the table has seen enough; what is still buffered must not be written at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 1
raise SystemExit(code)
