"""Where all state lives: `LOMI_HOME`, else `lomi` below the user's state directory."""

from collections.abc import Mapping
from pathlib import Path


def state_home(environment: Mapping[str, str]) -> Path:
    """The state directory as an absolute path; it need not exist yet."""
    if chosen := environment.get("LOMI_HOME"):
        return Path(chosen).absolute()
    base = environment.get("XDG_STATE_HOME", "")
    # The XDG rules say that a relative path counts as unset.
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "lomi"
