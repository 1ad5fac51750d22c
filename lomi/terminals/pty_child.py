"""Runs first in a new session: opens the PTY, which becomes the controlling terminal, and becomes the shell.

A program of its own, since code between fork and exec is not safe in a process with threads.

Signals that are ignored here have their default back: SIGPIPE and SIGXFSZ, which Python ignores, and those which
nohup or `&` in a script made the broker ignore; none is blocked. A shell can't undo that, and what it starts would not
hear Ctrl-C, a hang-up or the end of a pipe.
"""

import os
import signal
import sys

if __name__ == "__main__":
    name, *command = sys.argv[1:]
    for ignored in signal.valid_signals():
        if signal.getsignal(ignored) is signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    descriptor = os.open(name, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(descriptor, number)
    if descriptor > 2:
        os.close(descriptor)
    os.execvp(command[0], command)  # noqa: S606  the shell that was asked for, no shell in between
