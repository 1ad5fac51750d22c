"""Makes `harness` and the other packages beside this file importable from every test."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# How long the machine lets one example wait says nothing of what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

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
