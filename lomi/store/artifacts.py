"""Artifacts: immutable bytes with a hash and a source, kept for a day, bounded in every way.

A row turns ready only after the last byte is durable under its final name, so that a crash at any point leaves either a
whole artifact or none. It is reserved before that: ahead of the bytes where they come from elsewhere, beside them where
they are all there.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from lomi.contract.artifact import AndroidGeometry, Artifact, ArtifactSource, BrowserGeometry, ProjectSource
from lomi.contract.codes import Details, ErrorCode
from lomi.contract.limits import Limits
from lomi.core.artifact_rules import check_geometry, check_use
from lomi.core.failpoints import Failpoints
from lomi.core.ids import ArtifactId
from lomi.core.port import Call, Clock, StoredArtifact, TakenImage
from lomi.core.refusal import Refusal
from lomi.disk.refusal import DiskRefusedError
from lomi.disk.refusal import Reason as DiskReason
from lomi.disk.transfer import Copied, copy_verified
from lomi.store import artifact_rows
from lomi.store.apk import NotAnApk, check_apk
from lomi.store.blobs import Blobs, published_length, read_published
from lomi.store.database import Database
from lomi.store.failure import StoreUnavailable, failure_reason
from lomi.store.quota import ArtifactClass, Holding, Quota, QuotaFull
from lomi.store.recovery import Opening
from lomi.store.rows import Usage
from lomi.store.threads import in_thread, over, shut, whole

T = TypeVar("T")
MediaType = Literal["image/png", "application/vnd.android.package-archive", "application/octet-stream"]

_MEDIA: dict[ArtifactClass, MediaType] = {
    "image": "image/png",
    "apk": "application/vnd.android.package-archive",
    "file": "application/octet-stream",
}
_BEGUN_S = 0.002
"""What is asked for a picture has left by then."""
_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_REFUSED_COPY = {
    DiskReason.TOO_LARGE: (ErrorCode.ARTIFACT_TOO_LARGE, "file_too_large"),
    DiskReason.LENGTH: (ErrorCode.ARTIFACT_INVALID, "length_mismatch"),
    DiskReason.HASH: (ErrorCode.ARTIFACT_INVALID, "hash_mismatch"),
    DiskReason.CHANGED: (ErrorCode.REVISION_CONFLICT, "source_changed"),
}


class _Row(NamedTuple):
    """A row on its way into the store, and the ids of those that leave for it."""

    holding: Holding
    reserved: "asyncio.Future[None]"
    leaving: list[str]
    named: "asyncio.Future[int] | None" = None
    """The descriptor of its file, where that has its final name before there are any bytes."""


def _random_id() -> str:
    return secrets.token_hex(16)


class ArtifactStore:
    """The artifacts of one home; implements the port's `Artifacts`."""

    def __init__(
        self,
        database: Database[Opening],
        blobs: Blobs,
        quota: Quota,
        *,
        limits: Limits,
        clock: Clock,
        failpoints: Failpoints,
        new_id: Callable[[], str] = _random_id,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._quota = quota
        self._limits = limits
        self._clock = clock
        self._failpoints = failpoints
        self._new_id = new_id
        self._producers = asyncio.Semaphore(limits.producers)

    async def put_image(
        self, call: Call[Any], png: bytes, source: ArtifactSource, geometry: BrowserGeometry | AndroidGeometry | None
    ) -> StoredArtifact:
        """Store a PNG for the calling session.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, ARTIFACT_INVALID, RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        return await self._keep_image(call, TakenImage(png, source, geometry))

    async def put_taken(
        self, call: Call[Any], workspace_id: str, taking: Callable[[], Awaitable[TakenImage]]
    ) -> StoredArtifact:
        """Store a PNG that is still to be taken, its row reserved meanwhile where nothing has to leave for it.

        What `taking` raises leaves no artifact and is raised here.

        Raises:
            Refusal: as `put_image`.
        """
        rows: list[_Row] = []
        reserving = asyncio.get_running_loop().call_later(_BEGUN_S, self._reserve_early, call, workspace_id, rows)
        try:
            taken = await taking()
            reserving.cancel()
            fits = bool(rows) and self._grown(rows[0].holding, len(taken.png))
            if rows and not fits:
                await self._abandon_early(rows[0])
            return await self._keep_image(call, taken, rows[0] if fits else None)
        except BaseException:
            reserving.cancel()
            if rows:
                await self._abandon_early(rows[0])
            raise
        finally:
            if rows:
                await shut(rows[0].named)

    async def _keep_image(self, call: Call[Any], taken: TakenImage, early: "_Row | None" = None) -> StoredArtifact:
        png, source, geometry = taken
        _check_length(len(png), self._limits.image_each_bytes)
        size = _png_size(png)
        if geometry is not None:
            check_geometry(geometry, size)
        if early is not None:
            return await self._keep_taken(early, taken)
        return await self._keep(
            call, artifact_class="image", length=len(png), source=source, geometry=geometry, content=png
        )

    async def put_bytes(
        self, call: Call[Any], content: bytes, source: ArtifactSource, artifact_id: str | None = None
    ) -> StoredArtifact:
        """Store bytes of no special kind for the calling session, under an id of the adapter's if it has given one out.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        _check_length(len(content), self._limits.file_bytes)
        return await self._keep(
            call,
            artifact_class="file",
            length=len(content),
            source=source,
            geometry=None,
            content=content,
            artifact_id=artifact_id,
        )

    async def put_stream(
        self, call: Call[Any], pieces: AsyncIterator[bytes], source: ArtifactSource, *, most: int
    ) -> StoredArtifact:
        """Store bytes as they come, of at most `most`, without ever holding them in memory.

        Room for `most` is reserved until they are there. What raises in `pieces` leaves no artifact and is raised here.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        bound = min(most, self._limits.large_file_bytes)

        async def fill(artifact_id: str) -> Copied:
            async with self._staged(artifact_id) as sink:
                copied = await _poured(pieces, sink, bound)
                await in_thread(os.fsync, sink)
                return copied

        # Whoever sends the bytes may be slow, and no capture should wait for that: no producer's slot is held.
        return await self._keep(
            call,
            artifact_class="file",
            length=bound,
            source=source,
            geometry=None,
            content=fill,
            turn=contextlib.nullcontext(),
        )

    @contextlib.asynccontextmanager
    async def _staged(self, artifact_id: str) -> AsyncIterator[int]:
        """The descriptor of a new stage file; it is closed also where a cancellation comes while it is opened."""
        opening = asyncio.get_running_loop().run_in_executor(None, self._blobs.begin, artifact_id)
        try:
            yield await asyncio.shield(opening)
        finally:
            await over(opening)
            if opening.exception() is None:
                os.close(opening.result())

    def _filled(self, descriptor: int, content: bytes) -> Copied:
        self._blobs.fill(descriptor, content)
        return Copied(len(content), _sha256(content))

    def _written(self, holding: Holding, content: bytes) -> Copied:
        self._blobs.write(holding.id, content)
        self._blobs.publish(holding.id, holding.artifact_class)
        return Copied(len(content), _sha256(content))

    async def import_file(
        self,
        call: Call[Any],
        descriptor: int,
        source: ProjectSource,
        *,
        expected_length: int,
        expected_sha256: str,
        large: bool = False,
    ) -> StoredArtifact:
        """Copy an opened project file; the descriptor stays the caller's.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, ARTIFACT_INVALID (length, hash, no APK), REVISION_CONFLICT (`source_changed`),
                RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        apk = source.kind == "android_apk"
        file_limit = self._limits.large_file_bytes if large else self._limits.file_bytes
        limit = self._limits.apk_bytes if apk else file_limit
        _check_length(expected_length, limit)

        async def fill(artifact_id: str) -> Copied:
            async with self._staged(artifact_id) as sink:
                copied = await copy_verified(
                    descriptor, sink, expected_length=expected_length, expected_sha256=expected_sha256, limit=limit
                )
                await in_thread(os.fsync, sink)
                if apk:
                    await in_thread(check_apk, sink)
                return copied

        return await self._keep(
            call,
            artifact_class="apk" if apk else "file",
            length=expected_length,
            source=source,
            geometry=None,
            content=fill,
        )

    @contextlib.asynccontextmanager
    async def open(self, call: Call[Any], artifact_id: str) -> AsyncIterator[StoredArtifact]:
        """Pin an artifact that this session may use for as long as it is read; it outlives its expiry until then.

        Raises:
            Refusal: TARGET_NOT_FOUND when it is not this session's, expired, or its source is out of sight;
                SCOPE_DENIED without the scope of its source; ARTIFACT_INVALID (`artifact_corrupt`) when bytes are gone.
        """
        holding = self._quota.get(artifact_id)
        if (
            holding is None
            or holding.reserved
            or holding.session_id != call.session_id
            or holding.expires_s <= self._clock.time()
        ):
            raise Refusal(ErrorCode.TARGET_NOT_FOUND)
        holding.pins += 1
        try:
            wire = await self._wire(artifact_id)
            if wire is None:
                raise Refusal(ErrorCode.TARGET_NOT_FOUND)
            artifact = msgspec.json.decode(wire, type=Artifact)
            check_use(artifact.source, call.grant)
            stored = self._stored(holding, artifact)
            if await asyncio.to_thread(published_length, stored.path) != stored.byte_length:
                raise Refusal(ErrorCode.ARTIFACT_INVALID, "artifact_corrupt")
            yield stored
        finally:
            holding.pins -= 1

    async def content(self, stored: StoredArtifact) -> bytes:
        """The bytes of an opened artifact, proven by their hash; for pictures and files, not for whole APKs.

        Raises:
            Refusal: ARTIFACT_INVALID (`artifact_corrupt`) when they are not what was stored.
        """
        content = await asyncio.to_thread(read_published, stored.path, stored.byte_length, stored.sha256)
        if content is None:
            raise Refusal(ErrorCode.ARTIFACT_INVALID, "artifact_corrupt")
        return content

    def usage(self) -> tuple[Usage, ...]:
        """How full the artifacts are; from memory."""
        return (
            Usage("artifacts", self._quota.used("count"), self._limits.artifacts),
            Usage("artifact_bytes", self._quota.used("bytes"), self._limits.artifact_bytes),
            Usage("image_bytes", self._quota.used("image"), self._limits.image_bytes),
        )

    async def _keep(
        self,
        call: Call[Any],
        *,
        artifact_class: ArtifactClass,
        length: int,
        source: ArtifactSource,
        geometry: BrowserGeometry | AndroidGeometry | None,
        content: bytes | Callable[[str], Awaitable[Copied]],
        turn: contextlib.AbstractAsyncContextManager[None] | None = None,
        artifact_id: str | None = None,
    ) -> StoredArtifact:
        async with turn or self._producers:
            now_s = int(self._clock.time())
            holding = self._new_holding(call, artifact_class, length, now_s, artifact_id)
            async with self._whole_or_gone(holding):
                row = self._take_room(holding, source.workspace_id, now_s)
                if isinstance(content, bytes):
                    copied = await self._written_beside(row, holding, content)
                else:
                    await self._reserved(row)
                    copied = await content(holding.id)
                    await in_thread(self._blobs.publish, holding.id, holding.artifact_class)
                self._failpoints.reach("artifact_staged")
                artifact = self._described(holding, copied, source, geometry)
                await self._row_ready(holding, artifact)
            return self._ready(holding, artifact)

    async def _keep_taken(self, row: "_Row", taken: TakenImage) -> StoredArtifact:
        """Write the bytes under the name that is there already, and turn the row ready when they are durable."""
        holding = row.holding
        assert row.named is not None
        async with self._producers, self._whole_or_gone(holding):
            await self._reserved(row)
            copied = await in_thread(self._filled, await whole(row.named), taken.png)
            self._failpoints.reach("artifact_staged")
            artifact = self._described(holding, copied, taken.source, taken.geometry)
            await self._row_ready(holding, artifact)
        return self._ready(holding, artifact)

    @contextlib.asynccontextmanager
    async def _whole_or_gone(self, holding: Holding) -> AsyncIterator[None]:
        """What fails inside, or is cancelled, leaves nothing of the artifact.

        Raises:
            Refusal: for a failure of the disk or the store.
        """
        try:
            yield
        except BaseException as error:
            await self._abandon(holding)
            if (refusal := _refusal_of(error, self._blobs.path)) is not None:
                raise refusal from error
            raise

    def _described(
        self,
        holding: Holding,
        copied: Copied,
        source: ArtifactSource,
        geometry: BrowserGeometry | AndroidGeometry | None,
    ) -> Artifact:
        return Artifact(
            id=holding.id,
            media_type=_MEDIA[holding.artifact_class],
            byte_length=copied.length,
            sha256=copied.sha256,
            created_at_seconds=holding.expires_s - self._limits.retention_s,
            expires_at_seconds=holding.expires_s,
            source=source,
            image=geometry,
        )

    def _ready(self, holding: Holding, artifact: Artifact) -> StoredArtifact:
        self._quota.resize(holding, artifact.byte_length)
        holding.reserved = False
        return self._stored(holding, artifact)

    def _take_room(self, holding: Holding, workspace_id: str, now_s: int) -> "_Row":
        """Count a holding in and have its row written.

        Raises:
            Refusal: RESOURCE_EXHAUSTED (`quota_full`).
        """
        try:
            leaving = self._quota.make_room(holding, now_s)
        except QuotaFull as full:
            details = Details(limit=full.limit, need=full.need)
            raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, "quota_full", details=details) from full
        for gone in leaving:
            self._quota.remove(gone)
        self._quota.add(holding)
        ids = [gone.id for gone in leaving]
        reserved = self._database.write(
            partial(artifact_rows.reserve, holding=holding, workspace_id=workspace_id, now_s=now_s, leaving=ids),
            told=partial(self._restore, leaving),
        )
        return _Row(holding, reserved, ids)

    def _reserve_early(self, call: Call[Any], workspace_id: str, rows: "list[_Row]") -> None:
        """A row for an image of no bytes yet; none when something would have to leave for it, or nothing can."""
        now_s = int(self._clock.time())
        holding = self._new_holding(call, "image", 0, now_s)
        if self._fits(holding, now_s):
            row = self._take_room(holding, workspace_id, now_s)
            named = asyncio.get_running_loop().run_in_executor(None, self._blobs.name, holding.id, "image")
            rows.append(row._replace(named=named))

    def _grown(self, holding: Holding, length: int) -> bool:
        """Count a holding with its bytes; False when something would have to leave for them, or nothing can."""
        self._quota.remove(holding)
        holding.byte_length = length
        if not self._fits(holding, int(self._clock.time())):
            return False
        self._quota.add(holding)
        return True

    def _fits(self, holding: Holding, now_s: int) -> bool:
        try:
            return not self._quota.make_room(holding, now_s)
        except QuotaFull:
            return False

    def _new_holding(
        self, call: Call[Any], artifact_class: ArtifactClass, length: int, now_s: int, artifact_id: str | None = None
    ) -> Holding:
        return Holding(
            id=artifact_id or self._new_id(),
            artifact_class=artifact_class,
            session_id=call.session_id,
            project_id=_project_of(call),
            byte_length=length,
            expires_s=now_s + self._limits.retention_s,
        )

    async def _reserved(self, row: "_Row") -> None:
        """Wait until a row is durable; then the files of those that made room for it can go."""
        await asyncio.shield(row.reserved)
        if row.leaving:
            await in_thread(self._blobs.remove, *row.leaving)
        self._failpoints.reach("artifact_reserved")

    async def _written_beside(self, row: "_Row", holding: Holding, content: bytes) -> Copied:
        """Make row and bytes durable side by side: a crash leaves one, both or none of them, and no ready row."""
        written = asyncio.get_running_loop().run_in_executor(None, self._written, holding, content)
        try:
            await self._reserved(row)
            return await asyncio.shield(written)
        except BaseException:
            # What was written is removed next: nobody may be writing any more then.
            await over(written)
            _ = written.cancelled() or written.exception()
            raise

    def _restore(self, leaving: Sequence[Holding], failure: Exception | None) -> None:
        if failure is not None:
            for holding in leaving:
                self._quota.add(holding)

    async def _row_ready(self, holding: Holding, artifact: Artifact) -> None:
        work = partial(
            artifact_rows.make_ready,
            artifact_id=holding.id,
            byte_length=artifact.byte_length,
            sha256=artifact.sha256,
            wire=msgspec.json.encode(artifact),
        )
        await asyncio.shield(self._database.write(work, single=True))
        self._failpoints.reach("artifact_ready")
        self._failpoints.reach("artifact_final")

    async def _abandon(self, holding: Holding) -> None:
        self._quota.remove(holding)
        # Whatever of this fails or is cut short, the next opening removes a row that never turned ready and its files.
        self._database.write(partial(artifact_rows.delete, artifact_ids=[holding.id]), single=True)
        with contextlib.suppress(OSError):
            await in_thread(self._blobs.remove, holding.id)

    async def _abandon_early(self, row: _Row) -> None:
        try:
            if row.named is not None:
                with contextlib.suppress(OSError):
                    await whole(row.named)
        finally:
            await self._abandon(row.holding)

    async def _wire(self, artifact_id: str) -> bytes | None:
        try:
            return await self._database.read(partial(artifact_rows.wire, artifact_id=artifact_id))
        except StoreUnavailable as failed:
            raise Refusal(ErrorCode.STORAGE_UNAVAILABLE, failed.reason) from failed

    def _stored(self, holding: Holding, artifact: Artifact) -> StoredArtifact:
        return StoredArtifact(
            id=ArtifactId(holding.id),
            wire=artifact,
            path=self._blobs.final(holding.id, holding.artifact_class),
            byte_length=artifact.byte_length,
            sha256=artifact.sha256,
        )


