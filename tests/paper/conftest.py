"""Fixtures: a private adb server for each test or module, and a phone shared by the tests that only look."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paper.lab import Lab, RunningPhone, phone


@contextmanager
def a_lab(keys: Path) -> Iterator[Lab]:
    """A private world with an adb server; its path is short because socket paths must be."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        made = Lab(Path(root))
        for name in ("adbkey", "adbkey.pub"):
            (made.root / name).write_bytes((keys / name).read_bytes())
        with made.server():
            yield made


@pytest.fixture(scope="session")
def keys() -> Iterator[Path]:
    """A directory with an adb key pair; making one takes as long as a boot."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        maker = Lab(Path(root))
        maker.make_keys()
        yield maker.root


@pytest.fixture
def lab(keys: Path) -> Iterator[Lab]:
    """A private world with an adb server."""
    with a_lab(keys) as made:
        yield made


@pytest.fixture(scope="module")
def shared_lab(keys: Path) -> Iterator[Lab]:
    """The same, for a whole module."""
    with a_lab(keys) as made:
        yield made


@pytest.fixture(scope="module")
def shared_phone(shared_lab: Lab) -> Iterator[RunningPhone]:
    """A booted phone for tests that do not change what others see."""
    with phone(shared_lab) as running:
        yield running
