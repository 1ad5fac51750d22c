"""Videos of what a phone or a page shows, recorded by the broker."""

from abc import ABC, abstractmethod
from contextlib import suppress

from lomi.client.errors import ControlRevokedError, StaleGenerationError, TargetNotFoundError
from lomi.contract.artifact import Artifact, VideoAction


class Filming(ABC):
    """What shows something that can be recorded."""

    @abstractmethod
    async def _video(self, action: VideoAction) -> Artifact:
        """Ask the tool that takes its pictures."""

    async def start_video(self) -> Artifact:
        """Begin to record what is shown; its artifact's id is known from now on, its bytes from its end on.

        It ends with `stop_video` or `drop_video`, or with the lease or the target: what there is by then is kept too.

        Raises:
            TargetBusyError: one is being taken.
        """
        return await self._video("start")

    async def stop_video(self) -> Artifact:
        """End it; the broker keeps an animated WebP of at most 10 minutes and 4 MiB as an artifact for a day.

        Raises:
            TargetNotFoundError: none is being taken.
        """
        return await self._video("stop")

    async def drop_video(self) -> None:
        """End it and keep nothing; does nothing where none is being taken."""
        with suppress(TargetNotFoundError, StaleGenerationError, ControlRevokedError):
            await self._video("drop")
