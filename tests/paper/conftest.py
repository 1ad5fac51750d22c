"""Fixtures: a private adb server for each test module, and a phone shared by the tests that only look."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paper.lab import Lab, RunningPhone, phone


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A private world with an adb server; its path is short because socket paths must be."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        made = Lab(Path(root))
        made.make_keys()
        with made.server():
            yield made


@pytest.fixture(scope="module")
def shared_lab() -> Iterator[Lab]:
    """The same, for a whole module."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        made = Lab(Path(root))
        made.make_keys()
        with made.server():
            yield made


@pytest.fixture(scope="module")
def shared_phone(shared_lab: Lab) -> Iterator[RunningPhone]:
    """A booted phone for tests that do not change what others see."""
    with phone(shared_lab) as running:
        yield running
