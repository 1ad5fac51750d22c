"""What one look found."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

State = Literal["ok", "note", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing as it stands. `cure` is the one command that puts it right, None where there is nothing to do.

    `note` limits what can be done here, `warning` may hurt later, `problem` keeps Lomi from working.
    """

    name: str
    state: State
    said: str
    cure: str | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look. `patience_s` is how long all looks together may take."""

    home: Path
    environment: Mapping[str, str]
    patience_s: float = 2.0
    proc: Path = Path("/proc")
    kvm: Path = Path("/dev/kvm")


LONGER = "lomi doctor --within 30"
"""What helps where an answer was too slow."""
Look = Callable[[Place], tuple[Finding, ...]]
