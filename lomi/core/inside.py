"""How a process can tell that it runs inside a terminal of a broker."""

TERMINAL_MARK = "LOMI_TERMINAL"
"""Set in the environment of every terminal that a broker starts: what adds authority refuses to run there."""
