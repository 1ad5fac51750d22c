"""The dispatch border: the one place where an adapter's unforeseen exception becomes a value, and is logged."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from lomi.core.refusal import EffectFailed, Refusal

T = TypeVar("T")
_log = logging.getLogger("lomi.broker")


async def captured(work: Awaitable[T]) -> T | Exception:
    """The result of `work`, or the exception that it ended with. Cancellation passes through."""
    try:
        return await work
    except (Refusal, EffectFailed, TimeoutError) as said:
        return said
    except asyncio.CancelledError:
        raise
    except Exception as unforeseen:  # noqa: BLE001  the named border of dispatch
        _log.exception("an adapter failed in a way it does not document")
        return unforeseen
