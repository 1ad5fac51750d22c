"""The frozen values this library answers with."""

from typing import Literal

from msgspec import Struct

Checked = Literal["true", "false", "mixed"]


class Viewport(Struct, frozen=True):
    """Size in CSS pixels and device pixels per CSS pixel."""

    width: int
    height: int
    scale: float = 1.0


class Node(Struct, frozen=True):
    """One thing to act on or to read. Field values are never here; `value_length` is, unless the field is private."""

    ref: str
    frame: str
    role: str
    name: str
    enabled: bool = True
    editable: bool = False
    checked: Checked | None = None
    value_length: int | None = None
    level: int | None = None
    expanded: bool | None = None
    selected: bool = False
    required: bool = False
    invalid: bool = False
    focused: bool = False
    in_viewport: bool = True
    hidden: bool = False  # rendered, but a person can't see it
    name_unseen: bool = False  # the name is not text on the screen (aria-label, alt, title)
    repaired: bool = False  # lone surrogates were replaced
    label_of_control: bool = False
    options: tuple[str, ...] = ()
    option_count: int = 0


class FrameSummary(Struct, frozen=True):
    """One frame of a page; `document` changes whenever the frame's document does."""

    key: str
    parent: str | None
    origin: str
    url: str
    document: str
    viewport: Viewport
    viewport_ref: str


class Snapshot(Struct, frozen=True):
    """What a page offers at one instant.

    `counts` are totals per role over every listed frame, `nodes` the bounded choice: viewport first. `cut` says that
    a walk ran out of time, so that the counts are lower bounds.
    """

    snapshot_id: str
    generation: str
    navigation_id: str
    url: str
    origin: str
    title: str
    viewport: Viewport
    scroll: tuple[float, float]
    full_height: int
    frames: tuple[FrameSummary, ...]
    nodes: tuple[Node, ...]
    counts: dict[str, int]
    total: int
    in_viewport: int
    omitted_frames: int
    cut: bool
    captured_at_ms: int
    limitations: tuple[str, ...] = ()


class Found(Struct, frozen=True):
    """Answer to a query over the whole document: the first matches and how many there are."""

    snapshot_id: str
    nodes: tuple[Node, ...]
    total: int
    cut: bool


class Diff(Struct, frozen=True):
    """What an action changed among the listed nodes; `counts` are changes of the totals per role."""

    added: tuple[Node, ...] = ()
    changed: tuple[Node, ...] = ()
    removed: tuple[Node, ...] = ()
    counts: dict[str, int] = {}
    omitted: int = 0
    focus: str | None = None


class Navigation(Struct, frozen=True):
    """A change of address: a new document or a step within the old one."""

    navigation_id: str
    url: str
    kind: Literal["document", "within_document"]


class Observation(Struct, frozen=True):
    """What was seen after an action. Rides beside the receipt; never part of it."""

    settled: bool
    elapsed_ms: float
    snapshot_id: str | None
    diff: Diff
    navigation: Navigation | None = None
    page: Snapshot | None = None  # the fresh document's snapshot after a navigation
    dialog: str | None = None
    opened: tuple[str, ...] = ()  # popups by id
    closed: bool = False
    choosers: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    refused_documents: tuple[str, ...] = ()
    console_errors: tuple[str, ...] = ()
    pending_requests: int = 0


class Acted(Struct, frozen=True):
    """Outcome of one action: what is certain about the effect, and the observation."""

    ref: str | None
    navigation_id: str
    observation: Observation
    input_mode: Literal["trusted", "scripted"] = "trusted"
    delivered: bool | None = None  # seen by the target's document; None when it went away before it could say
    value_length: int | None = None
    checked: Checked | None = None
    scroll: tuple[float, float] | None = None
    released_on: str | None = None  # what the press's release landed on, where the page had moved the target away


class Navigated(Struct, frozen=True):
    """Outcome of a navigation by address or history."""

    navigation_id: str
    url: str
    committed: bool
    loaded: bool
    status: int | None
    observation: Observation
