"""Runs first in a new session: opens the PTY, which becomes the controlling terminal, and becomes the shell.

A program of its own, since code between fork and exec is not safe in a process with threads.
"""

import os
import sys

if __name__ == "__main__":
    name, *command = sys.argv[1:]
    descriptor = os.open(name, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(descriptor, number)
    if descriptor > 2:
        os.close(descriptor)
    os.execvp(command[0], command)  # noqa: S606  the shell that was asked for, no shell in between
