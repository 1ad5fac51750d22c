"""Android tools: list, open, start, stop, input, snapshot, screenshot, log, launch, install.

Setting up is in `android_setup`.
"""

from typing import Annotated, Literal

import msgspec

from lomi.contract import android_reasons
from lomi.contract.android_setup import TOOLS as _SETUP_TOOLS
from lomi.contract.artifact import VIDEO_NOTE, ArtifactFound, VideoAction
from lomi.contract.bounds import (
    NO_NUL,
    Epoch,
    Hex32,
    Hex64,
    Id,
    OutOfBounds,
    Sequence,
    Uuid,
    number,
    page_cursor,
    says,
    text,
)
from lomi.contract.definition import define
from lomi.contract.model import (
    Data,
    Model,
    PanelInput,
    PanelKeyed,
    PanelRevised,
    Result,
    RevisedInput,
    SnapshotForm,
    SnapshotQuery,
    WaitMs,
    WorkspaceInput,
)

Phase = Literal["stopped", "starting", "booting", "running", "stopping", "failed"]
Key = Annotated[
    str,
    text(
        most_bytes=32,
        pattern="[ -~]|Alt|AltGraph|Control|Shift|Meta|Escape|Enter|Tab|Backspace|Delete|Arrow(?:Left|Right|Up|Down)"
        "|Home|End|Page(?:Up|Down)",
        shown=False,
    ),
    says("one ASCII character, or a name: Enter, Tab, Escape, Backspace, Delete, ArrowLeft, PageUp, Home, Control ..."),
]
_PART = r"[A-Za-z_][A-Za-z0-9_$]*"
PackageName = Annotated[str, text(255, pattern=r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)+", shown=False)]
Activity = Annotated[str, text(512, pattern=rf"\.?{_PART}(?:\.{_PART})*", shown=False)]
Pixel = Annotated[int, number(0, 32_767, shown=False)]


class DeviceReadInput(PanelInput, frozen=True, kw_only=True):
    """Arguments of a read of one running phone."""

    device_id: Uuid
    generation: Uuid


class DeviceRevised(PanelRevised, frozen=True, kw_only=True):
    """A revised mutation of one phone through one of its panels."""

    device_id: Uuid


class AndroidListInput(WorkspaceInput, frozen=True, kw_only=True):
    """The workspace."""


class DeviceView(Model, frozen=True, kw_only=True):
    """One phone. `display` is `[width, height]` in unrotated hardware pixels; `simulated` is true for `paper`."""

    device_id: str
    name: str
    generation: str | None
    phase: Phase
    process_alive: bool
    display: tuple[int, int] | None
    simulated: bool


class Devices(Model, frozen=True, kw_only=True):
    """The granted phones, with the revision of the list."""

    devices_revision: str
    host_qualified: bool
    items: tuple[DeviceView, ...]


class AndroidDevices(Data, frozen=True, kw_only=True, tag_field="kind", tag="android_devices"):
    """The granted phones."""

    workspace_id: str
    devices: Devices


class AndroidOpenInput(RevisedInput, frozen=True, kw_only=True):
    """The phone to open a panel for."""

    device_id: Uuid


class AndroidPanel(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_panel"):
    """A panel of a phone."""

    workspace_id: str
    panel_id: str
    device_id: str


class AndroidStartInput(DeviceRevised, frozen=True, kw_only=True):
    """The phone to start."""


class AndroidStopInput(DeviceRevised, frozen=True, kw_only=True):
    """The exact generation to stop."""

    generation: Uuid


class AndroidRuntime(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_runtime"):
    """A generation that is ready, or observed gone."""

    workspace_id: str
    device_id: str
    generation: str
    ready: bool
    stopped: bool


class Place(Model, frozen=True, kw_only=True):
    """Where to touch: `{snapshotId, ref}` (a node's id in decimal), or `{space, x, y}` in unrotated hardware pixels."""

    snapshot_id: Id | None = None
    ref: Id | None = None
    space: Literal["hardware_display"] | None = None
    x: Pixel | None = None
    y: Pixel | None = None


_At = Annotated[Place, says("{snapshotId, ref} or {space, x, y}")]


class Tap(Model, frozen=True, kw_only=True, tag_field="type", tag="tap"):
    """Tap `count` times, each held for `holdMs`; one operation."""

    at: _At
    count: Annotated[int, number(1, 3)] = 1
    hold_ms: Annotated[int, number(0, 10_000)] = 0


class Swipe(Model, frozen=True, kw_only=True, tag_field="type", tag="swipe"):
    """Move one finger in `durationMs`; one operation."""

    from_: _At = msgspec.field(name="from")
    to: _At
    duration_ms: Annotated[int, number(50, 10_000)] = 300


class Press(Model, frozen=True, kw_only=True, tag_field="type", tag="press"):
    """Press and lift one key `count` times; one operation."""

    key: Key
    count: Annotated[int, number(1, 50)] = 1


class CommitText(Model, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text committed to the focused field."""

    text: Annotated[str, text(most_bytes=16_384, pattern=NO_NUL)]


class Navigate(Model, frozen=True, kw_only=True, tag_field="type", tag="navigation"):
    """A system button."""

    key: Literal["back", "home", "overview", "power"]


class Rotate(Model, frozen=True, kw_only=True, tag_field="type", tag="rotate"):
    """Turn the phone to this many quarter turns."""

    quarter_turns: Annotated[int, number(0, 3)]


class HoldKey(Model, frozen=True, kw_only=True, tag_field="type", tag="key"):
    """Hold a key down or lift it."""

    key: Key
    down: bool


class Touch(Model, frozen=True, kw_only=True, tag_field="type", tag="touch"):
    """One phase of one of two fingers, in unrotated hardware pixels."""

    space: Literal["hardware_display"]
    identifier: Annotated[int, number(0, 1)]
    x: Pixel
    y: Pixel
    phase: Literal["down", "move", "up"]


AndroidEvent = Tap | Swipe | Press | CommitText | Navigate | Rotate | HoldKey | Touch


class AndroidInputInput(PanelInput, frozen=True, kw_only=True):
    """One event for the leased phone. `waitMs` null means 2000, and 0 for `touch` and `key`."""

    device_id: Uuid
    generation: Uuid
    lease_id: Id
    input_sequence: Annotated[Sequence, says("last + 1, from 1")]
    event: AndroidEvent
    retry_epoch: Epoch
    wait_ms: Annotated[WaitMs, says("default 2000; 0 for touch and key")] | None = None


class AndroidInput(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_input"):
    """An event that reached the phone."""

    workspace_id: str
    device_id: str
    generation: str
    input_sequence: str


class AndroidSnapshotInput(DeviceReadInput, frozen=True, kw_only=True):
    """How much of the hierarchy, in what form; `query` finds over the whole tree."""

    max_nodes: Annotated[int, number(1, 500)] = 250
    max_bytes: Annotated[int, number(1024, 49_152)] = 32_768
    form: SnapshotForm | None = None
    query: SnapshotQuery | None = None


class AndroidNode(Model, frozen=True, kw_only=True):
    """One node of the hierarchy. `bounds` are `[left, top, right, bottom]` in rotated display pixels."""

    id: int
    parent: int | None
    class_: str = msgspec.field(name="class")
    resource_id: str
    package: str
    description: str
    text: str
    bounds: tuple[int, int, int, int] | None
    enabled: bool
    clickable: bool
    focused: bool
    scrollable: bool
    checked: bool
    value_omitted: bool


class AndroidSnapshot(Data, frozen=True, kw_only=True, tag_field="kind", tag="android_snapshot"):
    """The hierarchy as it was. In outline form `nodes` is empty and `omitted` counts what the outline left out."""

    workspace_id: str
    panel_id: str
    device_id: str
    generation: str
    snapshot_id: str
    captured_at_millis: str
    hardware_display: tuple[int, int]
    rotation: Literal[0, 1, 2, 3]
    coordinate_space: Literal["rotated_display"] = "rotated_display"
    nodes: tuple[AndroidNode, ...]
    omitted: int = 0
    truncated: bool
    limitations: tuple[str, ...]


class AndroidScreenshotInput(DeviceReadInput, frozen=True, kw_only=True):
    """Bounds of the picture that the reply carries."""

    max_edge: Annotated[int, number(64, 1600)] = 1280
    max_bytes: Annotated[int, number(16_384, 3_145_728)] = 1_048_576
    video: VideoAction | None = None


class AndroidLogcatInput(DeviceReadInput, frozen=True, kw_only=True):
    """A page of one app's log."""

    package_name: PackageName
    min_priority: Literal["V", "D", "I", "W", "E", "F"]
    limit: Annotated[int, number(1, 64)]
    cursor: Annotated[str, page_cursor(80)] | None = None


class AndroidLogcat(Data, frozen=True, kw_only=True, tag_field="kind", tag="android_logcat"):
    """A page of log lines; what came before or between is never known."""

    workspace_id: str
    device_id: str
    generation: str
    package_name: str
    process_id: int
    lines: tuple[str, ...]
    next_cursor: str | None
    truncated: bool
    complete: Literal[False] = False
    scope: Literal["main_process_main_buffer_recent_snapshot"] = "main_process_main_buffer_recent_snapshot"
    gap: Literal["unknown"] = "unknown"


class AndroidLaunchInput(DeviceRevised, frozen=True, kw_only=True):
    """The app to launch; without `activity` its launcher."""

    generation: Uuid
    package_name: PackageName
    activity: Activity | None = None


class AndroidLaunch(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_launch"):
    """An intent that was delivered; no proof of what the app did."""

    workspace_id: str
    panel_id: str
    device_id: str
    generation: str
    package_name: str
    activity: str | None
    intent_delivered: bool


class AndroidInstallInput(PanelKeyed, frozen=True, kw_only=True):
    """The imported APK to install, by id and hash."""

    device_id: Uuid
    generation: Uuid
    artifact_id: Hex32
    sha256: Hex64


class AndroidInstall(Result, frozen=True, kw_only=True, tag_field="kind", tag="android_install"):
    """What the installer said; versions before and after where they were read."""

    workspace_id: str
    device_id: str
    generation: str
    artifact_id: str
    sha256: str
    installed: bool
    package_name: str | None
    previous_version: str | None
    new_version: str | None
    installer_failure: str | None


def _check_place(place: Place, field: str) -> None:
    by_ref = place.snapshot_id is not None and place.ref is not None
    by_point = place.space is not None and place.x is not None and place.y is not None
    given = sum(value is not None for value in (place.snapshot_id, place.ref, place.space, place.x, place.y))
    if not ((by_ref and given == 2) or (by_point and given == 3)):
        raise OutOfBounds(field, "variant_unclear")


def _input_rule(given: AndroidInputInput) -> None:
    match given.event:
        case Tap(at=at):
            _check_place(at, "/event/at")
        case Swipe(from_=start, to=end):
            _check_place(start, "/event/from")
            _check_place(end, "/event/to")
        case _:
            pass


def input_wait_ms(given: AndroidInputInput) -> int:
    """`waitMs` of an event: as given, else 0 for `touch` and `key` and 2000 for the others."""
    if given.wait_ms is not None:
        return given.wait_ms
    return 0 if isinstance(given.event, (Touch, HoldKey)) else 2000


TOOLS = (
    define(
        name="lomi_android_list",
        family="android",
        purpose="List the granted phones: phase, running generation, whether simulated.",
        input=AndroidListInput,
        results=(AndroidDevices,),
        scopes=("android.read",),
        deadline_s=5.0,
        queue="none",
    ),
    define(
        name="lomi_android_open",
        family="android",
        purpose="Open a panel for a phone; does not start it.",
        input=AndroidOpenInput,
        results=(AndroidPanel,),
        scopes=("panel.create", "android.read"),
        mutation=True,
        queue="none",
    ),
    define(
        name="lomi_android_start",
        family="android",
        purpose="Start the phone of an open panel and wait until it is ready.",
        input=AndroidStartInput,
        results=(AndroidRuntime,),
        scopes=("android.read", "android.control"),
        mutation=True,
        deadline_s=180.0,
        notes=("Never takes over a phone that a person started.",),
    ),
    define(
        name="lomi_android_stop",
        family="android",
        purpose="Stop the running generation; done means observed gone.",
        input=AndroidStopInput,
        results=(AndroidRuntime,),
        scopes=("android.read", "android.control"),
        mutation=True,
        destructive=True,
        deadline_s=180.0,
    ),
    define(
        name="lomi_android_input",
        family="android",
        purpose="One input event to the leased phone; answers with what changed. Prefer tap, swipe, press and text.",
        input=AndroidInputInput,
        results=(AndroidInput,),
        scopes=("android.read", "android.control", "android.interact"),
        rule=_input_rule,
        wait_of=input_wait_ms,
        mutation=True,
        needs_lease=True,
        destructive=True,
        open_world=True,
        secret_fields=frozenset({"text"}),
        notes=(
            "No requestKey and no expectedRevision: retryEpoch, leaseId and inputSequence identify a retry.",
            "The ledger keeps 128 events; a gap is REVISION_CONFLICT, an older one RETRY_WINDOW_EXPIRED.",
            "At most 8 keys are held; an error between down and up lifts the finger and settles partial.",
        ),
    ),
    define(
        name="lomi_android_snapshot",
        family="android",
        purpose="Read the phone's UI hierarchy with refs to act on.",
        input=AndroidSnapshotInput,
        results=(AndroidSnapshot,),
        scopes=("android.read", "android.control", "android.observe"),
        deadline_s=12.0,
        queue="none",
        notes=(
            "Text of password and editable fields is omitted.",
            "`form` is `elements` by default, `outline` in the qa profile.",
        ),
    ),
    define(
        name="lomi_android_screenshot",
        family="android",
        purpose="Take a PNG of the phone's whole display, with the transform to hardware pixels.",
        input=AndroidScreenshotInput,
        results=(ArtifactFound,),
        scopes=("android.read", "android.control", "android.capture"),
        deadline_s=5.0,
        queue="none",
        notes=("At most 2,000,000 pixels, so the edge is at most 1414.", VIDEO_NOTE),
    ),
    define(
        name="lomi_android_logcat",
        family="android",
        purpose="Read recent log lines of one app's main process.",
        input=AndroidLogcatInput,
        results=(AndroidLogcat,),
        scopes=("android.read", "android.control", "android.logs"),
        deadline_s=8.0,
        queue="none",
        notes=("At most 256 lines of 2048 bytes, kept for 60 s for paging.", "Apps with a shared user id are refused."),
    ),
    define(
        name="lomi_android_launch",
        family="android",
        purpose="Launch an app or one of its activities; proves delivery only.",
        input=AndroidLaunchInput,
        results=(AndroidLaunch,),
        scopes=("android.read", "android.control", "android.launch"),
        mutation=True,
        destructive=True,
        open_world=True,
    ),
    define(
        name="lomi_android_install_apk",
        family="android",
        purpose="Install an imported APK after a decision; keeps the app's data.",
        input=AndroidInstallInput,
        results=(AndroidInstall,),
        scopes=("android.read", "android.control", "android.install", "files.read"),
        mutation=True,
        destructive=True,
        deadline_s=180.0,
        decision_s=120.0,
        notes=("One per phone, two at once, eight waiting; never uninstalls to get past a conflict.",),
    ),
    *_SETUP_TOOLS,
)
REASONS = android_reasons.REASONS
