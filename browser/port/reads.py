"""Reads of a page as replies of the contract."""

from browser import wait as waits
from browser.capture import Capture
from browser.page import Page
from browser.port import views
from browser.snapshot.outline import found_outline
from lomi.contract.artifact import ArtifactFound, BrowserGeometry, BrowserSource
from lomi.contract.browser import (
    BrowserScreenshotInput,
    BrowserSnapshotInput,
    ElementShown,
    Loaded,
    TextShown,
    UrlReached,
)
from lomi.core.port import Call, Reply, StoredArtifact

_ROLES = frozenset(
    {"button", "link", "checkbox", "radio", "slider", "textbox", "combobox", "label", "heading", "text", "file_input"}
)
_MOST_EDGE = 4096
_MOST_BYTES = 3 << 20


async def snapshot_reply(page: Page, given: BrowserSnapshotInput) -> Reply:
    """A snapshot, or what a query finds over the whole document."""
    outline = given.form == "outline"
    snapshot = await page.snapshot(most=max(200, given.max_nodes))
    if given.query is None:
        data = views.snapshot_data(snapshot, given, outline=outline, most=given.max_nodes, most_bytes=given.max_bytes)
        return Reply(data=data, text=views.snapshot_text(snapshot))
    by_role = given.query in _ROLES
    found = await page.find(
        role=given.query if by_role else "", text="" if by_role else given.query, most=given.max_nodes
    )
    data = views.snapshot_data(
        snapshot, given, outline=outline, most=given.max_nodes, most_bytes=given.max_bytes, found=found
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


def kept_picture(
    call: Call[BrowserScreenshotInput], page: Page, taken: Capture
) -> tuple[bytes, BrowserSource, BrowserGeometry]:
    """The picture that is stored: the original where the contract's bounds admit it, else the bounded one."""
    given = call.input
    original = max(taken.original_width, taken.original_height) <= _MOST_EDGE and len(taken.original) <= _MOST_BYTES
    source = BrowserSource(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        browser_generation=given.browser_generation,
        profile_id=f"{given.browser_generation}-context",
        navigation_id=taken.navigation_id,
        origin=page.origin,
        required_scope="browser.capture_composite",
    )
    return (taken.original if original else taken.png), source, views.geometry(taken, original=original)


def found(stored: StoredArtifact) -> ArtifactFound:
    """An artifact as a reply's data."""
    return ArtifactFound(artifact=stored.wire)
