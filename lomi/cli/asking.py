"""Questions to the person at this terminal."""

import sys
import termios


def forget_typed_ahead() -> None:
    """Throw away what was typed before a question was there to be read: it can't have been meant as its answer."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
