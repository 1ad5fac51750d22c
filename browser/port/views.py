"""Snapshots, observations, captures and logs as the contract's values."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from browser.capture import Capture
from browser.logs import LogPage
from browser.network import NetworkEntry, NetworkPage
from browser.page import Page
from browser.snapshot.outline import observation_outline, snapshot_outline
from browser.values import Found, Node, Snapshot
from browser.values import Observation as Seen
from lomi.contract.artifact import BrowserGeometry, BrowserSource
from lomi.contract.browser import (
    BrowserLogs,
    BrowserLogsInput,
    BrowserScreenshotInput,
    BrowserSnapshot,
    LogEntry,
    NetworkRequest,
    PageElement,
    PageFrame,
    PageReadInput,
    Viewport,
)
from lomi.contract.browser_files import BrowserDownloadInput
from lomi.contract.model import Observation, PendingObject

_ELEMENT_BYTES = 160
"""What one element costs beside its name: keys, ref, role, states."""


def source_of(
    given: BrowserScreenshotInput | BrowserDownloadInput | BrowserLogsInput,
    *,
    navigation_id: str,
    origin: str,
    scope: Literal["browser.capture_composite", "browser.download"],
) -> BrowserSource:
    """Where the bytes of a picture, a video, a download, a response or a trace come from, and who may have them."""
    return BrowserSource(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        browser_generation=given.browser_generation,
        profile_id=f"{given.browser_generation}-context",
        navigation_id=navigation_id,
        origin=origin,
        required_scope=scope,
    )


def _element(node: Node) -> PageElement:
    return PageElement(
        frame_id=node.frame,
        element_ref=node.ref,
        role=node.role,
        name=node.name[:512],
        enabled=node.enabled,
        editable=node.editable,
        checked={"true": True, "false": False}.get(node.checked or ""),
        value_length=node.value_length,
    )


def _elements(nodes: tuple[Node, ...], most: int, most_bytes: int) -> tuple[PageElement, ...]:
    kept: list[PageElement] = []
    size = 0
    for node in nodes[:most]:
        size += _ELEMENT_BYTES + len(node.name.encode())
        if size > most_bytes:
            break
        kept.append(_element(node))
    return tuple(kept)


def snapshot_data(
    snapshot: Snapshot,
    given: PageReadInput,
    *,
    outline: bool,
    most: int = 100,
    most_bytes: int = 16_384,
    found: Found | None = None,
    pending: tuple[PendingObject, ...] = (),
) -> BrowserSnapshot:
    """A snapshot in the form that was asked for; with a query, the nodes that were found."""
    nodes = found.nodes if found is not None else snapshot.nodes
    total = found.total if found is not None else snapshot.total
    elements = () if outline else _elements(nodes, most, most_bytes)
    shown = len(nodes) if outline else len(elements)
    return BrowserSnapshot(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        browser_generation=given.browser_generation,
        navigation_id=snapshot.navigation_id,
        snapshot_id=found.snapshot_id if found is not None else snapshot.snapshot_id,
        origin=snapshot.origin,
        url=snapshot.url,
        captured_at=datetime.fromtimestamp(snapshot.captured_at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        viewport=_viewport(snapshot.viewport.width, snapshot.viewport.height, snapshot.viewport.scale),
        frames=tuple(
            PageFrame(
                frame_id=frame.key,
                parent_frame_id=frame.parent,
                origin=frame.origin,
                url=frame.url,
                viewport_ref=frame.viewport_ref,
                viewport=_viewport(frame.viewport.width, frame.viewport.height, frame.viewport.scale),
            )
            for frame in snapshot.frames
        ),
        elements=elements,
        omitted=max(0, total - shown) if outline else 0,
        truncated=shown < total or snapshot.cut,
        omitted_frames=snapshot.omitted_frames,
        pending=pending or msgspec.UNSET,
        limitations=snapshot.limitations,
    )


def _viewport(width: float, height: float, scale: float) -> Viewport:
    return Viewport(width=width, height=height, device_scale_factor=scale)


def snapshot_text(snapshot: Snapshot) -> str:
    """The outline, with the ids that an action needs."""
    return f"navigationId {snapshot.navigation_id}, snapshotId first on the next line\n{snapshot_outline(snapshot)}"


def observation(seen: Seen) -> Observation:
    """What was seen after an action."""
    lines = observation_outline(seen).splitlines()
    navigation = seen.navigation.navigation_id if seen.navigation else None
    return Observation(settled=seen.settled, lines=tuple(lines), snapshot_id=seen.snapshot_id, navigation_id=navigation)


def geometry(capture: Capture, *, original: bool) -> BrowserGeometry:
    """Pixels of a picture against CSS pixels."""
    width = capture.original_width if original else capture.width
    height = capture.original_height if original else capture.height
    css_width, css_height = capture.clip[2], capture.clip[3]
    return BrowserGeometry(
        width=width,
        height=height,
        css_width=css_width,
        css_height=css_height,
        scale_x=width / css_width,
        scale_y=height / css_height,
        device_pixel_ratio=capture.device_scale,
        zoom=1.0,
        crop=capture.kind,
    )


def capture_text(capture: Capture) -> str:
    """What a model must know of the picture that it sees."""
    x, y, width, height = capture.clip
    lines = [
        f"{capture.kind} picture {capture.width}x{capture.height} of CSS {width:g}x{height:g} at {x:g},{y:g}",
        f"CSS pixel = picture pixel / {capture.pixels_per_css:g}",
    ]
    if capture.uniform:
        lines.append("every pixel has the same colour")
    return "\n".join(lines)


def logs_data(page: LogPage, given: BrowserLogsInput, origin: str) -> BrowserLogs:
    """A page of messages."""
    entries = tuple(
        LogEntry(
            sequence=entry.sequence,
            captured_at_millis=entry.captured_at_ms,
            kind=entry.kind,
            message=entry.message,
            level=entry.level,
            event_trusted=None,
        )
        for entry in page.entries
    )
    return BrowserLogs(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        browser_generation=given.browser_generation,
        navigation_id=page.navigation_id,
        log_kind=page.kind,
        origin=origin,
        capture_started_at_millis=page.capture_started_at_ms,
        coverage=page.coverage,
        entries=entries,
        next_cursor=page.next_cursor,
        dropped=page.dropped,
        has_more=page.has_more,
    )


def network_line(entry: NetworkEntry) -> str:
    """One request in a line."""
    status = entry.failed or entry.status or "no answer yet"
    times = "" if entry.duration_ms is None else f" {entry.duration_ms:g} ms {entry.byte_length} B"
    return f"{entry.method} {entry.url} {status} {entry.type} {entry.mime_type}{times}"


def network_data(page: Page, read: NetworkPage, given: BrowserLogsInput) -> BrowserLogs:
    """A page of requests."""
    return BrowserLogs(
        workspace_id=given.workspace_id,
        panel_id=given.panel_id,
        browser_generation=given.browser_generation,
        navigation_id=page.navigation_id,
        log_kind="network",
        origin=page.origin,
        capture_started_at_millis=page.network.began_at_ms,
        coverage=("all_frames", "since_page_opened"),
        entries=tuple(_request(entry) for entry in read.entries),
        next_cursor=read.next_cursor,
        dropped=read.dropped,
        has_more=read.has_more,
    )


def _request(entry: NetworkEntry) -> LogEntry:
    return LogEntry(
        sequence=entry.sequence,
        captured_at_millis=entry.started_at_ms,
        kind="network",
        message=network_line(entry)[:256],
        level="error" if entry.failed else None,
        event_trusted=None,
        request=NetworkRequest(
            method=entry.method,
            url=entry.url,
            type=entry.type,
            status=entry.status,
            mime_type=entry.mime_type,
            duration_millis=entry.duration_ms,
            byte_length=entry.byte_length,
            failed=entry.failed,
        ),
    )
