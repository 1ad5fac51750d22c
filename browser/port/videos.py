"""Videos of pages: the frames of the screencast between start and stop, as one artifact."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from browser.capture import capture
from browser.errors import BrowserError
from browser.page import Page
from browser.port import views
from browser.port.lives import Lives
from lomi.contract.artifact import Artifact, ArtifactFound, BrowserSource
from lomi.contract.browser import BrowserScreenshotInput
from lomi.core.ids import GenerationId
from lomi.core.port import Call, Reply
from lomi.core.recording import Recordings


class _Shown:
    """A page as the source of its video: the last document of the grant that was in it."""

    def __init__(self, page: Page, given: BrowserScreenshotInput) -> None:
        self._page = page
        self._given = given
        self._origin = page.origin

    def _look(self) -> None:
        if self._page.origin != "null":
            self._origin = self._page.origin

    def source(self) -> BrowserSource:
        self._look()
        return views.source_of(
            self._given,
            navigation_id=self._page.navigation_id,
            origin=self._origin,
            scope="browser.capture_composite",
        )

    async def pictures(self) -> AsyncGenerator[bytes, None]:
        """The screencast; it ends with the page."""
        try:
            async with aclosing(self._page.screencast.frames()) as frames:
                async for frame in frames:
                    self._look()
                    yield frame.jpeg
        except BrowserError:
            return


class BrowserVideos:
    """The screenshot tool's other half."""

    def __init__(self, lives: Lives, recordings: Recordings) -> None:
        self._recordings = recordings
        lives.on_lease_ended.append(lambda page: recordings.end(GenerationId(page.generation)))

    async def video(self, call: Call[BrowserScreenshotInput], page: Page) -> Reply:
        """Start, stop or drop."""
        if call.input.video == "start":
            shown = _Shown(page, call.input)
            return _told(await self._recordings.start(call, shown.source, shown.pictures), "is being taken")
        if call.input.video == "drop":
            return _told(self._recordings.drop(call), "is dropped")
        self._recordings.require(call)
        return _told((await self._recordings.stop(call, await _last(page))).wire, "is kept")


async def _last(page: Page) -> bytes | None:
    """What the page shows now; None where it can't be had, as under a dialog."""
    try:
        return (await capture(page)).png
    except BrowserError:
        return None


def _told(artifact: Artifact, state: str) -> Reply:
    said = f"the video {state}: artifactId {artifact.id}, {artifact.byte_length} bytes, sha256 {artifact.sha256}"
    return Reply(data=ArtifactFound(artifact=artifact), text=said)
