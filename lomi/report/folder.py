"""The folder of a report: marked as one, so that only such a folder is ever emptied."""

import shutil
from pathlib import Path


class FolderTakenError(FileExistsError):
    """Raised when a folder for a report holds other things; nothing in it was touched."""


def emptied(folder: Path, mark: str) -> Path:
    """An empty folder but for its mark, a file of this name; one that has the mark already is emptied. Blocks.

    Raises:
        FolderTakenError: there is something else in it.
        OSError: it can't be made.
    """
    if folder.exists() and any(folder.iterdir()):
        if not (folder / mark).exists():
            raise FolderTakenError(f"{folder} holds other things; name another folder with --into")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / mark).touch()
    return folder
