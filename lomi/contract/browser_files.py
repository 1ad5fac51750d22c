"""Browser tools that carry files: download out of a page, upload into one."""

from typing import Annotated, Literal

from lomi.contract.artifact import Artifact
from lomi.contract.bounds import FileName, Hex32, Hex64, Id, number, says
from lomi.contract.browser import Url
from lomi.contract.definition import define
from lomi.contract.model import Model, PanelRevised, Result


class BrowserDownloadInput(PanelRevised, frozen=True, kw_only=True):
    """A URL of the document's own origin; or, by its id, a download that the page itself began."""

    browser_generation: Id
    navigation_id: Id
    url: Url
    max_bytes: Annotated[int, number(1, 4_194_304)] = 4_194_304
    large: Annotated[bool, says("up to 512 MiB instead of maxBytes")] = False
    download_id: Annotated[Id, says("of an observation; url about:blank, maxBytes not used")] | None = None


class BrowserDownloaded(Result, frozen=True, kw_only=True, tag_field="kind", tag="browser_downloaded"):
    """The artifact that holds the bytes."""

    artifact: Artifact


class BrowserUploadInput(PanelRevised, frozen=True, kw_only=True):
    """The artifact to attach to a file input, by id and hash, and the name it goes by."""

    browser_generation: Id
    lease_id: Id
    navigation_id: Id
    snapshot_id: Id
    element_ref: Id
    frame_id: Id
    artifact_id: Hex32
    expected_sha256: Hex64
    file_name: FileName


class UploadTarget(Model, frozen=True, kw_only=True):
    """The file input that took it."""

    frame_id: str
    origin: str
    document_url: str
    label: str


class BrowserUploaded(Result, frozen=True, kw_only=True, tag_field="kind", tag="browser_uploaded"):
    """A file that was attached; no proof that a server took it."""

    workspace_id: str
    panel_id: str
    browser_generation: str
    navigation_id: str
    snapshot_id: str
    element_ref: str
    target: UploadTarget
    file_name: str
    artifact: Artifact
    input_mode: Literal["trusted"] = "trusted"
    dispatched: bool


TOOLS = (
    define(
        name="lomi_browser_download",
        family="browser",
        purpose="Fetch a URL of the page's own origin, with its session, into an artifact.",
        input=BrowserDownloadInput,
        results=(BrowserDownloaded,),
        scopes=("browser.download", "browser.read"),
        mutation=True,
        open_world=True,
        deadline_s=180.0,
        notes=(
            "GET; redirects are refused; only 200 and 204 count; 5 s, 170 s with `large`.",
            "With `downloadId`: waits for a download that the page began, of at most 512 MiB, and stores it.",
        ),
    ),
    define(
        name="lomi_browser_upload",
        family="browser",
        purpose="Attach a file artifact to a file input, after a decision.",
        input=BrowserUploadInput,
        results=(BrowserUploaded,),
        scopes=("browser.upload", "browser.read", "browser.interact"),
        more_scopes_text=("the requiredScope of the artifact's source",),
        mutation=True,
        needs_lease=True,
        destructive=True,
        open_world=True,
        deadline_s=120.0,
        decision_s=120.0,
        notes=(
            "The decision is bound to the exact target, name, hash and length.",
            "Takes files and APKs of up to 512 MiB; answers a file chooser where `elementRef` is the chooser's id.",
        ),
    ),
)
