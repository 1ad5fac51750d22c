"""Named points where a test may kill the broker, to see what recovery makes of it.

`LOMI_FAILPOINT=name` kills the process with SIGKILL at the first pass, `name:3` at the third. Nothing else reads it.
"""

import os
import signal
from collections.abc import Mapping

POINTS = (
    "admitted",
    "before_commit",
    "after_commit",
    "reserved",
    "decided",
    "started",
    "dispatched",
    "effect_begun",
    "effect_done",
    "before_settle",
    "settled",
    "artifact_reserved",
    "artifact_staged",
    "artifact_ready",
    "artifact_final",
)


class Failpoints:
    """Counts passes of the one armed point of this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        name, _, count = environment.get("LOMI_FAILPOINT", "").partition(":")
        if name and name not in POINTS:
            raise ValueError(f"LOMI_FAILPOINT={name}: no such failpoint; one of {', '.join(POINTS)}")
        self._name = name
        self._left = int(count or 1)

    def reach(self, name: str) -> None:
        """Pass a point; the armed one ends the process at its count."""
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
