"""What both ends of the pipe agree on. Imports nothing: the helper must start fast."""

MAX_LINE = 8 << 20
"""Bytes of one line, without its end."""
LINE_SECONDS = 5.0
"""From the first byte of a line to its end."""
FAREWELL_SECONDS = 0.25
"""How long calls that are under way at end of input may still answer."""
END_OF_INPUT = b"\n"
"""Stands for a line: the client has closed its side. No line can hold a line feed."""
