"""From the address of an engine to the engine: this host, or a cluster's scheduler."""

import importlib
import shlex
import sys
from contextlib import AbstractAsyncContextManager

from lomi.lab.engine import Engine
from lomi.lab.engines.local import LocalSetting, opened_local_engine

_CLUSTERS = {"dask": "lomi.lab.engines.dask"}
"""Modules by scheme; each offers `opened_engine(address, setting)`."""


class UnknownEngineError(Exception):
    """Raised when an address names no engine of this build; the message says which there are."""


def opened_engine(address: str, setting: LocalSetting) -> AbstractAsyncContextManager[Engine]:
    """The engine at an address: `local`, or `dask://HOST:PORT`.

    Raises:
        UnknownEngineError: there is no such engine, or what it needs is not installed.
    """
    if address == "local":
        return opened_local_engine(setting)
    scheme = address.partition("://")[0]
    module = _CLUSTERS.get(scheme)
    if module is None or "://" not in address:
        raise UnknownEngineError(f"{address!r} is no engine; there are: local, dask://HOST:PORT")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        command = shlex.join([sys.executable, "-m", "pip", "install", "distributed>=2026.7"])
        raise UnknownEngineError(f"the engine {scheme} can't be loaded: {error}; run: {command}") from error
    opened: AbstractAsyncContextManager[Engine] = found.opened_engine(address, setting)
    return opened
