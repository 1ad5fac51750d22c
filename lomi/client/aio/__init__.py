"""The typed Python API for code with an event loop. `lomi.client.lab` is the same for code without one."""

from lomi.client.aio.connecting import connect_async
from lomi.client.aio.lab import Lab
from lomi.client.aio.page import Page
from lomi.client.aio.phone import Phone
from lomi.client.aio.terminal import Terminal

__all__ = ["Lab", "Page", "Phone", "Terminal", "connect_async"]
