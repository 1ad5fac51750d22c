"""Editor tools: open, read, apply edits, save. Positions are UTF-16 units of text with LF line ends."""

from typing import Annotated, Literal

from lomi.contract.bounds import Hex64, Id, OutOfBounds, RelativePath, items, number, text
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.files import Encoding, LineEndings, PageChars
from lomi.contract.model import Data, Model, PanelInput, PanelRevised, Result, RevisedInput

Presentation = Literal["editor", "preview", "split"]
BufferOffset = Annotated[int, number(0, 16_777_216)]
INSERT_BYTES = 64 * 1024
Insert = Annotated[str, text(most_bytes=INSERT_BYTES, pattern=r"[^\r\x00]*")]


class EditorOpenInput(RevisedInput, frozen=True, kw_only=True):
    """The file to open, and how."""

    relative_path: RelativePath
    presentation: Presentation = "editor"


class EditorOpened(Result, frozen=True, kw_only=True, tag_field="kind", tag="editor_opened"):
    """A panel with a live document; `bufferRevision` is `<documentId>:<n>`."""

    workspace_id: str
    panel_id: str
    relative_path: str
    document_id: str
    buffer_revision: str
    disk_revision: str
    dirty: bool
    presentation: Presentation


class EditorPreviewed(Result, frozen=True, kw_only=True, tag_field="kind", tag="editor_previewed"):
    """A panel that shows a picture; sizes in pixels."""

    workspace_id: str
    panel_id: str
    relative_path: str
    disk_revision: str
    width: int
    height: int
    original_width: int
    original_height: int


class EditorReadInput(PanelInput, frozen=True, kw_only=True):
    """A page of the buffer; past the first page `documentId` and `expectedBufferRevision` are needed."""

    relative_path: RelativePath
    document_id: Id | None = None
    expected_buffer_revision: Id | None = None
    start_utf16: BufferOffset = 0
    max_chars: PageChars = 4096


class EditorText(Data, frozen=True, kw_only=True, tag_field="kind", tag="editor_text"):
    """A page of the live, perhaps unsaved text; `conflict` says that the file on disk has changed under it."""

    workspace_id: str
    panel_id: str
    relative_path: str
    document_id: str
    buffer_revision: str
    disk_revision: str
    source: Literal["buffer"] = "buffer"
    dirty: bool
    conflict: bool
    encoding: Encoding
    line_endings: LineEndings
    content: str
    start_utf16: int
    total_utf16: int
    next_utf16: int | None
    truncated: bool


class DocumentRevised(PanelRevised, frozen=True, kw_only=True):
    """A change of one document at one buffer revision."""

    relative_path: RelativePath
    document_id: Id
    expected_buffer_revision: Id
    expected_disk_revision: Hex64


class TextEdit(Model, frozen=True, kw_only=True):
    """Replace `fromUtf16` up to `toUtf16` by `insert`."""

    from_utf16: BufferOffset
    to_utf16: BufferOffset
    insert: Insert


class EditorApplyInput(DocumentRevised, frozen=True, kw_only=True):
    """Edits in growing order; all positions are those before the call."""

    edits: Annotated[tuple[TextEdit, ...], items(64, least=1)]


class EditorEdited(Result, frozen=True, kw_only=True, tag_field="kind", tag="editor_edited"):
    """One undoable change, not yet saved."""

    workspace_id: str
    panel_id: str
    relative_path: str
    document_id: str
    previous_buffer_revision: str
    buffer_revision: str
    disk_revision: str
    dirty: bool
    edit_count: int


class EditorSaveInput(DocumentRevised, frozen=True, kw_only=True):
    """The document to save."""


class EditorSaved(Result, frozen=True, kw_only=True, tag_field="kind", tag="editor_saved"):
    """The file as it is on disk now."""

    workspace_id: str
    panel_id: str
    relative_path: str
    document_id: str
    saved_buffer_revision: str
    previous_disk_revision: str
    disk_revision: str
    byte_length: int


