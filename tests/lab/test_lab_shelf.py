"""Content by its hash: whole under its name, whoever else puts the same."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lomi.lab.shelf import FolderShelf


def test_eight_threads_put_one_content(tmp_path: Path) -> None:
    """All get its hash, round after round; one file is there and nothing beside it."""
    shelf, together = FolderShelf(tmp_path / "shelf"), threading.Barrier(8)

    def put(content: bytes) -> str:
        together.wait(30)
        return shelf.put(content)

    with ThreadPoolExecutor(8) as threads:
        for number in range(40):
            content = b"%d" % number * 20_000
            sha256 = hashlib.sha256(content).hexdigest()
            assert list(threads.map(put, [content] * 8)) == [sha256] * 8
            assert shelf.path_of(sha256).read_bytes() == content
    assert len(list((tmp_path / "shelf").iterdir())) == 40
