"""The durable memory: the only place with SQL."""

from lomi.store.store import Store

__all__ = ["Store"]
