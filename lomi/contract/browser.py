"""Browser tools: open, navigate, snapshot, wait, click, fill, key, scroll, screenshot, logs."""

from typing import Annotated, Literal

import msgspec

from lomi.contract import browser_reasons
from lomi.contract.artifact import VIDEO_NOTE, Artifact, ArtifactFound, VideoAction
from lomi.contract.bounds import (
    NO_CONTROL,
    NO_NUL,
    Id,
    OutOfBounds,
    items,
    number,
    page_cursor,
    says,
    text,
)
from lomi.contract.definition import Definition, define
from lomi.contract.model import (
    Data,
    Model,
    PanelInput,
    PanelKeyed,
    PendingObject,
    Result,
    RevisedInput,
    SnapshotForm,
    SnapshotQuery,
)

Engine = Literal["chromium", "firefox", "webkit"]
NetworkIsolation = Literal["none", "egress_proxy"]
LogKind = Literal["javascript_error", "console", "promise_rejection", "network"]
Modifier = Literal["Alt", "Control", "Meta", "Shift"]
Modifiers = Annotated[tuple[Modifier, ...], items(4)]
_NAMED_KEYS = (
    "Enter|Tab|Escape|Backspace|Delete|Insert|ArrowUp|ArrowDown|ArrowLeft|ArrowRight|Home|End|PageUp|PageDown"
    "|F(?:[1-9]|1[0-2])"
)
Url = Annotated[
    str, text(16_384, shortest=1, pattern=NO_CONTROL, shown=False), says("http(s) of a granted origin, or about:blank")
]
KeyName = Annotated[
    str,
    text(32, shortest=1, pattern=rf"{_NAMED_KEYS}|[^\x00-\x1f\x7f-\x9f]", shown=False),
    says("Enter, Tab, Escape, Backspace, Delete, ArrowUp, Home, PageDown, F1 ... or one character"),
]
FillText = Annotated[str, text(most_bytes=16_384, pattern=NO_NUL)]
Distance = Annotated[float, number(-10_000, 10_000)]
CssOffset = Annotated[float, number(0, 100_000)]


class PageReadInput(PanelInput, frozen=True, kw_only=True):
    """Arguments of a read of one page."""

    browser_generation: Id


class PageKeyed(PanelKeyed, frozen=True, kw_only=True):
    """A mutation of one leased page."""

    browser_generation: Id
    lease_id: Id


class PageAction(PageKeyed, frozen=True, kw_only=True):
    """An action on a document that was seen in a snapshot."""

    navigation_id: Id
    snapshot_id: Id


class ElementAction(PageAction, frozen=True, kw_only=True):
    """An action on one element of that snapshot."""

    element_ref: Id


class BrowserOpenInput(RevisedInput, frozen=True, kw_only=True):
    """The first page."""

    url: Url
    visible: bool = True


class BrowserOpened(Result, frozen=True, kw_only=True, tag_field="kind", tag="browser"):
    """A page in an isolated context of its own. `leaseId` is filled in when the receipt is read, never stored."""

    workspace_id: str
    panel_id: str
    browser_generation: str
    profile_id: str
    navigation_id: str
    lease_id: str | None
    ready: bool
    engine: Engine
    network_isolation: NetworkIsolation


class BrowserNavigateInput(PageKeyed, frozen=True, kw_only=True):
    """Where to go, and what to wait for."""

    url: Url
    wait_until: Literal["commit", "load"] = "load"


class BrowserNavigation(Result, frozen=True, kw_only=True, tag_field="kind", tag="browser_navigation"):
    """The document that is there now."""

    workspace_id: str
    panel_id: str
    browser_generation: str
    navigation_id: str
    url: str
    committed: bool
    loaded: bool


class BrowserSnapshotInput(PageReadInput, frozen=True, kw_only=True):
    """How much of the page, in what form; `query` finds over the whole document."""

    max_nodes: Annotated[int, number(1, 500)] = 100
    max_bytes: Annotated[int, number(1024, 49_152)] = 16_384
    form: SnapshotForm | None = None
    query: SnapshotQuery | None = None


class Viewport(Model, frozen=True, kw_only=True):
    """A viewport in CSS pixels."""

    width: float
    height: float
    device_scale_factor: float


class PageFrame(Model, frozen=True, kw_only=True):
    """A frame inside the granted origins: `main`, `f1` ..."""

    frame_id: str
    parent_frame_id: str | None
    origin: str
    url: str
    viewport_ref: str
    viewport: Viewport


