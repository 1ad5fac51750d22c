"""Whose fault an error is: the test's, or of the phone, the browser or the broker under it."""

import traceback
from collections.abc import Iterator

from lomi.client.errors import BrokerFaultError, ConnectionLostError, ToolError
from lomi.lab.plugin.place import NoBrokerError
from lomi.lab.records import Cause
from lomi.link.errors import LinkError

REASONS = frozenset(
    {
        *("emulator_exited", "boot_timeout", "boot_loop", "host_error", "adb_unauthorized", "wrong_device", "offline"),
        *("channel_lost", "adb_timeout", "adb_refused", "no_memory", "no_space", "no_port", "port_taken"),
        *("avd_locked", "avd_locked_stale", "avd_image_corrupt", "not_recorded", "stop_unconfirmed"),
        *("engine_crashed", "engine_stopped", "engine_start_failed", "memory_low"),
        *("session_ended", "closing", "lease_lost", "taken_over", "disk_full", "store_failed", "store_full"),
        *("adapter_failed", "adapter_failed_before", "already_leased"),
    }
)
"""Reasons of the contract that say nothing about a test. A page's own crash (`page_crashed`) is the application's."""
_MOST_LINKS = 32


def cause_of(error: BaseException) -> Cause | None:
    """Why an error is none of the test's, looking through what it was raised from; None when it may be the test's."""
    for one in _chain(error):
        if isinstance(one, ToolError) and (isinstance(one, ConnectionLostError) or one.reason in REASONS):
            return Cause(message=_line(one), code=str(one.code), reason=one.reason)
        if isinstance(one, LinkError):
            return Cause(message=_line(one), reason=one.reason)
        if isinstance(one, BrokerFaultError | NoBrokerError):
            return Cause(message=_line(one), reason="broker_fault")
    return None


def told(error: BaseException) -> Cause:
    """The error as a test's own."""
    if isinstance(error, ToolError):
        return Cause(message=_line(error), code=str(error.code), reason=error.reason)
    return Cause(message=_line(error))


def _line(error: BaseException) -> str:
    """What it says of itself; a test's error may hold what UTF-8 can't, or be none that has words."""
    said = "".join(traceback.format_exception_only(error)).removeprefix(f"{type(error).__module__}.")
    return " ".join(said.encode("utf-8", "backslashreplace").decode().split())[:500]


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException] = [error]
    for _ in range(_MOST_LINKS):
        if not waiting:
            return
        one = waiting.pop(0)
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        linked = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if linked is not None:
            waiting.append(linked)
