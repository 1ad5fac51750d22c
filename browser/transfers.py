"""Files into and out of a page: attaching by path, and fetching with the page's own session."""

import asyncio
import base64
import hashlib
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from urllib.parse import urldefrag

import msgspec

from browser.actions import Effect, Refusal, aim_file, mark_at, start_at
from browser.errors import BrowserError, ContextGoneError, StaleRefError, TransferFailedError
from browser.frames import origin_of
from browser.page import Page
from browser.settle import SETTLE_S, observe
from browser.values import Acted
from browser.wire import ask, send
from browser.world import World

MOST_INLINE_BYTES = 4 << 20
MOST_BYTES = 512 << 20
MOST_CHUNKS = 4096
PIECE = 2 << 20


class UploadFile(msgspec.Struct, frozen=True):
    """A file to attach.

    Where it lies, the name the page sees, and the hash it must have (checked before the effect).
    """

    path: Path
    file_name: str
    sha256: str | None = None


class UploadTarget(msgspec.Struct, frozen=True):
    """The exact file input a decision was made about."""

    ref: str
    frame: str
    origin: str
    document_url: str
    label: str
    multiple: bool


class Uploaded(msgspec.Struct, frozen=True):
    """Files attached and their events dispatched; what the page does with them is its own affair."""

    target: UploadTarget
    acted: Acted


class Fetched(msgspec.Struct, frozen=True):
    """A whole download in memory."""

    url: str
    media_type: str
    content: bytes
    sha256: str


class _Begun(Refusal):
    id: int = 0
    status: int = 0
    media: str = ""
    length: int | None = None


class _Piece(Refusal):
    size: int = 0
    done: bool = False


class _Resolved(msgspec.Struct):
    uuid: str


class _Read(msgspec.Struct):
    data: str = ""


def _checked_name(name: str) -> str:
    if (
        not 1 <= len(name) <= 255
        or name in {".", ".."}
        or any(c in "/\\" or ord(c) < 32 or ord(c) == 127 for c in name)
    ):
        raise TransferFailedError("bad_file_name")
    return name


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in lower-case hex. Blocking: run it in a thread."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def upload_target(page: Page, ref: str, *, snapshot_id: str | None = None) -> UploadTarget:
    """What an upload to `ref` would be attached to: for the person or policy that decides. Raises as `upload`."""
    aimed = await aim_file(page, ref, snapshot_id)
    facts = page.frames.facts.get(aimed.world.frame_id)
    url = facts.url if facts else ""
    return UploadTarget(ref, aimed.frame, origin_of(url), url, aimed.label, aimed.multiple)


async def upload(
    page: Page,
    ref: str,
    files: tuple[UploadFile, ...],
    *,
    snapshot_id: str | None = None,
    decided: UploadTarget | None = None,
    settle_s: float = SETTLE_S,
    effect: Effect | None = None,
) -> Uploaded:
    """Attach files to a file input by path, whatever their size.

    `decided` is the target a decision was bound to; another one is refused (``stale_ref``).

    Raises:
        StaleRefError, StaleSnapshotError, RefusedError, BlockedError, PageEndedError, TransferFailedError: before
        any effect.
    """
    async with page.turn:
        page.require_free()
        target = await upload_target(page, ref, snapshot_id=snapshot_id)
        if decided is not None and target != decided:
            raise StaleRefError("stale_ref", ref=ref)
        if len(files) > 1 and not target.multiple:
            raise TransferFailedError("one_file_only")
        paths = [await staged(page, file) for file in files]
        aimed = await aim_file(page, ref, snapshot_id)
        try:
            node = await aimed.world.node(aimed.number)
        except ContextGoneError:
            node = None
        if node is None:
            raise StaleRefError("detached", ref=ref)
        await mark_at(page, aimed.world)
        async with effect or nullcontext():
            start = start_at(page, aimed.world)
            params = {"files": [str(path) for path in paths], "objectId": node}
            work = send(aimed.world.session, "DOM.setFileInputFiles", params, deadline_s=30)
            page.outcome(await page.unless_blocked(work, 31), "files")
        observation = await observe(page, start, settle_s)
    return Uploaded(target, Acted(ref, page.navigation_id, observation, input_mode="trusted", delivered=True))


