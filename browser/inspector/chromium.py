"""A running Chromium: its contexts, the targets that open in them, and the downloads they begin."""

import asyncio
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from browser.errors import BrowserError
from browser.inspector.connection import Connection, Session, decoded
from browser.inspector.program import Program
from browser.wire import ATTACH_S, send

_ATTACH: dict[str, object] = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": True,
    "filter": [{"type": "page"}, {"exclude": True}],
}


class _TargetFacts(msgspec.Struct, rename="camel"):
    target_id: str = ""
    opener_id: str | None = None
    browser_context_id: str = ""


class _Attached(msgspec.Struct, rename="camel"):
    session_id: str
    target_info: _TargetFacts


class _Detached(msgspec.Struct, rename="camel"):
    session_id: str


class _ContextId(msgspec.Struct, rename="camel"):
    browser_context_id: str


class _Version(msgspec.Struct):
    product: str = ""


class DownloadBegun(msgspec.Struct, rename="camel"):
    """A frame's download begins."""

    frame_id: str
    guid: str
    url: str = ""
    suggested_filename: str = ""


class _Progress(msgspec.Struct, rename="camel"):
    guid: str
    state: str = "inProgress"
    received_bytes: float = 0


class Target(NamedTuple):
    """A page that is there and has not run anything yet: it waits for ``Runtime.runIfWaitingForDebugger``."""

    id: str
    session: Session
    opener: str | None


class DownloadFile:
    """A download under way: the file it is written to, and its end. `on_received` is told how many bytes there are."""

    def __init__(self, begun: DownloadBegun, path: Path, cancel: Callable[[], None]) -> None:
        self.begun = begun
        self.path = path
        self.cancel = cancel
        self.on_received: Callable[[int], None] = lambda _length: None
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(self, state: str) -> None:
        """It is over: ``completed``, ``canceled`` or ``lost``."""
        if not self._over.done():
            self._over.set_result(state)

    async def over(self) -> str:
        """How it ended, once it has."""
        return await asyncio.shield(self._over)

    async def drop(self) -> None:
        """Stop it, and remove what was written once nothing more is."""
        self.cancel()
        await self.over()
        await self.delete()

    async def delete(self) -> None:
        """Remove what was written."""
        await asyncio.to_thread(self.path.unlink, missing_ok=True)


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except FileNotFoundError:  # the context has ended
        return []


class Context:
    """An isolated context: cookies, storage and proxy of its own.

    `on_target` is told of every page that opens in it, each still stopped before its first request; `on_download` of
    every download, and says whether it is of a page of its own.
    """

    def __init__(self, chromium: "Chromium", name: str, downloads: Path) -> None:
        self.chromium = chromium
        self.name = name
        self.on_target: Callable[[Target], None] = lambda _target: None
        self.on_download: Callable[[DownloadFile], bool] = lambda _file: False
        self.downloads = downloads
        self._told: set[str] = set()
        self._strange: set[str] = set()

    def tell(self, file: DownloadFile) -> bool:
        """Of a download that may be of a page of this context; whether it is."""
        self._told.add(file.begun.guid)
        return self.on_download(file)

    async def sweep(self) -> None:
        """Drop what is written here without a word: the engine tells of no download whose frame went before it began.

        A file counts as such when it is met a second time, for the word may be on its way.
        """
        there = {path.name.partition(".")[0] for path in await asyncio.to_thread(_listed, self.downloads)}
        strange = there - self._told
        for guid in strange & self._strange:
            self.cancel(guid)
            await asyncio.to_thread((self.downloads / guid).unlink, missing_ok=True)
        self._strange = strange

    def cancel(self, guid: str) -> None:
        """Stop a download of this context; nothing when it is over."""
        self.chromium.root.post("Browser.cancelDownload", {"guid": guid, "browserContextId": self.name})

    async def new_page(self) -> None:
        """Open a blank page; `on_target` is told of it. Raises as `send`."""
        params = {"url": "about:blank", "browserContextId": self.name}
        await send(self.chromium.root, "Target.createTarget", params, deadline_s=ATTACH_S)

    async def close(self) -> None:
        """End it and all its pages. Raises as `send`."""
        await self.chromium.drop(self)


