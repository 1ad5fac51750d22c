"""Files into and out of pages: artifacts on our side, streamed through the disk and never whole in memory."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from browser import transfers
from browser.errors import BrowserError, TransferFailedError
from browser.frames import origin_of
from browser.page import Page
from browser.pending import Download
from browser.port import asking, views
from browser.port.faults import acting, reading, refusal_of
from browser.port.lives import Lives
from browser.port.seen import Seeing, already
from browser.values import Acted
from lomi.contract.artifact import BrowserSource
from lomi.contract.browser import BrowserLogsInput
from lomi.contract.browser_files import (
    BrowserDownloaded,
    BrowserDownloadInput,
    BrowserUploaded,
    BrowserUploadInput,
    UploadTarget,
)
from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.core.port import Call, Ledger, Outcome, Permit, Plan, StoredArtifact
from lomi.core.refusal import EffectFailed, Refusal

INLINE_S = 5.0
LARGE_S = 170.0
_PIECE = 1 << 20
_UPLOADED = frozenset({"application/octet-stream", "application/vnd.android.package-archive"})


def download_source(page: Page, given: BrowserDownloadInput | BrowserLogsInput) -> BrowserSource:
    """Where the bytes of a download, a response or a trace come from."""
    return views.source_of(given, navigation_id=page.navigation_id, origin=page.origin, scope="browser.download")


async def pieces_of(path: Path) -> AsyncGenerator[bytes, None]:
    """The bytes of a file, a piece at a time."""
    descriptor = await asyncio.to_thread(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while piece := await asyncio.to_thread(os.read, descriptor, _PIECE):
            yield piece
    finally:
        os.close(descriptor)


async def length_of(path: Path) -> int:
    """How many bytes `pieces_of` will give."""
    return (await asyncio.to_thread(path.stat)).st_size


class _Room:
    """What a large file needs: its length where the answer states it, else all that it may have.

    So the answer must have begun before room is taken; small files take theirs before anything is asked for.
    """

    def __init__(self, most: int) -> None:
        self._most = most

    def take(self, length: int) -> None:
        self._most = length

    async def known(self, pieces: AsyncIterator[bytes]) -> int:
        await anext(pieces, b"")
        return self._most


class _StoppedError(Exception):
    """The caller asked to stop, or may no longer have the bytes."""


class _Asked:
    """Whether the first byte was asked for: from then on a request has reached the server."""

    def __init__(self) -> None:
        self.begun = False

    async def watch(self, pieces: AsyncIterator[bytes], permit: Permit) -> AsyncGenerator[bytes, None]:
        self.begun = True
        async for piece in pieces:
            if permit.cancelling or permit.revoked:
                raise _StoppedError
            yield piece

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors as what they prove: no artifact is there; a request may have been made."""
        try:
            yield
        except BrowserError as error:
            raise EffectFailed(refusal_of(error), partial=self.begun) from error
        except Refusal as refused:
            raise EffectFailed(refused, partial=self.begun) from refused


def upload_plan(given: BrowserUploadInput, target: transfers.UploadTarget, stored: StoredArtifact) -> Plan:
    """What a decision on an upload shows and is bound to."""
    return Plan(
        title="Attach a file to a web page",
        lines=(
            f"file {given.file_name}, {stored.byte_length} bytes",
            f"sha256 {stored.sha256}",
            f"into {target.label or 'a file input'} ({target.ref}) of {target.origin}",
            f"document {target.document_url[:200]}",
        ),
        binding=(
            *((name, str(value)) for name, value in msgspec.structs.asdict(target).items()),
            ("browser_generation", given.browser_generation),
            ("file_name", given.file_name),
            ("sha256", stored.sha256),
            ("bytes", str(stored.byte_length)),
        ),
    )