def _read_rule(given: EditorReadInput) -> None:
    if given.start_utf16 > 0:
        if given.document_id is None:
            raise OutOfBounds("/documentId", "field_needed")
        if given.expected_buffer_revision is None:
            raise OutOfBounds("/expectedBufferRevision", "field_needed")


def _edits_rule(given: EditorApplyInput) -> None:
    end, start, inserted = 0, -1, 0
    for index, edit in enumerate(given.edits):
        field = f"/edits/{index}"
        if edit.from_utf16 > edit.to_utf16 or edit.from_utf16 <= start or edit.from_utf16 < end:
            raise OutOfBounds(field, "edits_unordered")
        if edit.from_utf16 == edit.to_utf16 and not edit.insert:
            raise OutOfBounds(field, "edit_empty")
        start, end = edit.from_utf16, edit.to_utf16
        inserted += len(edit.insert.encode())
    if inserted > INSERT_BYTES:
        raise OutOfBounds("/edits", "too_long", limit=INSERT_BYTES)


TOOLS = (
    define(
        name="lomi_editor_open",
        family="editor",
        purpose="Open a project file in an editor, preview or split panel.",
        input=EditorOpenInput,
        results=(EditorOpened, EditorPreviewed),
        scopes=("files.read", "editor.read", "panel.create", "panel.focus"),
        mutation=True,
        queue="layout",
        notes=(
            "Markdown and SVG: all three; pictures: preview; other text: editor.",
            "Uses a panel that is open already.",
        ),
    ),
    define(
        name="lomi_editor_read",
        family="editor",
        purpose="Read a page of an open editor's live, perhaps unsaved text.",
        input=EditorReadInput,
        results=(EditorText,),
        scopes=("editor.read", "files.read"),
        rule=_read_rule,
        deadline_s=2.0,
        queue="none",
        notes=("Another document is STALE_GENERATION, another revision REVISION_CONFLICT.",),
    ),
    define(
        name="lomi_editor_apply_edits",
        family="editor",
        purpose="Apply ordered edits to the buffer as one undoable change; does not save.",
        input=EditorApplyInput,
        results=(EditorEdited,),
        scopes=("files.read", "editor.read", "editor.write"),
        rule=_edits_rule,
        mutation=True,
        destructive=True,
        open_world=True,
        notes=("All or nothing.", "At most 64 edits and 64 KiB of inserted text, LF line ends."),
    ),
    define(
        name="lomi_editor_save",
        family="editor",
        purpose="Save the buffer atomically, keeping encoding and line endings.",
        input=EditorSaveInput,
        results=(EditorSaved,),
        scopes=("files.read", "files.mutate", "editor.read", "editor.write"),
        mutation=True,
        destructive=True,
        open_world=True,
        notes=("Bytes that changed on disk are a revision conflict.",),
    ),
)

_C = ErrorCode
REASONS = (
    Reason("presentation_unsupported", _C.UNSUPPORTED_CAPABILITY, "That kind of file has no such presentation."),
    Reason("picture_over_limit", _C.ARTIFACT_TOO_LARGE, "The picture is over 4 MiB or 16 megapixels."),
    Reason("other_document", _C.STALE_GENERATION, "The panel shows another document now; read it again."),
    Reason("buffer_changed", _C.REVISION_CONFLICT, "The text changed, perhaps by a person; read it again."),
    Reason("disk_changed", _C.REVISION_CONFLICT, "The file on disk changed under the buffer; read both, then decide."),
    Reason("not_loaded", _C.UI_NOT_READY, "The document is not loaded yet; open it with lomi_editor_open."),
    Reason("edits_unordered", _C.RESOURCE_EXHAUSTED, "Sort the edits by start; they must not overlap."),
    Reason("edit_empty", _C.RESOURCE_EXHAUSTED, "Leave out edits that change nothing."),
    Reason("edit_inside_character", _C.RESOURCE_EXHAUSTED, "A position is in the middle of a surrogate pair."),
    Reason("edit_past_end", _C.RESOURCE_EXHAUSTED, "A position is past the end of the text; see totalUtf16."),
)
