"""Videos of phones: the frames of the live view between start and stop, as one artifact."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from devices.faults import CaptureFailed, ChannelLost, DeviceFault, NotRunning
from devices.phone import Phone
from devices.port.lives import Lives
from lomi.contract.android import AndroidScreenshotInput
from lomi.contract.artifact import AndroidSource, Artifact, ArtifactFound
from lomi.core.port import Call, Reply
from lomi.core.recording import Recordings
from lomi.core.video import FASTEST_S, MOST_EDGE

_MOST_BYTES = 3 << 20
_AGAIN_S = 0.25


class AndroidVideos:
    """The screenshot tool's other half."""

    def __init__(self, lives: Lives, recordings: Recordings) -> None:
        self._recordings = recordings
        lives.on_lease_ended.append(recordings.end)

    async def video(self, call: Call[AndroidScreenshotInput], phone: Phone, source: AndroidSource) -> Reply:
        """Start, stop or drop."""
        if call.input.video == "start":
            begun = await self._recordings.start(call, lambda: source, lambda: _pictures(phone, source.generation))
            return _told(begun, "is being taken")
        if call.input.video == "drop":
            return _told(self._recordings.drop(call), "is dropped")
        self._recordings.require(call)
        return _told((await self._recordings.stop(call, await _last(phone, source.generation))).wire, "is kept")


async def _pictures(phone: Phone, generation: str) -> AsyncGenerator[bytes, None]:
    """The live view; it ends with this life of the device, and begins anew where only the way to it broke."""
    while _lives(phone, generation):
        with suppress(NotRunning, ChannelLost, CaptureFailed):
            async with phone.frames.watch(fastest_s=FASTEST_S) as frames:
                async for frame in frames:
                    if not _lives(phone, generation):
                        return
                    yield frame.png
        await asyncio.sleep(_AGAIN_S)


def _lives(phone: Phone, generation: str) -> bool:
    running = phone.running
    return running is not None and running.identity.generation == generation


async def _last(phone: Phone, generation: str) -> bytes | None:
    """What the display shows now; None where it can't be had, as of a secure window."""
    try:
        capture = await phone.eyes.capture(max_edge=MOST_EDGE, max_bytes=_MOST_BYTES, generation=generation)
    except DeviceFault:
        return None
    return capture.bounded.png


def _told(artifact: Artifact, state: str) -> Reply:
    said = f"the video {state}: artifactId {artifact.id}, {artifact.byte_length} bytes, sha256 {artifact.sha256}"
    return Reply(data=ArtifactFound(artifact=artifact), text=said)
