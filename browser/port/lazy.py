"""The engine, started when the first page is wanted: a broker that opens none carries none."""

import asyncio
import logging
from collections.abc import Mapping

from browser.engine import Engine, EngineSettings, running
from browser.errors import EngineUnavailableError
from browser.process import limitations

_log = logging.getLogger("browser")


class LazyEngine:
    """Starts the engine pool once, in a task of its own, and ends it there."""

    def __init__(self, settings: EngineSettings, environment: Mapping[str, str], tasks: asyncio.TaskGroup) -> None:
        self._settings = settings
        self._environment = environment
        self._tasks = tasks
        self._over = asyncio.Event()
        self._engine: asyncio.Future[Engine] | None = None

    @property
    def limitations(self) -> tuple[str, ...]:
        """What the user of this engine must know; the same before and after its start."""
        return limitations()

    async def get(self) -> Engine:
        """The running pool."""
        if self._engine is None:
            self._engine = asyncio.get_running_loop().create_future()
            self._tasks.create_task(self._run(self._engine), name="browser engine")
        return await asyncio.shield(self._engine)

    async def _run(self, engine: "asyncio.Future[Engine]") -> None:
        try:
            async with running(self._settings, environment=self._environment) as pool:
                engine.set_result(pool)
                try:
                    await self._over.wait()
                except asyncio.CancelledError:
                    self._engine = None  # the next page gets a pool of its own, while this one ends
                    raise
        except OSError as error:
            # The driver did not start: whoever waits is told, and the next page tries again.
            self._engine = None
            if not engine.done():
                engine.set_exception(EngineUnavailableError("engine_start_failed", said=str(error)[:300]))
        except ExceptionGroup:
            # A task of the pool failed in a way it does not document: its pages have ended with it, and nothing else.
            _log.exception("the browser engine's pool failed")

    def close(self) -> None:
        """Let the engine end, if there is one."""
        self._over.set()
