"""The phone's own record of what happened to it: one JSON line per event in `NAME.avd/paper-journal.jsonl`.

Every line has `seq` (grows by one over the life of the AVD), `boot` (the n-th boot) and `event`; the other fields
depend on the event. Lines are flushed as they are written, so a test may read them as soon as a command returned.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self

FILE_NAME = "paper-journal.jsonl"

Field = str | int | float | bool | list[str] | Mapping[str, str] | None


class Journal:
    """An append-only journal; survives reboots and new processes of the same AVD."""

    def __init__(self, target: IO[str], seq: int, boot: int) -> None:
        self._target = target
        self._seq = seq
        self.boot = boot

    @classmethod
    def opened(cls, directory: Path) -> Self:
        """Open the journal of an AVD directory and continue its numbering."""
        path = directory / FILE_NAME
        seq = boot = 0
        if path.exists():
            with path.open("r", encoding="utf-8") as existing:
                for line in existing:
                    seq += 1
                    boot += '"event": "boot"' in line
        return cls(path.open("a", encoding="utf-8"), seq, boot)

    def write(self, event: str, **fields: Field) -> None:
        """Append one event."""
        self._seq += 1
        if event == "boot":
            self.boot += 1
        line = {"seq": self._seq, "boot": self.boot, "event": event, **fields}
        self._target.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._target.flush()

    def close(self) -> None:
        """Close the file."""
        self._target.close()