async def open_artifacts(
    database: Database[Opening], directory: Path, *, limits: Limits, clock: Clock, failpoints: Failpoints
) -> tuple[ArtifactStore, int]:
    """Bring files in line with the rows that the opening left; returns the store and how many files were removed.

    Raises:
        StoreRefused: the directory is not private.
    """
    holdings = database.prepared.artifacts
    blobs = await asyncio.to_thread(Blobs, directory)
    kept = {holding.id: (holding.artifact_class, holding.byte_length) for holding in holdings}
    removed, lost = await asyncio.to_thread(blobs.recover, kept)
    if lost:
        await database.write(partial(artifact_rows.delete, artifact_ids=lost), single=True)
    gone = frozenset(lost)
    quota = Quota(limits, (holding for holding in holdings if holding.id not in gone))
    return ArtifactStore(database, blobs, quota, limits=limits, clock=clock, failpoints=failpoints), removed


def _project_of(call: Call[Any]) -> str:
    if call.project is not None:
        return call.project.id
    return "" if call.workspace is None else call.workspace.project_id


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise Refusal(ErrorCode.ARTIFACT_TOO_LARGE, "file_too_large", details=Details(limit=limit, need=length))


async def _poured(pieces: AsyncIterator[bytes], sink: int, most: int) -> Copied:
    digest, length = hashlib.sha256(), 0

    def pour(piece: bytes) -> None:
        digest.update(piece)
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(sink, rest) :]

    async for piece in pieces:
        length += len(piece)
        _check_length(length, most)
        await in_thread(pour, piece)
    return Copied(length, digest.hexdigest())


def _png_size(png: bytes) -> tuple[int, int]:
    if not png.startswith(_PNG) or len(png) < len(_PNG) + 8:
        raise Refusal(ErrorCode.ARTIFACT_INVALID)
    width, height = struct.unpack_from(">2I", png, len(_PNG))
    return width, height


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refusal_of(error: BaseException, path: Path) -> Refusal | None:
    """What the caller is told of a failure on the way; None for what is not ours to translate."""
    if isinstance(error, DiskRefusedError) and error.reason in _REFUSED_COPY:
        return Refusal(*_REFUSED_COPY[error.reason])
    if isinstance(error, NotAnApk):
        return Refusal(ErrorCode.ARTIFACT_INVALID, "not_an_apk")
    if isinstance(error, StoreUnavailable):
        return Refusal(ErrorCode.STORAGE_UNAVAILABLE, error.reason)
    if isinstance(error, OSError):
        return Refusal(ErrorCode.STORAGE_UNAVAILABLE, failure_reason(error, path))
    return None
