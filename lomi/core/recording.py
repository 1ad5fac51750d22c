"""Videos of targets while they run: one for each generation, kept as an artifact when it ends, whoever ended it.

Frames come as the library sends them, when the picture changes; each is encoded in a thread and the next one waits its
turn, so that a busy screen costs no more than ten pictures a second. A video ends when it is stopped or dropped, with
the lease, or with the target; but for a drop, what there is by then is stored under the name that its start gave out.
"""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from lomi.contract.artifact import Artifact, ArtifactSource
from lomi.contract.codes import ErrorCode
from lomi.core.ids import GenerationId
from lomi.core.log_fields import fields
from lomi.core.port import Call, Ledger, StoredArtifact
from lomi.core.refusal import Refusal
from lomi.core.video import Video, still_of

MOST_S = 600.0
_FIRST_S = 2.0
"""How long a start waits for the first frame."""

_log = logging.getLogger("lomi.recording")

Pictures = Callable[[], AsyncGenerator[bytes, None]]
"""Pictures (JPEG or PNG) from now on, the newest there is whenever one is asked for; they end with the target."""


@dataclass(slots=True, eq=False)
class _Recording:
    call: Call[Any]
    artifact_id: str
    source: Callable[[], ArtifactSource]
    video: Video
    over: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False
    last: bytes | None = None
    stored: StoredArtifact | None = None
    refused: Refusal | None = None


class Recordings:
    """The videos of one adapter's targets that are being taken."""

    def __init__(
        self,
        ledger: Ledger,
        tasks: asyncio.TaskGroup,
        *,
        seconds: float = MOST_S,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._ledger = ledger
        self._tasks = tasks
        self._seconds = seconds
        self._now = now
        self._new_id = new_id
        self._running: dict[GenerationId, _Recording] = {}

    async def start(self, call: Call[Any], source: Callable[[], ArtifactSource], pictures: Pictures) -> Artifact:
        """Begin; returns, once the first frame is there, the artifact that the video will be: its id, no bytes yet.

        Raises:
            Refusal: CONTROL_REVOKED (`lease_lost`) without the lease; TARGET_BUSY (`video_running`).
        """
        generation = self._leased(call)
        if generation in self._running:
            raise Refusal(ErrorCode.TARGET_BUSY, "video_running")
        one = self._running[generation] = _Recording(call, self._new_id(), source, Video(self._now()))
        self._tasks.create_task(self._record(generation, one, pictures), name=f"video {generation}")
        with suppress(TimeoutError):
            await asyncio.wait_for(one.begun.wait(), _FIRST_S)
        return self._empty(one)

    async def stop(self, call: Call[Any], last: bytes | None) -> StoredArtifact:
        """End it with the picture that is shown now, and keep it.

        Raises:
            Refusal: as `start`; TARGET_NOT_FOUND (`no_such_video`); DEADLINE_EXCEEDED (`video_empty`) when no frame
                ever came; what the artifact store refuses.
        """
        one = self._ended(call)
        one.last = last
        one.over.set()
        await one.done.wait()
        if one.stored is None:
            raise one.refused or Refusal(ErrorCode.DEADLINE_EXCEEDED, "video_empty")
        return one.stored

    def drop(self, call: Call[Any]) -> Artifact:
        """End it and keep nothing.

        Raises:
            Refusal: as `start`; TARGET_NOT_FOUND (`no_such_video`).
        """
        one = self._ended(call)
        one.dropped = True
        one.over.set()
        return self._empty(one)

    def require(self, call: Call[Any]) -> None:
        """Check that the caller has a video running here.

        Raises:
            Refusal: as `drop`.
        """
        if self._leased(call) not in self._running:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, "no_such_video")

    def end(self, generation: GenerationId) -> None:
        """Record nothing more, and keep what there is: the lease is over, and nobody asked. Does not wait."""
        one = self._running.pop(generation, None)
        if one is not None:
            one.over.set()

    def close(self) -> None:
        """End all and keep nothing: the broker ends, and those who could ask for it with it."""
        for one in self._running.values():
            one.dropped = True
            one.over.set()
        self._running.clear()

    def _leased(self, call: Call[Any]) -> GenerationId:
        """A video shows all that is done, so only whoever may do it may record it."""
        assert call.generation is not None
        held = self._ledger.lease(call.generation)
        if held is None or held.session_id != call.session_id:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "lease_lost")
        return call.generation

    def _ended(self, call: Call[Any]) -> _Recording:
        self.require(call)
        assert call.generation is not None
        return self._running.pop(call.generation)

    def _empty(self, one: _Recording) -> Artifact:
        now_s = int(self._now())
        return Artifact(
            id=one.artifact_id,
            media_type="application/octet-stream",
            byte_length=0,
            sha256=hashlib.sha256(b"").hexdigest(),
            created_at_seconds=now_s,
            expires_at_seconds=now_s,
            source=one.source(),
            image=None,
        )

    async def _record(self, generation: GenerationId, one: _Recording, pictures: Pictures) -> None:
        try:
            try:
                await self._watch(one, pictures)
            except ExceptionGroup:
                # A source that fails in a way it does not document costs its video's rest, and no broker.
                _log.exception("a video ended early", extra=fields(generation=generation))
            if self._running.get(generation) is one:
                del self._running[generation]
            if one.last is not None:
                await _keep(one, one.last)
            if not one.dropped:
                await self._store(one)
        finally:
            one.done.set()

    async def _watch(self, one: _Recording, pictures: Pictures) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + self._seconds
        async with aclosing(pictures()) as coming:
            while (left := until - clock()) > 0:
                picture = await _next(coming, one.over, left)
                if one.over.is_set() or (picture is None and clock() < until):
                    return
                if picture is not None:
                    await _keep(one, picture)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(one.over.wait(), one.video.interval_s)
        await one.over.wait()  # no more of it is recorded, but whoever began it may still ask for it

    async def _store(self, one: _Recording) -> None:
        packed = await asyncio.to_thread(one.video.pack, asyncio.get_running_loop().time())
        if packed is None:
            return
        try:
            one.stored = await self._ledger.artifacts.put_bytes(
                one.call, packed, one.source(), artifact_id=one.artifact_id
            )
        except Refusal as refused:
            one.refused = refused


async def _next(pictures: AsyncGenerator[bytes, None], over: asyncio.Event, left: float) -> bytes | None:
    """The next picture; None when there will be none, or not before the end.

    Raises:
        ExceptionGroup: their source failed.
    """
    async with asyncio.TaskGroup() as tasks:
        coming, ending = tasks.create_task(_one(pictures)), tasks.create_task(over.wait())
        await asyncio.wait({coming, ending}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        coming.cancel()
        ending.cancel()
    return None if coming.cancelled() else coming.result()


async def _one(pictures: AsyncGenerator[bytes, None]) -> bytes | None:
    async for picture in pictures:
        return picture
    return None


async def _keep(one: _Recording, picture: bytes) -> None:
    at = asyncio.get_running_loop().time()
    # A picture that can't be read is one the target has not finished drawing: the next one will do.
    with suppress(OSError, ValueError, SyntaxError):  # Pillow raises each of them for broken bytes
        one.video.add(await asyncio.to_thread(still_of, picture), at)
        one.begun.set()
