"""What a page shows: snapshots, names in them, pictures, its console."""

import re
from typing import Literal, TypedDict

from msgspec import UnsetType

from lomi.client.acts import Act, Capture
from lomi.client.aio.acting import Acting
from lomi.client.aio.filming import Filming
from lomi.client.aio.looking import TIMEOUT_S, Looking
from lomi.client.aio.session import Session
from lomi.client.errors import BrokerFaultError
from lomi.client.names import Ref, Target, View, page_view
from lomi.contract.artifact import Artifact, ArtifactFound, VideoAction
from lomi.contract.browser import (
    BrowserLogs,
    BrowserLogsInput,
    BrowserScreenshotInput,
    BrowserSnapshot,
    BrowserSnapshotInput,
    BrowserWait,
    BrowserWaitInput,
    ElementShown,
    Loaded,
    LogEntry,
    LogKind,
    PageElement,
    TextShown,
    UrlReached,
)
from lomi.contract.model import Result

_MOST_NODES = 500
_MOST_BYTES = 49_152
_WAIT_MS = 10_000
_POPUP = re.compile(r"popup: panelId (\S+), browserGeneration (\S+), leaseId (\S+)")


class Leased(TypedDict):
    """What each act on a page repeats."""

    panel_id: str
    browser_generation: str
    lease_id: str


class OnPage(TypedDict):
    """What each read of a page repeats."""

    workspace_id: str
    panel_id: str
    browser_generation: str


class OnDocument(TypedDict):
    """The document that an act is meant for."""

    navigation_id: str
    snapshot_id: str


class OnElement(OnDocument):
    """The element of it."""

    element_ref: str


class PageIdentity(TypedDict):
    """What names a page with its lease."""

    panel_id: str
    generation: str
    lease_id: str


