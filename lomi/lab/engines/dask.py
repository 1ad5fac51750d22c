"""The engine behind `dask://HOST:PORT`: a cluster of hosts of which this home is a member."""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from lomi.disk.home import state_home
from lomi.lab.engine import EngineFailedError
from lomi.lab.engines.dask_engine import DaskEngine, DaskSetting, opened_dask_engine
from lomi.lab.engines.local import LocalSetting
from lomi.lab.engines.opening import UnknownEngineError
from lomi.lab.host_place import ClusterAbsentError, ClusterPlace


class ClusterUnusableError(UnknownEngineError):
    """Raised when the cluster can't be used from here: no membership, no scheduler, or no host."""


@asynccontextmanager
async def opened_engine(address: str, setting: LocalSetting) -> AsyncIterator[DaskEngine]:
    """Connect as the member that the home is, and wait for the first host.

    Raises:
        ClusterUnusableError: see there.
    """
    place = ClusterPlace(state_home(setting.environment))
    async with AsyncExitStack() as stack:
        try:
            place.read()
            run = f"run-{secrets.token_hex(6)}"
            ours = DaskSetting(address=address, place=place, run=run, plan=setting.plan, shelf=setting.shelf)
            engine = await stack.enter_async_context(opened_dask_engine(ours))
        except (ClusterAbsentError, EngineFailedError) as failed:
            raise ClusterUnusableError(str(failed)) from failed
        yield engine
