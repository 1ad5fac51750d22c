"""What the tests of `ci/qualify` share."""

from pathlib import Path

import pytest
from harness.gates import Bench, checkout


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """One without a gate yet, and a checkout with one file."""
    checkout(tmp_path / "checkout", {"a.py": "a"})
    return Bench(tmp_path)
