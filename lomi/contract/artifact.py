"""Artifacts: immutable bytes with a hash and a source. Tools: import, read, export."""

from typing import Annotated, Literal

from lomi.contract.bounds import ArtifactBytes, Hex32, Hex64, OutOfBounds, RelativePath, number, says, text
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, Model, Result, RevisedInput, WorkspaceInput

VideoAction = Annotated[Literal["start", "stop", "drop"], says("record from start on; stop keeps it")]
VIDEO_NOTE = (
    "A video needs the lease. `start` answers with the artifact to be, still empty; `stop` with the animated WebP, at "
    "most 10 minutes and 4 MiB. It ends with the lease or its target too, and is then under that id all the same."
)
Edge = Annotated[int, number(1, 4096)]
Affine = tuple[float, float, float, float, float, float]
"""`[a, b, c, d, tx, ty]`: x = a*u + c*v + tx, y = b*u + d*v + ty."""


class BrowserSource(Model, frozen=True, kw_only=True, tag_field="type", tag="browser"):
    """A page: of its picture, or of a download from it."""

    workspace_id: str
    panel_id: str
    browser_generation: str
    profile_id: str
    navigation_id: str
    origin: str
    required_scope: Literal["browser.capture_composite", "browser.download"]


class AndroidSource(Model, frozen=True, kw_only=True, tag_field="type", tag="android"):
    """A phone: its display, or the last words of its emulator (scope `android.control`)."""

    workspace_id: str
    panel_id: str
    device_id: str
    generation: str
    required_scope: Literal["android.capture", "android.control"] = "android.capture"


class ProjectSource(Model, frozen=True, kw_only=True, tag_field="type", tag="project"):
    """A file of a project."""

    kind: Literal["android_apk", "file"]
    workspace_id: str
    relative_path: str
    required_scope: Literal["files.read"] = "files.read"


ArtifactSource = BrowserSource | AndroidSource | ProjectSource


class BrowserGeometry(Model, frozen=True, kw_only=True, tag_field="type", tag="browser"):
    """Pixels of a page's picture against CSS pixels; `scaleX` is width / cssWidth, `scaleY` height / cssHeight."""

    width: int
    height: int
    css_width: float
    css_height: float
    scale_x: float
    scale_y: float
    device_pixel_ratio: float
    zoom: float
    crop: Literal["viewport", "element", "full_page"]


class AndroidGeometry(Model, frozen=True, kw_only=True, tag_field="type", tag="android"):
    """Pixels of a phone's picture against unrotated hardware pixels. `rotation` in quarter turns; floor, then clamp."""

    width: int
    height: int
    hardware_width: int
    hardware_height: int
    rotation: int
    image_to_hardware: Affine


Geometry = BrowserGeometry | AndroidGeometry


class Artifact(Model, frozen=True, kw_only=True):
    """What is known of an artifact: 32 hex id, SHA-256 of its bytes, life in seconds since the epoch, its source."""

    id: str
    media_type: Literal["image/png", "application/vnd.android.package-archive", "application/octet-stream"]
    byte_length: int
    sha256: str
    created_at_seconds: int
    expires_at_seconds: int
    source: ArtifactSource
    image: Geometry | None


class ArtifactFound(Data, frozen=True, kw_only=True, tag_field="kind", tag="artifact"):
    """An artifact; a capture's picture rides beside it."""

    artifact: Artifact


class ArtifactImportInput(RevisedInput, frozen=True, kw_only=True):
    """The file to copy, with the exact length and hash that it must have."""

    relative_path: RelativePath
    kind: Literal["android_apk", "file"]
    expected_byte_length: ArtifactBytes
    expected_sha256: Hex64
    large: Annotated[bool, says("a file of up to 512 MiB, for lomi_browser_upload")] = False


class ArtifactImported(Result, frozen=True, kw_only=True, tag_field="kind", tag="artifact_imported"):
    """A copy that matched."""

    workspace_id: str
    artifact_id: str
    sha256: str
    byte_length: int


class ArtifactReadInput(WorkspaceInput, frozen=True, kw_only=True):
    """The artifact to read; with `offset` its bytes from there on, at most `maxBytes` of them, beside the reply."""

    artifact_id: Hex32
    offset: Annotated[int, number(0, 536_870_912), says("its bytes from here on come along")] | None = None
    max_bytes: Annotated[int, number(1, 3_145_728)] = 1_048_576