class PageElement(Model, frozen=True, kw_only=True):
    """One element. Values are never shown; `valueLength` is null for private fields."""

    frame_id: str
    element_ref: str
    role: str
    name: str
    enabled: bool
    editable: bool
    checked: bool | None
    value_length: int | None


class BrowserSnapshot(Data, frozen=True, kw_only=True, tag_field="kind", tag="browser_snapshot"):
    """The page as it was. In outline form `elements` is empty and `omitted` counts what the outline left out.

    `pending` is there where the page asks for something or has begun it, as in an observation.
    """

    workspace_id: str
    panel_id: str
    browser_generation: str
    navigation_id: str
    snapshot_id: str
    snapshot_kind: Literal["dom"] = "dom"
    frame_id: Literal["main"] = "main"
    origin: str
    url: str
    captured_at: str
    viewport: Viewport
    frames: tuple[PageFrame, ...]
    elements: tuple[PageElement, ...]
    omitted: int = 0
    truncated: bool
    omitted_frames: int
    pending: tuple[PendingObject, ...] | msgspec.UnsetType = msgspec.UNSET
    limitations: tuple[str, ...]


class TextShown(Model, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """The page shows this text."""

    text: Annotated[str, text(512, shortest=1)]


class ElementShown(Model, frozen=True, kw_only=True, tag_field="type", tag="element"):
    """There is an element of this role and name."""

    role: Annotated[str, text(64, shortest=1)]
    name: Annotated[str, text(512)]


class UrlReached(Model, frozen=True, kw_only=True, tag_field="type", tag="url"):
    """The document's URL is this one."""

    url: Url


class Loaded(Model, frozen=True, kw_only=True, tag_field="type", tag="load"):
    """The document has loaded."""


class BrowserWaitInput(PageReadInput, frozen=True, kw_only=True):
    """The condition, and how long to wait for it."""

    condition: TextShown | ElementShown | UrlReached | Loaded
    timeout_ms: Annotated[int, number(1, 10_000)] = 5000
    form: SnapshotForm | None = None


class BrowserWait(Data, frozen=True, kw_only=True, tag_field="kind", tag="browser_wait"):
    """Whether the condition came true; not `matched` is proven absent by the snapshot, never by its lack."""

    matched: bool
    elapsed_ms: int
    snapshot: BrowserSnapshot


class Offset(Model, frozen=True, kw_only=True):
    """CSS pixels from the element's top left corner."""

    x: CssOffset
    y: CssOffset


class Drop(Model, frozen=True, kw_only=True):
    """Where a drag ends: an element of the same snapshot, at its centre unless `position` says where."""

    element_ref: Id
    position: Offset | None = None


class BrowserClickInput(ElementAction, frozen=True, kw_only=True):
    """A click; with `checked` only where the box is not so yet; with `hover` only the pointer moves; `dragTo` drags."""

    button: Literal["left", "right", "middle"] = "left"
    count: Annotated[int, number(1, 3)] = 1
    modifiers: Modifiers = ()
    position: Annotated[Offset, says("in the element; default its centre")] | None = None
    checked: Annotated[bool, says("click only if the box is not so yet")] | None = None
    hover: Annotated[bool, says("move the pointer there, no click")] = False
    drag_to: Annotated[Drop, says("drag to this element instead")] | None = None


class BrowserFillInput(ElementAction, frozen=True, kw_only=True):
    """The new value, or the option to choose; `alsoSelect` are more options of a multiple select."""

    text: FillText
    also_select: Annotated[tuple[FillText, ...], items(64), says("further options of a multiple select")] = ()


class BrowserKeyInput(ElementAction, frozen=True, kw_only=True):
    """One key or chord on the focused element."""

    key: KeyName
    modifiers: Modifiers = ()
    count: Annotated[int, number(1, 50)] = 1


class BrowserScrollInput(PageAction, frozen=True, kw_only=True):
    """CSS pixels to scroll by. With `elementRef` that element is scrolled; 0 and 0 bring it into view."""

    viewport_ref: Annotated[Id, says("viewport or fK-viewport")] = "viewport"
    delta_x: Distance
    delta_y: Distance
    element_ref: Annotated[Id, says("scroll this element; deltas 0, 0 bring it into view")] | None = None


class ScrollPosition(Model, frozen=True, kw_only=True):
    """Where the viewport is now, in CSS pixels."""

    x: float
    y: float


class BrowserInteraction(Result, frozen=True, kw_only=True, tag_field="kind", tag="browser_interaction"):
    """An action that was dispatched as trusted input."""

    workspace_id: str
    panel_id: str
    browser_generation: str
    navigation_id: str
    snapshot_id: str
    element_ref: str
    dispatched: bool
    input_mode: Literal["trusted"] = "trusted"
    default_action: bool | None = None
    scroll_position: ScrollPosition | None = None
    value_length: int | None = None


class BrowserScreenshotInput(PageReadInput, frozen=True, kw_only=True):
    """Which part of the page, and bounds of the picture that the reply carries."""

    navigation_id: Id
    max_width: Annotated[int, number(64, 1600)] = 1280
    max_bytes: Annotated[int, number(16_384, 3_145_728)] = 1_048_576
    area: Annotated[Literal["viewport", "element", "full_page"], says("element needs snapshotId and elementRef")] = (
        "viewport"
    )
    snapshot_id: Id | None = None
    element_ref: Id | None = None
    video: VideoAction | None = None


class BrowserLogsInput(PageReadInput, frozen=True, kw_only=True):
    """A page of one kind of log; or the body of one listed request, or a trace, as an artifact."""

    log_kind: LogKind = "javascript_error"
    cursor: Annotated[str, page_cursor(160)] | None = None
    limit: Annotated[int, number(1, 64)] = 50
    body_of: Annotated[int, number(1, 2**53 - 1), says("network: store this request's response body")] | None = None
    trace: Annotated[Literal["start", "stop"], says("Playwright's viewer opens it; stop stores the zip")] | None = None


class NetworkRequest(Model, frozen=True, kw_only=True):
    """One request. No credentials in the address; `status` 0 means no response (yet); times in milliseconds."""

    method: str
    url: str
    type: str
    status: int
    mime_type: str
    duration_millis: float | None
    byte_length: int | None
    failed: str | None


class LogEntry(Model, frozen=True, kw_only=True):
    """One message, at most 256 UTF-16 units."""

    sequence: int
    captured_at_millis: int
    kind: LogKind
    message: str
    level: Literal["log", "info", "warn", "error", "debug"] | None
    event_trusted: bool | None
    request: NetworkRequest | msgspec.UnsetType = msgspec.UNSET


class BrowserLogs(Data, frozen=True, kw_only=True, tag_field="kind", tag="browser_logs"):
    """A page of messages of the main frame, or of the page's requests; `dropped` counts those no longer held."""

    workspace_id: str
    panel_id: str
    browser_generation: str
    navigation_id: str
    frame_id: Literal["main"] = "main"
    log_kind: LogKind
    origin: str
    capture_started_at_millis: int
    coverage: tuple[str, ...]
    entries: tuple[LogEntry, ...]
    next_cursor: str
    dropped: int
    has_more: bool
    artifact: Artifact | msgspec.UnsetType = msgspec.UNSET


def _click_rule(given: BrowserClickInput) -> None:
    ways = {"/checked": given.checked is not None, "/hover": given.hover, "/dragTo": given.drag_to is not None}
    chosen = [field for field, there in ways.items() if there]
    if len(chosen) > 1:
        raise OutOfBounds(chosen[1], "variant_unclear")
    if chosen and given.count != 1:
        raise OutOfBounds("/count", "variant_unclear")


def _scroll_rule(given: BrowserScrollInput) -> None:
    if given.element_ref is not None and given.viewport_ref != "viewport":
        raise OutOfBounds("/elementRef", "variant_unclear")


def _logs_rule(given: BrowserLogsInput) -> None:
    if given.body_of is not None and (given.log_kind != "network" or given.trace is not None):
        raise OutOfBounds("/bodyOf", "variant_unclear")


def _logs_scopes(given: BrowserLogsInput) -> tuple[str, ...]:
    if given.trace is not None:
        return ("browser.download", "browser.capture_composite")
    return ("browser.download",) if given.body_of is not None else ()


def _screenshot_rule(given: BrowserScreenshotInput) -> None:
    if given.video is not None and given.area != "viewport":
        raise OutOfBounds("/area", "variant_unclear")
    wanted = given.area == "element"
    for field, value in (("/snapshotId", given.snapshot_id), ("/elementRef", given.element_ref)):
        if (value is not None) != wanted:
            raise OutOfBounds(field, "field_needed" if wanted else "variant_unclear")


_ACTION_NOTES = (
    "Trusted input, after checking that the element is attached, visible, enabled and uncovered at its point.",
    "A ref lives until its node or document goes; the last 8 snapshots of a page count.",
    "What a page asks for is answered by `elementRef` too; `snapshotId` is not looked at then.",
    "Click `d1-accept`, `d1-dismiss`, `c1-dismiss`, `x1-dismiss`; fill `d1` for a prompt; or key Enter, Escape.",
)


def _action(
    name: str, purpose: str, given: type[PageAction], *notes: str, secret_fields: frozenset[str] = frozenset()
) -> Definition:
    """Define one of the four tools that act on a page."""
    rules = {BrowserClickInput: _click_rule, BrowserScrollInput: _scroll_rule}
    more = {"rule": rules[given]} if given in rules else {}
    return define(
        name=name,
        family="browser",
        purpose=purpose,
        input=given,
        results=(BrowserInteraction,),
        scopes=("browser.interact",),
        mutation=True,
        needs_lease=True,
        destructive=True,
        open_world=True,
        secret_fields=secret_fields,
        notes=(*notes, *_ACTION_NOTES),
        **more,
    )


TOOLS = (
    define(
        name="lomi_browser_open",
        family="browser",
        purpose="Open a page in an isolated browser context; returns its lease.",
        input=BrowserOpenInput,
        results=(BrowserOpened,),
        scopes=("panel.create", "browser.navigate"),
        mutation=True,
        open_world=True,
        queue="none",
        notes=("One context per call; popups share their opener's context, each page its own generation.",),
    ),
    define(
        name="lomi_browser_navigate",
        family="browser",
        purpose="Go to a granted URL; answers with what is there.",
        input=BrowserNavigateInput,
        results=(BrowserNavigation,),
        scopes=("browser.navigate",),
        mutation=True,
        needs_lease=True,
        open_world=True,
        notes=("A redirect out of the granted origins is stopped; the old document stays.",),
    ),
    define(
        name="lomi_browser_snapshot",
        family="browser",
        purpose="Read the page's elements with refs to act on.",
        input=BrowserSnapshotInput,
        results=(BrowserSnapshot,),
        scopes=("browser.read",),
        deadline_s=5.0,
        queue="none",
        notes=(
            "Values are never returned; the length of private ones neither.",
            "At most 16 frames, 4 deep, inside the granted origins.",
            "`form` is `elements` by default, `outline` in the qa profile.",
            "Dialogs, choosers, popups and running downloads are in `pending`, as in an observation: id, expiresInMs.",
        ),
    ),
    define(
        name="lomi_browser_wait",
        family="browser",
        purpose="Wait until a text, element, URL or load is there; matched says whether it came.",
        input=BrowserWaitInput,
        results=(BrowserWait,),
        scopes=("browser.read",),
        deadline_s=15.0,
        queue="none",
        notes=("Where the page could not be observed at the end: an error with reason `no_observation`.",),
    ),
    _action(
        "lomi_browser_click",
        "Click, hover, check or drag an element; answers with what changed.",
        BrowserClickInput,
    ),
    _action(
        "lomi_browser_fill",
        "Replace an editable element's value, or choose an option of a select.",
        BrowserFillInput,
        "text, search, email, url, tel, password, number, textarea, select, contenteditable.",
        secret_fields=frozenset({"text"}),
    ),
    _action(
        "lomi_browser_key",
        "Press a key or chord on an element that has the focus.",
        BrowserKeyInput,
        "Default actions are performed.",
    ),
    _action(
        "lomi_browser_scroll",
        "Scroll a viewport or an element, or bring an element into view.",
        BrowserScrollInput,
        "`elementRef` of the result is the viewport or element that was scrolled.",
    ),
    define(
        name="lomi_browser_screenshot",
        family="browser",
        purpose="Take a PNG of the viewport, an element or the full page.",
        input=BrowserScreenshotInput,
        results=(ArtifactFound,),
        scopes=("browser.capture_composite",),
        rule=_screenshot_rule,
        deadline_s=5.0,
        queue="none",
        notes=("At most 2,000,000 pixels in the reply; the geometry gives the scale to CSS pixels.", VIDEO_NOTE),
    ),
    define(
        name="lomi_browser_logs",
        family="browser",
        purpose="Read the page's JavaScript errors, console messages, promise rejections or network requests.",
        input=BrowserLogsInput,
        results=(BrowserLogs,),
        scopes=("browser.read",),
        more_scopes=_logs_scopes,
        more_scopes_text=("bodyOf: browser.download", "trace: browser.download, browser.capture_composite"),
        rule=_logs_rule,
        deadline_s=60.0,
        queue="none",
        notes=(
            "64 messages of each kind are kept, and 256 requests; a body is had while the engine still holds it.",
            "A trace holds typed text and cookies. It needs the lease; it is dropped with it, and after 10 minutes.",
        ),
    ),
)
REASONS = browser_reasons.REASONS