class Chromium:
    """An engine under our hand.

    `on_stray` is told of a download that is of no page: its frame is gone already, and the engine does not say which
    context it was of, so it comes once for each, as a file of that context.
    """

    def __init__(self, program: Program, connection: Connection) -> None:
        self.program = program
        self.version = ""
        self.root = connection.root
        self.on_lost: Callable[[], None] = lambda: None
        self._connection = connection
        self._contexts: dict[str, Context] = {}
        self.on_stray: Callable[[DownloadFile], None] = lambda _file: None
        self._downloads: dict[str, tuple[DownloadFile, ...]] = {}
        self._targets: dict[str, str] = {}
        self._opened = 0
        connection.on_lost = self._lost
        self.root.on("Target.attachedToTarget", self._attached)
        self.root.on("Target.detachedFromTarget", self._detached)
        self.root.on("Browser.downloadWillBegin", self._download)
        self.root.on("Browser.downloadProgress", self._progress)

    @classmethod
    async def over(cls, program: Program) -> "Chromium":
        """Follow a started engine.

        Raises:
            BrowserError: it ended before it answered.
        """
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, sock=program.socket)
        chromium = cls(program, connection)
        version, _ = await asyncio.gather(
            chromium.root.call("Browser.getVersion"), chromium.root.call("Target.setAutoAttach", _ATTACH)
        )
        chromium.version = decoded(version, _Version).product.rpartition("/")[2]
        return chromium

    @property
    def connected(self) -> bool:
        """Whether the engine is there."""
        return self.root.ended is None

    def _lost(self) -> None:
        for files in self._downloads.values():
            for file in files:
                file.end("lost")
        self.on_lost()

    async def new_context(self, proxy: str | None, bypass: str) -> Context:
        """An empty context, all its requests through `proxy`. Raises as `send`."""
        way = {} if proxy is None else {"proxyServer": proxy, "proxyBypassList": bypass}
        self._opened += 1
        downloads = self.program.directory / f"downloads-{self._opened}"
        answer, _ = await asyncio.gather(
            send(self.root, "Target.createBrowserContext", {"disposeOnDetach": True, **way}, deadline_s=ATTACH_S),
            asyncio.to_thread(downloads.mkdir),
        )
        name = decoded(answer, _ContextId).browser_context_id
        context = Context(self, name, downloads)
        self._contexts[name] = context
        self.root.post(
            "Browser.setDownloadBehavior",
            {
                "behavior": "allowAndName",
                "browserContextId": name,
                "downloadPath": str(context.downloads),
                "eventsEnabled": True,
            },
        )
        return context

    async def drop(self, context: Context) -> None:
        """End a context. Raises as `send`."""
        self._contexts.pop(context.name, None)
        await send(self.root, "Target.disposeBrowserContext", {"browserContextId": context.name}, deadline_s=ATTACH_S)
        await asyncio.to_thread(shutil.rmtree, context.downloads, ignore_errors=True)

    async def sweep(self) -> None:
        """`Context.sweep` for each."""
        for context in tuple(self._contexts.values()):
            await context.sweep()

    def close_target(self, target_id: str) -> None:
        """End a page without asking it."""
        self.root.post("Target.closeTarget", {"targetId": target_id})

    async def another_session(self, target_id: str) -> Session:
        """A second session of a target, for events of its own. Raises as `send`."""
        answer = await send(self.root, "Target.attachToTarget", {"targetId": target_id, "flatten": True})
        return self._connection.session(decoded(answer, _Detached).session_id)

    def child(self, session_id: str) -> Session:
        """The session of a frame that a page's session reported."""
        return self._connection.session(session_id)

    def _attached(self, raw: msgspec.Raw) -> None:
        event = decoded(raw, _Attached)
        facts = event.target_info
        session = self._connection.session(event.session_id)
        if facts.target_id in self._targets.values():
            return  # another session of a page that is there
        self._targets[event.session_id] = facts.target_id
        context = self._contexts.get(facts.browser_context_id)
        if context is not None:
            context.on_target(Target(facts.target_id, session, facts.opener_id))

    def _detached(self, raw: msgspec.Raw) -> None:
        name = decoded(raw, _Detached).session_id
        self._targets.pop(name, None)
        session = self._connection.sessions.get(name)
        if session is not None:
            session.end("closed")

    def _download(self, raw: msgspec.Raw) -> None:
        begun = decoded(raw, DownloadBegun)
        files: list[DownloadFile] = []
        for context in self._contexts.values():
            cancel = functools.partial(self._cancel, begun.guid, context)
            file = DownloadFile(begun, context.downloads / begun.guid, cancel)
            if context.tell(file):
                self._downloads[begun.guid] = (file,)
                return
            files.append(file)
        self._downloads[begun.guid] = tuple(files)
        for file in files:
            self.on_stray(file)

    def _cancel(self, guid: str, context: Context) -> None:
        if guid in self._downloads:
            context.cancel(guid)

    def _progress(self, raw: msgspec.Raw) -> None:
        event = decoded(raw, _Progress)
        for file in self._downloads.get(event.guid, ()):
            if event.state == "inProgress":
                file.on_received(int(event.received_bytes))
            else:
                file.end(event.state)
        if event.state != "inProgress":
            self._downloads.pop(event.guid, None)

    async def close(self, seconds: float = 4.0) -> None:
        """End the engine and remove what it left."""
        try:
            async with asyncio.timeout(seconds):
                await self.root.call("Browser.close")
        except (TimeoutError, BrowserError):
            pass  # it is gone already, or is killed below
        self._connection.close()
        await self.program.end(1.0)