class BrowserTransfers:
    """Handlers of download and upload."""

    def __init__(self, lives: Lives, ledger: Ledger, seeing: Seeing) -> None:
        self._lives = lives
        self._ledger = ledger
        self._seeing = seeing

    async def download(self, call: Call[BrowserDownloadInput], permit: Permit) -> Outcome:
        """One address of the page's own origin, or a download that the page began, as an artifact."""
        given, page = call.input, self._lives.page(call.generation)
        if given.download_id is not None:
            return await self._begun(call, permit, page, given.download_id)
        with acting():
            page.require_free()
            transfers.require_same_origin(page, given.url)
        most = transfers.MOST_BYTES if given.large else given.max_bytes
        if not given.large:
            fetched = transfers.pieces(page, given.url, most=most, seconds=INLINE_S)
            return await self._kept(call, permit, page, fetched, most)
        room = _Room(most)
        fetched = transfers.pieces(page, given.url, most=most, seconds=LARGE_S, stated=room.take)
        return await self._kept(call, permit, page, fetched, room)

    async def _begun(self, call: Call[BrowserDownloadInput], permit: Permit, page: Page, download_id: str) -> Outcome:
        with acting():
            download = await self._over(page, permit, download_id)
        if download.path is None:
            raise refusal_of(TransferFailedError(download.reason or "network_failed"))
        length = await length_of(download.path)
        return await self._kept(call, permit, page, pieces_of(download.path), length)

    async def _over(self, page: Page, permit: Permit, download_id: str) -> Download:
        """The download once it is over; the page may be used meanwhile."""
        page.pending.require_download(download_id)
        permit.yield_turn()
        download = await page.pending.downloaded(download_id, LARGE_S)
        if download.state == "running":
            raise TransferFailedError("too_slow")
        return download

    async def _kept(
        self,
        call: Call[BrowserDownloadInput],
        permit: Permit,
        page: Page,
        pieces: AsyncGenerator[bytes, None],
        room: "int | _Room",
    ) -> Outcome:
        asked = _Asked()
        async with permit.effect():
            permit.yield_turn()
            source = download_source(page, call.input)
            try:
                with asked.told():
                    async with aclosing(pieces), aclosing(asked.watch(pieces, permit)) as watched:
                        most = room if isinstance(room, int) else await room.known(watched)
                        stored = await self._ledger.artifacts.put_stream(call, watched, source, most=most)
            except _StoppedError:
                if permit.cancelling:
                    return Outcome(result=None, state=OperationState.CANCELLED, effect=EffectState.PARTIAL)
                raise EffectFailed(Refusal(ErrorCode.CONTROL_REVOKED, "session_ended"), partial=True) from None
        return Outcome(result=BrowserDownloaded(artifact=stored.wire))

    @asynccontextmanager
    async def _artifact(self, call: Call[BrowserUploadInput]) -> AsyncIterator[StoredArtifact]:
        """The pinned artifact: of a class that can be attached, and of the bytes that the caller means."""
        async with self._ledger.artifacts.open(call, call.input.artifact_id) as stored:
            if stored.wire.media_type not in _UPLOADED:
                raise Refusal(ErrorCode.ARTIFACT_INVALID, "artifact_class", field="/artifactId")
            if stored.sha256 != call.input.expected_sha256:
                raise Refusal(ErrorCode.ARTIFACT_INVALID, "hash_mismatch", field="/expectedSha256")
            yield stored

    async def _target(self, page: Page, given: BrowserUploadInput) -> transfers.UploadTarget:
        chooser = page.pending.choosers.get(asking.chooser_of(given.element_ref) or "")
        if chooser is not None:
            url = chooser.document_url
            target = transfers.UploadTarget(
                chooser.id, chooser.frame, origin_of(url), url, "file chooser", chooser.multiple
            )
        else:
            target = await transfers.upload_target(page, given.element_ref, snapshot_id=given.snapshot_id)
        if target.frame != given.frame_id:
            raise Refusal(ErrorCode.STALE_SNAPSHOT, "stale_ref", field="/frameId")
        return target

    async def plan(self, call: Call[BrowserUploadInput]) -> Plan:
        """What a person decides on: these bytes under this name into this file input of this document."""
        page = self._lives.page(call.generation)
        with reading():
            target = await self._target(page, call.input)
        async with self._artifact(call) as stored:
            return upload_plan(call.input, target, stored)

    async def upload(self, call: Call[BrowserUploadInput], permit: Permit) -> Outcome:
        """Attach the artifact to exactly the target that was decided on."""
        given, page = call.input, self._lives.page(call.generation)
        async with self._artifact(call) as stored:
            with acting():
                target = await self._target(page, given)
                if call.decided is not None and call.decided != upload_plan(given, target, stored):
                    raise Refusal(ErrorCode.REVISION_CONFLICT, "decision_outdated")
                acted = await self._attached(page, given, target, stored, permit)
        result = BrowserUploaded(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            browser_generation=page.generation,
            navigation_id=acted.navigation_id,
            snapshot_id=given.snapshot_id,
            element_ref=given.element_ref,
            target=UploadTarget(
                frame_id=target.frame,
                origin=target.origin,
                document_url=target.document_url,
                label=target.label,
            ),
            file_name=given.file_name,
            artifact=stored.wire,
            dispatched=True,
        )
        return Outcome(result=result, observe=already(self._seeing.seen(page, acted.observation)))

    async def _attached(
        self,
        page: Page,
        given: BrowserUploadInput,
        target: transfers.UploadTarget,
        stored: StoredArtifact,
        permit: Permit,
    ) -> Acted:
        file = transfers.UploadFile(stored.path, given.file_name, stored.sha256)
        chooser = asking.chooser_of(given.element_ref)
        if chooser is not None:
            staged = await transfers.staged(page, file)
            return await page.pending.choose(chooser, [staged], effect=permit.effect())
        done = await transfers.upload(
            page, given.element_ref, (file,), snapshot_id=given.snapshot_id, decided=target, effect=permit.effect()
        )
        return done.acted