_Hash = Annotated[str, text(pattern="[0-9a-f]{64}", code=ErrorCode.REVISION_CONFLICT, shown=False)]


class ArtifactExportInput(RevisedInput, frozen=True, kw_only=True):
    """The artifact and the new file to write it to. A malformed hash here is a revision conflict."""

    artifact_id: Hex32
    expected_sha256: _Hash
    relative_path: RelativePath
    expected_parent_revision: _Hash


class ArtifactExported(Result, frozen=True, kw_only=True, tag_field="kind", tag="artifact_exported"):
    """A new file."""

    workspace_id: str
    relative_path: str
    artifact: Artifact


def _import_scopes(given: ArtifactImportInput) -> tuple[str, ...]:
    return ("artifact.import",) if given.kind == "android_apk" else ("artifact.import_file",)


def _import_rule(given: ArtifactImportInput) -> None:
    if given.kind == "android_apk":
        if given.expected_byte_length < 4:
            raise OutOfBounds("/expectedByteLength", "out_of_range", limit=4)
        if not given.relative_path.endswith(".apk"):
            raise OutOfBounds("/relativePath", "not_an_apk", code=ErrorCode.ARTIFACT_INVALID)
    elif given.expected_byte_length > 4_194_304 and not given.large:
        raise OutOfBounds("/expectedByteLength", "out_of_range", limit=4_194_304)


TOOLS = (
    define(
        name="lomi_artifact_import",
        family="artifact",
        purpose="Copy one project file into an immutable artifact; its length and SHA-256 must match.",
        input=ArtifactImportInput,
        results=(ArtifactImported,),
        scopes=("files.read",),
        more_scopes=_import_scopes,
        more_scopes_text=("android_apk: artifact.import", "file: artifact.import_file"),
        rule=_import_rule,
        mutation=True,
        deadline_s=180.0,
        queue="none",
        notes=(
            "The path of an APK ends in .apk; its ZIP structure and manifest are checked.",
            "A file is at most 4 MiB, 512 MiB with `large`.",
        ),
    ),
    define(
        name="lomi_artifact_read",
        family="artifact",
        purpose="Read an artifact's facts, and the PNG of a capture or a piece of its bytes.",
        input=ArtifactReadInput,
        results=(ArtifactFound,),
        scopes=("workspace.read",),
        more_scopes_text=("the requiredScope of the artifact's source",),
        queue="none",
        notes=("The source's scope and target are checked again, not only who owns the artifact.",),
    ),
    define(
        name="lomi_artifact_export",
        family="artifact",
        purpose="Write an artifact as a new project file; never overwrites.",
        input=ArtifactExportInput,
        results=(ArtifactExported,),
        scopes=("files.read", "files.mutate", "files.create", "artifact.export"),
        more_scopes_text=("the requiredScope of the artifact's source",),
        mutation=True,
        open_world=True,
        queue="none",
        notes=(
            "At most 4 MiB. A folder in another state is told by `parent_changed`, whose details hold its revision.",
        ),
    ),
)

_INVALID = ErrorCode.ARTIFACT_INVALID
REASONS = (
    Reason("not_an_apk", _INVALID, "Give a well-formed APK: a plain ZIP with a binary AndroidManifest.xml."),
    Reason("artifact_corrupt", _INVALID, "The stored bytes no longer match their hash; import or capture again."),
    Reason("artifact_class", _INVALID, "This tool takes another class of artifact: image, apk or file."),
    Reason("no_such_video", ErrorCode.TARGET_NOT_FOUND, "No video is being taken; if it ended, read its artifact."),
    Reason("video_running", ErrorCode.TARGET_BUSY, "A video of it is being taken; stop or drop it first."),
    Reason("video_empty", ErrorCode.DEADLINE_EXCEEDED, "No picture came while it was recorded; try a screenshot."),
    Reason("not_exportable", ErrorCode.ARTIFACT_TOO_LARGE, "Artifacts over 4 MiB can't be exported."),
    Reason(
        "parent_changed", ErrorCode.REVISION_CONFLICT, "Use the folder's revision of now, which details.current is."
    ),
    Reason("other_bytes", ErrorCode.REVISION_CONFLICT, "The artifact has another SHA-256; read its facts again."),
    Reason(
        "quota_full", ErrorCode.RESOURCE_EXHAUSTED, "Artifacts expire after 24 h; ask the owner to raise the quota."
    ),
)
