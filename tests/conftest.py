"""Makes `harness` and the other packages beside this file importable from every test."""

import pytest


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the process that forks brokers."""
    from harness.process import close_nursery

    close_nursery()
