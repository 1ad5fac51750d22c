"""The stages of a boot and what is there at each."""

import asyncio
from dataclasses import dataclass, field
from enum import IntEnum


class Stage(IntEnum):
    """How far a boot has come; each stage holds what the ones before it brought."""

    OFF = 0
    KERNEL = 1
    ADBD = 2
    SERVICES = 3
    COMPLETED = 4
    READY = 5


_INSTANT_SECONDS = {Stage.KERNEL: 0.02, Stage.ADBD: 0.08, Stage.SERVICES: 0.1, Stage.COMPLETED: 0.1, Stage.READY: 0.05}
_DEVICE_SECONDS = {Stage.KERNEL: 0.2, Stage.ADBD: 0.4, Stage.SERVICES: 0.6, Stage.COMPLETED: 0.5, Stage.READY: 0.3}


@dataclass(slots=True)
class Boot:
    """One boot's progress; `entered` tells of each stage as it is reached."""

    stage: Stage = Stage.OFF
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def enter(self, stage: Stage) -> None:
        """Reach a stage."""
        self.stage = stage
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def reached(self, stage: Stage) -> None:
        """Wait until a stage is reached."""
        while self.stage < stage:
            await self._changed.wait()

    async def left(self, stage: Stage) -> None:
        """Wait until the phone is before a stage again, as after a reboot."""
        while self.stage >= stage:
            await self._changed.wait()


def seconds_to(stage: Stage, profile: str) -> float:
    """How long a phone takes from the stage before to this one."""
    return (_DEVICE_SECONDS if profile == "device" else _INSTANT_SECONDS)[stage]
