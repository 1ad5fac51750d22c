"""Makes `harness` and the other packages beside this file importable from every test."""

import signal

import pytest

# A shell starts what it puts in the background with SIGINT ignored, and nohup with SIGHUP; children inherit that: what
# they make of these signals is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the process that forks brokers."""
    from harness.process import close_nursery

    close_nursery()
