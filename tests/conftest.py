"""Makes `harness` and the other packages beside this file importable from every test."""

import signal

import pytest

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that: their Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the process that forks brokers."""
    from harness.process import close_nursery

    close_nursery()
