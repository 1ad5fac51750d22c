"""What is recorded while an attempt runs, once it has a phone or a page: videos and traces in Playwright's form.

The broker records, bounded; here is only who was told to, and how what it kept gets beside the report.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lomi.client.errors import (
    BrokerFaultError,
    ControlRevokedError,
    StaleGenerationError,
    TargetNotFoundError,
    ToolError,
)
from lomi.client.lab import Lab, Page, Phone

_STORED_S = 5.0
"""How long what ended by itself may take to be there."""
_PAUSE_S = 0.05
_ENDED = (TargetNotFoundError, StaleGenerationError, ControlRevokedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """One that was begun. It may have ended with its device: the broker has what there was, under the same id."""

    device: Phone | Page
    generation: str
    artifact_id: str

    def fetch(self, lab: Lab, into: Path) -> str:
        """End it and write it to a new file; its artifact's id.

        Raises:
            ToolError: it can't be had.
            BrokerFaultError, OSError: as `Lab.download`.
        """
        with suppress(*_ENDED):
            self.device.stop_video()
        end = time.monotonic() + _STORED_S
        while True:
            try:
                lab.download(self.artifact_id, into)
            except TargetNotFoundError:
                if time.monotonic() > end:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return self.artifact_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Playwright's trace of a page, which ends with the page."""

    page: Page
    generation: str

    def fetch(self, lab: Lab, into: Path) -> str:
        """End it and write the zip to a new file; its artifact's id.

        Raises:
            ToolError: it can't be had.
            BrokerFaultError, OSError: as `Lab.download`.
        """
        kept = self.page.stop_trace()
        lab.download(kept.id, into)
        return kept.id


class Films:
    """The recordings of one attempt. What can't be begun never fails a test; `troubles` say what and why.

    Attributes:
        videos: those that were begun and not let go.
        traces: likewise.
    """

    def __init__(self) -> None:
        self.videos: list[Video] = []
        self.traces: list[Trace] = []
        self.troubles: list[str] = []

    def begin(self, device: Phone | Page, *, video: bool, trace: bool) -> None:
        """Record a device from now on."""
        if video:
            with self._noting("video"):
                begun = device.start_video()
                self.videos.append(Video(device=device, generation=device.generation, artifact_id=begun.id))
        if trace and isinstance(device, Page):
            with self._noting("Playwright's trace"):
                device.start_trace()
                self.traces.append(Trace(page=device, generation=device.generation))

    def drop(self, device: Phone | Page) -> None:
        """Let go of a device: what nobody fetched is not wanted. A trace ends with its page."""
        for video in [one for one in self.videos if one.device is device]:
            self.videos.remove(video)
            with suppress(ToolError, BrokerFaultError):
                device.drop_video()
        self.traces = [one for one in self.traces if one.page is not device]

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ToolError, BrokerFaultError) as error:
            self.troubles.append(f"{what}: {error}")
