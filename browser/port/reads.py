"""Reads of a page as replies of the contract."""

from typing import Any

from browser import wait as waits
from browser.capture import Capture, capture
from browser.page import Page
from browser.port import views
from browser.port.faults import reading
from browser.port.lives import Lives
from browser.port.seen import asked_lines, pending_objects
from browser.port.videos import BrowserVideos
from browser.snapshot.outline import found_outline
from lomi.contract.artifact import ArtifactFound
from lomi.contract.browser import (
    BrowserScreenshotInput,
    BrowserSnapshotInput,
    BrowserWait,
    BrowserWaitInput,
    ElementShown,
    Loaded,
    TextShown,
    UrlReached,
)
from lomi.contract.codes import ErrorCode
from lomi.contract.model import PendingObject
from lomi.core.port import Call, Ledger, Picture, Reply, StoredArtifact, TakenImage
from lomi.core.refusal import Refusal

_ROLES = frozenset(
    {"button", "link", "checkbox", "radio", "slider", "textbox", "combobox", "label", "heading", "text", "file_input"}
)
_MOST_EDGE = 4096
_MOST_BYTES = 3 << 20


async def snapshot_reply(
    page: Page, given: BrowserSnapshotInput, popup_lines: tuple[str, ...], popups: tuple[PendingObject, ...]
) -> Reply:
    """A snapshot with what the page asks for, or what a query finds over the whole document."""
    outline = given.form == "outline"
    snapshot = await page.snapshot(most=max(200, given.max_nodes))
    pending = pending_objects(page, popups)
    if given.query is None:
        data = views.snapshot_data(
            snapshot, given, outline=outline, most=given.max_nodes, most_bytes=given.max_bytes, pending=pending
        )
        return Reply(data=data, text="\n".join((*popup_lines, *asked_lines(page), views.snapshot_text(snapshot))))
    by_role = given.query in _ROLES
    found = await page.find(
        role=given.query if by_role else "", text="" if by_role else given.query, most=given.max_nodes
    )
    data = views.snapshot_data(
        snapshot,
        given,
        outline=outline,
        most=given.max_nodes,
        most_bytes=given.max_bytes,
        found=found,
        pending=pending,
    )
    return Reply(data=data, text=f"navigationId {snapshot.navigation_id}\n{found_outline(found)}")


def condition_of(condition: TextShown | ElementShown | UrlReached | Loaded) -> waits.Condition:
    """A condition of the contract as the library's."""
    match condition:
        case TextShown(text=text):
            return waits.Text(text)
        case ElementShown(role=role, name=name):
            return waits.Element(role, name)
        case UrlReached(url=url):
            return waits.Url(url)
        case Loaded():
            return waits.Load()


def kept_picture(call: Call[BrowserScreenshotInput], page: Page, taken: Capture) -> TakenImage:
    """The picture that is stored: the original where the contract's bounds admit it, else the bounded one."""
    given = call.input
    original = max(taken.original_width, taken.original_height) <= _MOST_EDGE and len(taken.original) <= _MOST_BYTES
    source = views.source_of(
        given, navigation_id=taken.navigation_id, origin=page.origin, scope="browser.capture_composite"
    )
    kept = taken.original if original else taken.png
    return TakenImage(kept, source, views.geometry(taken, original=original))


def found(stored: StoredArtifact) -> ArtifactFound:
    """An artifact as a reply's data."""
    return ArtifactFound(artifact=stored.wire)


class BrowserReads:
    """Handlers that observe."""

    def __init__(self, lives: Lives, ledger: Ledger, videos: BrowserVideos) -> None:
        self._lives = lives
        self._ledger = ledger
        self._videos = videos

    def _page(self, call: Call[Any]) -> Page:
        return self._lives.page(call.generation)

    async def snapshot(self, call: Call[BrowserSnapshotInput]) -> Reply:
        """What the page offers."""
        with reading():
            page = self._page(call)
            popups = self._lives.popup_lines(page, told=False)
            return await snapshot_reply(page, call.input, popups, self._lives.popup_objects(page))

    async def wait(self, call: Call[BrowserWaitInput]) -> Reply:
        """Wait for a condition; absence is only said with a snapshot that proves it."""
        given, page = call.input, self._page(call)
        with reading():
            waited = await waits.wait(page, condition_of(given.condition), timeout_s=given.timeout_ms / 1000)
        if waited.outcome == "no_observation" or waited.snapshot is None:
            raise Refusal(ErrorCode.DEADLINE_EXCEEDED, "no_observation")
        matched = waited.outcome == "matched"
        seen = views.snapshot_data(waited.snapshot, given, outline=given.form == "outline", most=500, most_bytes=49_152)
        return Reply(
            data=BrowserWait(matched=matched, elapsed_ms=round(waited.elapsed_ms), snapshot=seen),
            text=f"{waited.outcome} after {waited.elapsed_ms:.0f} ms\n{views.snapshot_text(waited.snapshot)}",
        )

    async def screenshot(self, call: Call[BrowserScreenshotInput]) -> Reply:
        """A picture of viewport, element or document: stored as an artifact, bounded beside the reply; or a video."""
        given, page = call.input, self._page(call)
        if given.video is not None:
            return await self._videos.video(call, page)
        shown: list[Capture] = []

        async def taking() -> TakenImage:
            with reading():
                taken = await capture(
                    page,
                    full_page=given.area == "full_page",
                    ref=given.element_ref,
                    snapshot_id=given.snapshot_id,
                    most_width=given.max_width,
                    most_bytes=min(given.max_bytes, 300_000),
                )
            shown.append(taken)
            return kept_picture(call, page, taken)

        stored = await self._ledger.artifacts.put_taken(call, given.workspace_id, taking)
        return Reply(
            data=found(stored),
            text=views.capture_text(shown[0]) + f"\nartifactId {stored.id}",
            pictures=(Picture("image/png", shown[0].png),),
        )
