"""Dialogs, file choosers and downloads of a page.

Objects with an id and a deadline, never a modal state of the server.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from browser.actions import mark_at, start_at
from browser.errors import NoSuchThingError, TransferFailedError
from browser.inspector.chromium import DownloadFile
from browser.inspector.connection import Session
from browser.page import Page
from browser.settle import SETTLE_S, begin, observe
from browser.values import Acted
from browser.wire import listen, send

Effect = AbstractAsyncContextManager[None]
Handle = TypeVar("Handle")

DIALOG_S = 60.0
CHOOSER_S = 120.0
DOWNLOAD_S = 600.0
MOST_KEPT = 16
MOST_DOWNLOAD_BYTES = 512 << 20


class Dialog(msgspec.Struct, frozen=True):
    """An open alert, confirm, prompt or beforeunload question. `message` is page text: untrusted."""

    id: str
    kind: str
    message: str
    deadline: float


class Chooser(msgspec.Struct, frozen=True):
    """A file chooser the page asked for. Nothing waits for it: letting it lapse is how a person cancels."""

    id: str
    multiple: bool
    deadline: float
    frame: str = "main"
    document_url: str = ""


class Download(msgspec.Struct, frozen=True):
    """A download the page began. `path` is a private temporary file until `deadline`; copy it."""

    id: str
    url: str
    file_name: str
    state: Literal["running", "done", "failed"]
    deadline: float
    path: Path | None = None
    byte_length: int | None = None
    reason: str | None = None


def bounded(text: str, most: int) -> str:
    """Page text of at most `most` UTF-16 units, without lone surrogates."""
    cut = text.encode("utf-16-le", "surrogatepass")[: most * 2]
    return cut.decode("utf-16-le", "replace")


def _why(ended: str, received: int) -> str:
    if received > MOST_DOWNLOAD_BYTES:
        return "too_large"
    return "canceled" if ended == "canceled" else "network_failed"


class _Opened(msgspec.Struct, rename="camel"):
    mode: str = "selectSingle"
    backend_node_id: int = 0
    frame_id: str = ""


class _Asked(msgspec.Struct):
    type: str = "alert"
    message: str = ""


class _OpenDialog(NamedTuple):
    session: Session
    kind: str


class _Shelf(Generic[Handle]):
    """Handles by id, each with a timer; the oldest goes when there are too many."""

    def __init__(self, prefix: str, lapse: Callable[[str, Handle], None]) -> None:
        self._prefix = prefix
        self._lapse = lapse
        self._count = 0
        self._held: OrderedDict[str, tuple[Handle, asyncio.TimerHandle]] = OrderedDict()

    def name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def put(self, name: str, handle: Handle, seconds: float) -> None:
        self._held[name] = (handle, asyncio.get_running_loop().call_later(seconds, self.lapse, name))
        while len(self._held) > MOST_KEPT:
            self.lapse(next(iter(self._held)))

    def take(self, name: str) -> Handle | None:
        handle, timer = self._held.pop(name, (None, None))
        if timer is not None:
            timer.cancel()
        return handle

    def lapse(self, name: str) -> None:
        handle = self.take(name)
        if handle is not None:
            self._lapse(name, handle)

    def clear(self) -> None:
        for name in list(self._held):
            self.take(name)


class Pending:
    """What a page has asked for and nobody has answered yet."""

    def __init__(
        self, page: Page, *, dialog_s: float = DIALOG_S, chooser_s: float = CHOOSER_S, download_s: float = DOWNLOAD_S
    ) -> None:
        self.dialogs: dict[str, Dialog] = {}
        self.choosers: dict[str, Chooser] = {}
        self.downloads: dict[str, Download] = {}
        self.on_change: list[Callable[[Dialog | Chooser | Download], None]] = []
        self._page = page
        self._seconds = (dialog_s, chooser_s, download_s)
        self._open_dialogs: _Shelf[_OpenDialog] = _Shelf("d", self._default)
        self._open_choosers: _Shelf[tuple[Session, int]] = _Shelf("c", self._lapse_chooser)
        self._kept_downloads: _Shelf[DownloadFile] = _Shelf("x", self._drop_download)
        page.frames.on_session.append(self._intercept)
        page.on_ended.append(lambda _reason: self._clear())

    def _tell(self, thing: Dialog | Chooser | Download) -> None:
        self._page.activity.stir()
        for told in self.on_change:
            told(thing)

    def _clear(self) -> None:
        for shelf in (self._open_dialogs, self._open_choosers, self._kept_downloads):
            shelf.clear()
        self.dialogs.clear()
        self.choosers.clear()
        self._page.activity.dialog = None

    def _dialog(self, session: Session, event: _Asked) -> None:
        name = self._open_dialogs.name()
        seconds = self._seconds[0]
        self.dialogs[name] = Dialog(name, event.type, bounded(event.message, 512), self._page.clock() + seconds)
        self._open_dialogs.put(name, _OpenDialog(session, event.type), seconds)
        self._page.activity.dialog = name
        self._tell(self.dialogs[name])

    def _default(self, name: str, handle: _OpenDialog) -> None:
        """Nobody answered in time.

        An alert is acknowledged, everything else declined (a page that asks to stay, stays).
        """
        self._page.background(self._answer(name, handle, accept=handle.kind == "alert", text=None))

    async def _answer(self, name: str, handle: _OpenDialog, *, accept: bool, text: str | None) -> None:
        try:
            given = {} if text is None or not accept else {"promptText": text}
            await send(handle.session, "Page.handleJavaScriptDialog", {"accept": accept, **given})
        finally:
            self.dialogs.pop(name, None)
            if self._page.activity.dialog == name:
                self._page.activity.dialog = next(iter(self.dialogs), None)
            self._page.activity.stir()

    async def answer(
        self,
        dialog_id: str,
        *,
        accept: bool,
        text: str | None = None,
        settle_s: float = SETTLE_S,
        effect: Effect | None = None,
    ) -> Acted:
        """Answer an open dialog; `text` is for a prompt.

        Raises:
            NoSuchThingError: it is not open (any more); nothing was done.
        """
        page = self._page
        page.require_live()
        if dialog_id not in self.dialogs:
            raise NoSuchThingError("no_such_dialog", dialog=dialog_id)
        async with effect or nullcontext():
            handle = self._open_dialogs.take(dialog_id)
            if handle is None:
                raise NoSuchThingError("no_such_dialog", dialog=dialog_id)
            start = begin(page, *([world] if (world := page.frames.world(page.frames.main_id)) else []))
            attempt = page.background(self._answer(dialog_id, handle, accept=accept, text=text))
            while not attempt.done and page.activity.ended is None:
                await page.activity.wait(5)
            if attempt.done:
                attempt.result()
        return Acted(None, page.navigation_id, await observe(page, start, settle_s))

    def _intercept(self, session: Session) -> None:
        page = self._page
        listen(session, "Page.fileChooserOpened", _Opened, lambda event: self._chooser(session, event), page.faults)
        listen(session, "Page.javascriptDialogOpening", _Asked, lambda event: self._dialog(session, event), page.faults)
        page.background(send(session, "Page.setInterceptFileChooserDialog", {"enabled": True}))

    def abandon(self) -> None:
        """Nobody is there to answer any more: every open dialog gets its default now, every chooser is let go."""
        for name in list(self.dialogs):
            self._open_dialogs.lapse(name)
        for name in list(self.choosers):
            self._open_choosers.lapse(name)

    def _chooser(self, session: Session, event: _Opened) -> None:
        name = self._open_choosers.name()
        seconds = self._seconds[1]
        facts = self._page.frames.facts.get(event.frame_id)
        self.choosers[name] = Chooser(
            name,
            event.mode == "selectMultiple",
            self._page.clock() + seconds,
            self._page.frames.key(event.frame_id) if facts else "main",
            facts.url if facts else self._page.url,
        )
        self._open_choosers.put(name, (session, event.backend_node_id), seconds)
        self._page.activity.choosers.append(name)
        self._tell(self.choosers[name])

    def _lapse_chooser(self, name: str, _handle: tuple[Session, int]) -> None:
        self._drop_chooser(name)

    def _drop_chooser(self, name: str) -> None:
        self.choosers.pop(name, None)

    def dismiss_chooser(self, chooser_id: str) -> None:
        """Let a chooser go, as a person does who cancels. Raises NoSuchThingError."""
        if self._open_choosers.take(chooser_id) is None:
            raise NoSuchThingError("no_such_chooser", chooser=chooser_id)
        self._drop_chooser(chooser_id)

    async def choose(
        self, chooser_id: str, files: list[Path], *, settle_s: float = SETTLE_S, effect: Effect | None = None
    ) -> Acted:
        """Give a chooser its files by path.

        Raises:
            NoSuchThingError, TransferFailedError, BlockedError: nothing was done.
        """
        page = self._page
        async with page.turn:
            page.require_free()
            chooser = self.choosers.get(chooser_id)
            if chooser is None:
                raise NoSuchThingError("no_such_chooser", chooser=chooser_id)
            if len(files) > 1 and not chooser.multiple:
                raise TransferFailedError("one_file_only")
            main = await page.main_world()
            await mark_at(page, main)
            async with effect or nullcontext():
                handle = self._open_choosers.take(chooser_id)
                if handle is None:
                    raise NoSuchThingError("no_such_chooser", chooser=chooser_id)
                self._drop_chooser(chooser_id)
                start = start_at(page, main)
                session, node = handle
                params = {"files": [str(file) for file in files], "backendNodeId": node}
                work = send(session, "DOM.setFileInputFiles", params, deadline_s=30)
                page.outcome(await page.unless_blocked(work, 31), "files")
            observation = await observe(page, start, settle_s)
        return Acted(None, page.navigation_id, observation)

    def download_begun(self, handle: DownloadFile) -> None:
        """A frame of the page began a download."""
        name = self._kept_downloads.name()
        seconds = self._seconds[2]
        download = Download(
            name,
            bounded(handle.begun.url, 2048),
            bounded(Path(handle.begun.suggested_filename).name, 255),
            "running",
            self._page.clock() + seconds,
        )
        self.downloads[name] = download
        self._kept_downloads.put(name, handle, seconds)
        self._page.activity.downloads.append(name)
        self._page.activity.arrived()
        self._page.activity.navigating = False  # a navigation that became a download commits nothing
        self._tell(download)
        self._page.background(self._finish(name, handle))

    async def _finish(self, name: str, handle: DownloadFile) -> None:
        most = 0

        def received(length: int) -> None:
            nonlocal most
            most = max(most, length)
            if most > MOST_DOWNLOAD_BYTES:
                handle.cancel()

        handle.on_received = received
        ended = await handle.over()
        if ended == "completed":
            try:
                received((await asyncio.to_thread(handle.path.stat)).st_size)
            except OSError:  # dropped meanwhile, with its file
                ended = "lost"
        download = self.downloads.get(name)
        if download is None:
            await handle.delete()  # it was dropped while its last bytes were written
            return
        kept = ended == "completed" and most <= MOST_DOWNLOAD_BYTES
        if most > MOST_DOWNLOAD_BYTES:
            await handle.delete()
        self.downloads[name] = msgspec.structs.replace(
            download,
            state="done" if kept else "failed",
            path=handle.path if kept else None,
            byte_length=most if kept else None,
            reason=None if kept else _why(ended, most),
        )
        self._tell(self.downloads[name])

    def require_download(self, download_id: str) -> None:
        """Raises NoSuchThingError when it is unknown or no longer kept."""
        if download_id not in self.downloads:
            raise NoSuchThingError("no_such_download", download=download_id)

    async def let_go(self, name: str, *, settle_s: float = SETTLE_S, effect: Effect | None = None) -> Acted:
        """Dismiss a file chooser, or give a download up and drop its bytes.

        Raises:
            NoSuchThingError: it is gone; nothing was done.
        """
        page = self._page
        page.require_live()
        shelf = self._open_choosers if name in self.choosers else self._kept_downloads
        if name not in self.choosers:
            self.require_download(name)
        async with effect or nullcontext():
            start = begin(page)
            shelf.lapse(name)
        return Acted(None, page.navigation_id, await observe(page, start, settle_s))

    async def downloaded(self, download_id: str, seconds: float) -> Download:
        """The download once it is over, or as it stands after `seconds`. Raises NoSuchThingError."""
        deadline = self._page.clock() + seconds
        while True:
            download = self.downloads.get(download_id)
            if download is None:
                raise NoSuchThingError("no_such_download", download=download_id)
            if download.state != "running" or not await self._page.activity.wait(deadline - self._page.clock()):
                return self.downloads.get(download_id, download)

    def _drop_download(self, name: str, handle: DownloadFile) -> None:
        download = self.downloads.pop(name, None)
        if download is not None:
            self._page.background(self._discard(handle, running=download.state == "running"))

    async def _discard(self, handle: DownloadFile, *, running: bool) -> None:
        if running:
            handle.cancel()
        await handle.delete()
