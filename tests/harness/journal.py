"""What a simulated phone itself recorded, while it goes on recording."""

from pathlib import Path
from typing import Any

import msgspec


def written_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a journal; the end of a line may come a moment after its beginning."""
    whole, _, _ = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in whole.splitlines()]