async def staged(page: Page, file: UploadFile) -> Path:
    """The file under the name the page shall see, proven by its hash.

    Raises:
        TransferFailedError: ``bad_file_name``, ``no_such_file``, ``too_large``, ``hash_mismatch``.
    """
    name = _checked_name(file.file_name)

    def stage() -> Path:
        try:
            size = file.path.stat().st_size
            if size > MOST_BYTES:
                raise TransferFailedError("too_large", byte_length=size, most=MOST_BYTES)
            if file.sha256 is not None and file_sha256(file.path) != file.sha256:
                raise TransferFailedError("hash_mismatch")
            directory = Path(tempfile.mkdtemp(prefix="lomi-upload-"))
            page.staged.append(directory)
            link = directory / name
            link.symlink_to(file.path.resolve(strict=True))
        except OSError as error:
            raise TransferFailedError("no_such_file") from error
        return link

    return await asyncio.to_thread(stage)


def require_same_origin(page: Page, url: str) -> None:
    """Raises TransferFailedError (``cross_origin``) for an address that is not of the document's own origin."""
    if origin_of(url) != page.origin or page.origin == "null":
        raise TransferFailedError("cross_origin", origin=origin_of(url))


async def pieces(
    page: Page, url: str, *, most: int, seconds: float, stated: Callable[[int], None] | None = None
) -> AsyncGenerator[bytes, None]:
    """The bytes of one same-origin address: GET with the page's session, no redirects, not cached, 200 or 204 only.

    An empty piece comes first, once the answer has begun; before it `stated` is told the length that the answer states,
    if it does.

    Raises:
        TransferFailedError: ``cross_origin``, ``redirect_refused``, ``status_refused``, ``too_large``,
            ``too_slow``, ``network_failed``, ``canceled``.
    """
    require_same_origin(page, url)
    world = await page.main_world()
    deadline = page.clock() + seconds
    begun = _Begun()
    try:
        begun = await world.call("fetchBegin", urldefrag(url).url, seconds * 1000, shape=_Begun, deadline_s=seconds + 1)
        if begun.refused:
            raise TransferFailedError(begun.refused, status=begun.status)
        if begun.length is not None and begun.length > most:
            raise TransferFailedError("too_large", most=most)
        if begun.length is not None and stated is not None:
            stated(begun.length)
        yield b""
        total = 0
        while True:
            left = max(0.5, deadline - page.clock() + 1)
            piece = await world.call("fetchRead", begun.id, PIECE, shape=_Piece, deadline_s=left)
            if piece.refused:
                raise TransferFailedError(piece.refused)
            total += piece.size
            if total > most:
                raise TransferFailedError("too_large", most=most)
            if piece.size:
                yield await _content(world, begun.id, piece.size)
            if piece.done:
                return
    except ContextGoneError:
        raise TransferFailedError("canceled") from None
    finally:
        if begun.id and page.activity.ended is None:
            page.background(world.call("fetchEnd", begun.id, shape=dict[str, object]))


async def _content(world: World, fetch_id: int, size: int) -> bytes:
    """The bytes of a piece, read by the engine out of the page's own blob."""
    held = await world.held("fetchBlob", fetch_id)
    if held is None:
        raise TransferFailedError("canceled")
    try:
        blob = await ask(world.session, "IO.resolveBlob", {"objectId": held}, _Resolved)
        read = await ask(world.session, "IO.read", {"handle": f"blob:{blob.uuid}", "offset": 0, "size": size}, _Read)
    finally:
        with suppress(BrowserError):
            await send(world.session, "Runtime.releaseObject", {"objectId": held})
    content = await asyncio.to_thread(base64.b64decode, read.data)
    if len(content) != size:
        raise TransferFailedError("network_failed")
    return content


async def download(
    page: Page, url: str, *, most: int = MOST_INLINE_BYTES, seconds: float = 5.0, effect: Effect | None = None
) -> Fetched:
    """One same-origin address as bytes. Raises as `pieces`."""
    page.require_free()
    content = bytearray()
    async with effect or nullcontext():
        async for piece in pieces(page, url, most=most, seconds=seconds):
            content += piece
    return Fetched(url, "", bytes(content), hashlib.sha256(content).hexdigest())
