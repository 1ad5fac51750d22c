"""`python -m agent_gate`."""

import importlib
import os
import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Reading what it needs takes a second. Until the gate hears signals itself it has started nothing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

try:
    code: int = importlib.import_module("agent_gate.main").main()
    sys.stdout.flush()
except BrokenPipeError:
    # Whoever read the table has seen enough; what is still buffered must not be written at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 1
raise SystemExit(code)
