"""The owner's stored choices: `agent-control-preferences.json` beside the store's directory (contract section 17).

A file that can't be read is kept as it is, and nothing is saved over it.
"""

from pathlib import Path
from typing import Literal

import msgspec

from lomi.disk.private import private_directory, read_private, write_private
from lomi.disk.refusal import DiskRefusedError, Reason

NAME = "agent-control-preferences.json"
MOST_BYTES = 4096


class PreferencesError(Exception):
    """Raised when the file is there and can't be read, or could not be written; it is left as it was."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class Preferences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What the owner chose. Everything is off by default."""

    version: Literal[1]
    yolo_mode: bool
    auto_start: bool | msgspec.UnsetType = msgspec.UNSET


DEFAULT = Preferences(version=1, yolo_mode=False)


def read_preferences(home: Path) -> Preferences:
    """What is stored in a home, the defaults where nothing is. Blocks.

    Raises:
        PreferencesError: the file is damaged, open to others, or of a newer version.
    """
    path = home / NAME
    try:
        return msgspec.json.decode(read_private(path, MOST_BYTES), type=Preferences)
    except DiskRefusedError as refused:
        if refused.reason is Reason.NOT_FOUND:
            return DEFAULT
        raise PreferencesError(path, f"it can't be read ({refused.reason.value})") from refused
    except msgspec.DecodeError as damage:
        raise PreferencesError(path, "it is damaged, or a newer version wrote it") from damage
    except OSError as failure:
        raise PreferencesError(path, failure.strerror or "the disk failed") from failure


def save_yolo(home: Path, *, on: bool) -> None:
    """Store whether YOLO is on and keep every other choice; the file is replaced whole. Blocks.

    Raises:
        PreferencesError: the present file can't be read, so it is kept and nothing is saved; or the disk failed.
    """
    chosen = msgspec.structs.replace(read_preferences(home), yolo_mode=on)
    path = home / NAME
    try:
        private_directory(home)
        write_private(path, msgspec.json.encode(chosen))
    except DiskRefusedError as refused:
        raise PreferencesError(path, f"it can't be written ({refused.reason.value})") from refused
    except OSError as failure:
        raise PreferencesError(path, failure.strerror or "the disk failed") from failure
