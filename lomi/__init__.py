"""Lomi: a local broker that shares devices, browsers and terminals under one rule set.

`with lomi.connect() as lab:` is the Python API; `lomi.connect_async` the same for code with an event loop.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lomi.client.aio import connect_async
    from lomi.client.lab import connect

__all__ = ["connect", "connect_async"]


def __getattr__(name: str) -> object:
    """Import the API when it is first asked for: everything of ours imports this package, hardly anything the API."""
    if name == "connect":
        from lomi.client.lab import connect  # noqa: PLC0415

        return connect
    if name == "connect_async":
        from lomi.client.aio import connect_async  # noqa: PLC0415

        return connect_async
    raise AttributeError(f"module 'lomi' has no attribute {name!r}")