class PageScreen(Acting, Looking[PageElement], Filming):
    """A page that can be looked at.

    Attributes:
        panel_id: its panel.
        generation: its one life.
        url: the document's URL as it was last seen.
        closed: whether this client closed it.
    """

    def __init__(self, session: Session, identity: PageIdentity, navigation_id: str, url: str) -> None:
        super().__init__(session, identity["panel_id"])
        self.generation = identity["generation"]
        self._lease_id = identity["lease_id"]
        self._navigation_id = navigation_id
        self.url = url
        self.closed = False

    def _arrived(self, navigation_id: str, url: str | None) -> None:
        self._navigation_id = navigation_id
        self.url = url or self.url

    def _leased(self) -> Leased:
        return Leased(panel_id=self.panel_id, browser_generation=self.generation, lease_id=self._lease_id)

    def _where(self) -> OnPage:
        return OnPage(
            workspace_id=self._session.workspace_id, panel_id=self.panel_id, browser_generation=self.generation
        )

    async def snapshot(self, query: str | None = None) -> BrowserSnapshot:
        """The page's elements as they are; `query` finds by text, role or id in the whole document."""
        seen = await self._session.read(
            "lomi_browser_snapshot",
            BrowserSnapshotInput(
                **self._where(),
                max_nodes=_MOST_NODES,
                max_bytes=_MOST_BYTES,
                form="elements",
                query=query,
            ),
            BrowserSnapshot,
        )
        self._arrived(seen.navigation_id, seen.url)
        return seen

    async def outline(self) -> str:
        """The page in short lines with refs, as an agent reads it."""
        given = BrowserSnapshotInput(**self._where(), form="outline")
        return (await self._session.answer("lomi_browser_snapshot", given)).text

    async def _view(self) -> View[PageElement]:
        seen = await self.snapshot()
        return page_view(seen.url, seen)

    async def wait_for(self, text: str, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until the page shows this text, anywhere in it; false when it did not in time (10 s at most)."""
        return await self._waited(TextShown(text=text), timeout_s)

    async def wait_for_element(self, role: str, name: str, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until there is an element of this role and name; false when there was none in time."""
        return await self._waited(ElementShown(role=role, name=name), timeout_s)

    async def wait_for_url(self, url: str, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until the document's URL is this one; false when it was not in time."""
        return await self._waited(UrlReached(url=url), timeout_s)

    async def wait_for_load(self, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until the document has loaded; false when it had not in time."""
        return await self._waited(Loaded(), timeout_s)

    async def _waited(self, condition: TextShown | ElementShown | UrlReached | Loaded, timeout_s: float) -> bool:
        waited = await self._session.read(
            "lomi_browser_wait",
            BrowserWaitInput(
                **self._where(),
                condition=condition,
                timeout_ms=max(1, min(_WAIT_MS, round(timeout_s * 1000))),
                form="elements",
            ),
            BrowserWait,
        )
        self._arrived(waited.snapshot.navigation_id, waited.snapshot.url)
        return waited.matched

    async def capture(self, area: Literal["viewport", "full_page"] = "viewport") -> Capture:
        """The viewport or the whole page as PNG.

        Raises:
            ToolError: no picture can be had.
        """
        given = BrowserScreenshotInput(
            **self._where(), navigation_id=(await self._document())["navigation_id"], area=area
        )
        return await self._session.capture("lomi_browser_screenshot", given)

    async def _video(self, action: VideoAction) -> Artifact:
        given = BrowserScreenshotInput(**self._where(), navigation_id=self._navigation_id, video=action)
        return (await self._session.read("lomi_browser_screenshot", given, ArtifactFound)).artifact

    async def console(self, kind: LogKind = "console") -> tuple[LogEntry, ...]:
        """What the main frame's document logged, or the page's requests (`network`): at most the last 64 of a kind."""
        logs = await self._session.read(
            "lomi_browser_logs",
            BrowserLogsInput(**self._where(), log_kind=kind, limit=64),
            BrowserLogs,
        )
        return logs.entries

    async def start_trace(self) -> None:
        """Begin a trace that Playwright's viewer opens; it holds typed text and cookies and ends with the lease.

        Raises:
            ScopeDeniedError: it needs `browser.download` and `browser.capture_composite`.
        """
        await self._session.read("lomi_browser_logs", self._tracing("start"), BrowserLogs)

    async def stop_trace(self) -> Artifact:
        """End the trace; the broker keeps the zip as an artifact of this hash for a day.

        Raises:
            TargetNotFoundError: none is being taken.
        """
        logs = await self._session.read("lomi_browser_logs", self._tracing("stop"), BrowserLogs)
        if isinstance(logs.artifact, UnsetType):
            raise BrokerFaultError("a trace without its artifact")
        return logs.artifact

    def _tracing(self, action: Literal["start", "stop"]) -> BrowserLogsInput:
        return BrowserLogsInput(**self._where(), trace=action)

    async def _document(self) -> OnDocument:
        seen = await self.snapshot()
        return OnDocument(navigation_id=seen.navigation_id, snapshot_id=seen.snapshot_id)

    async def _element(self, target: Target, *, typing: bool = False) -> OnElement:
        if isinstance(target, Ref):
            return OnElement(navigation_id=self._navigation_id, snapshot_id=target.snapshot_id, element_ref=target.ref)
        ref, _ = (await self._view()).one(target, typing=typing)
        return OnElement(navigation_id=self._navigation_id, snapshot_id=ref.snapshot_id, element_ref=ref.ref)

    async def _two(self, first: Target, second: Target) -> tuple[OnElement, str]:
        """Two elements of one snapshot."""
        if isinstance(first, Ref) and isinstance(second, Ref):
            return await self._element(first), second.ref
        view = await self._view()
        start = first if isinstance(first, Ref) else view.one(first)[0]
        end = second if isinstance(second, Ref) else view.one(second)[0]
        return await self._element(start), end.ref


def popups_of(act: Act[Result]) -> tuple[PageIdentity, ...]:
    """The pages that an act opened: panel, generation and lease stand in what was seen after it."""
    found = (_POPUP.fullmatch(line) for line in act.changed)
    return tuple(
        PageIdentity(panel_id=named[1], generation=named[2], lease_id=named[3]) for named in found if named is not None
    )
