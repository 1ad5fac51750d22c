"""The program of `ci/qualify`: it hears Ctrl-C before it reads the rest of itself."""

import importlib
import sys

from ending.stopping import Stop


def main() -> int:
    """Run it; the exit code."""
    stop = Stop()
    stop.listen()
    code: int = importlib.import_module("qualifying.program").main(stop)
    return code


if __name__ == "__main__":
    sys.exit(main())
