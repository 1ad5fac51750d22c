"""Content by its hash, in a folder."""

import hashlib
import os
import tempfile
from pathlib import Path


class FolderShelf:
    """Keeps content in a folder, one file a hash. A file's name is its promise: it is written once, whole.

    Args:
        folder: made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Keep some content and return its SHA-256 in hex.

        Raises:
            OSError: the disk is full, or the folder is gone.
        """
        digest = hashlib.sha256(content).hexdigest()
        target = self._folder / digest
        if not target.exists():
            # A name of its own: others may put the same content at the same moment.
            descriptor, name = tempfile.mkstemp(prefix=f".{digest}.", dir=self._folder)
            beside = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                beside.replace(target)
            finally:
                beside.unlink(missing_ok=True)
        return digest

    def path_of(self, sha256: str) -> Path:
        """Where the content lies.

        Raises:
            KeyError: it is not here.
        """
        found = self._folder / sha256
        if len(sha256) != 64 or not sha256.isalnum() or not found.is_file():
            raise KeyError(sha256)
        return found
