"""File tools: list, read, search, mutate. Positions are UTF-16 units over the original line endings."""

from typing import Annotated, Literal

from lomi.contract.bounds import (
    NO_CONTROL,
    FileName,
    Hex64,
    OutOfBounds,
    RelativeDirectory,
    RelativePath,
    decimal,
    number,
    page_cursor,
    text,
)
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, Model, Result, RevisedInput, WorkspaceInput

EntryKind = Literal["directory", "file"]
Encoding = Literal["utf8", "utf8-bom", "utf16-le", "utf16-be"]
LineEndings = Literal["none", "lf", "cr_lf", "cr", "mixed"]
PageChars = Annotated[int, number(2, 8192)]
FileOffset = Annotated[int, number(0, 4_194_304)]
_Glob = Annotated[str, text(4096, pattern=NO_CONTROL, shown=False)]


class FilesListInput(WorkspaceInput, frozen=True, kw_only=True):
    """A page of one directory; empty is the project's root."""

    relative_directory: RelativeDirectory = ""
    limit: Annotated[int, number(1, 200)] = 100
    cursor: Annotated[str, page_cursor(96)] | None = None


class FileEntry(Model, frozen=True, kw_only=True):
    """One entry. `byteLength` is a decimal, null for a directory."""

    name: str
    relative_path: str
    kind: EntryKind
    byte_length: str | None


class FilesList(Data, frozen=True, kw_only=True, tag_field="kind", tag="files_list"):
    """A page of a directory, directories first; secret names and links are filtered out."""

    workspace_id: str
    relative_directory: str
    directory_revision: str
    entries: tuple[FileEntry, ...]
    next_cursor: str | None
    filtered: Literal[True] = True


class FilesReadInput(WorkspaceInput, frozen=True, kw_only=True):
    """A page of a file's text; past the first page `expectedDiskRevision` is needed."""

    relative_path: RelativePath
    start_utf16: FileOffset = 0
    max_chars: PageChars = 4096
    expected_disk_revision: Hex64 | None = None


class FileText(Data, frozen=True, kw_only=True, tag_field="kind", tag="file_text"):
    """A page of text as it is on disk."""

    workspace_id: str
    relative_path: str
    source: Literal["disk"] = "disk"
    disk_revision: str
    encoding: Encoding
    line_endings: LineEndings
    content: str
    start_utf16: int
    total_utf16: int
    next_utf16: int | None
    truncated: bool


class SearchQuery(Model, frozen=True, kw_only=True):
    """What to find, on one line; `include` and `exclude` are comma separated globs."""

    text: Annotated[str, text(1024, shortest=1, pattern=r"[^\r\n]*")]
    case_sensitive: bool = False
    whole_word: bool = False
    regex: bool = False
    include: _Glob = ""
    exclude: _Glob = ""


class FilesSearchInput(WorkspaceInput, frozen=True, kw_only=True):
    """A page of matches below one directory."""

    relative_directory: RelativeDirectory = ""
    query: SearchQuery
    limit: Annotated[int, number(1, 200)] = 100
    cursor: Annotated[str, page_cursor(80)] | None = None


class SearchMatch(Model, frozen=True, kw_only=True):
    """One match. `column` counts UTF-16 units from 1; `preview` starts at unit `previewStartUtf16` of the line."""

    relative_path: str
    disk_revision: str
    line: int
    column: int
    length: int
    preview: str
    preview_start_utf16: int


class FilesSearch(Data, frozen=True, kw_only=True, tag_field="kind", tag="files_search"):
    """A page of matches; each file was read once, at its own moment.

    `limited` says that a bound cut the search short.
    """

    workspace_id: str
    relative_directory: str
    matches: tuple[SearchMatch, ...]
    next_cursor: str | None
    limited: bool
    skipped: int
    files_scanned: int
    filtered: bool
    consistency: Literal["per_file_snapshot"] = "per_file_snapshot"
    filter_policy: Literal["explicit_patterns_and_secret_paths"] = "explicit_patterns_and_secret_paths"


class CreateEntry(Model, frozen=True, kw_only=True, tag_field="type", tag="create"):
    """A new empty file or directory."""

    relative_path: RelativePath
    kind: EntryKind
    expected_parent_revision: Hex64


class RenameFile(Model, frozen=True, kw_only=True, tag_field="type", tag="rename"):
    """Another name in the same directory."""

    relative_path: RelativePath
    new_name: FileName
    expected_disk_revision: Hex64
    expected_parent_revision: Hex64


class MoveFile(Model, frozen=True, kw_only=True, tag_field="type", tag="move"):
    """Another place in the project."""

    relative_path: RelativePath
    target_relative_path: RelativePath
    expected_disk_revision: Hex64
    expected_parent_revision: Hex64


class RenameDirectory(Model, frozen=True, kw_only=True, tag_field="type", tag="rename_directory"):
    """Another name in the same directory."""

    relative_path: RelativePath
    new_name: FileName
    expected_directory_revision: Hex64
    expected_parent_revision: Hex64


class MoveDirectory(Model, frozen=True, kw_only=True, tag_field="type", tag="move_directory"):
    """Another place in the project."""

    relative_path: RelativePath
    target_relative_path: RelativePath
    expected_directory_revision: Hex64
    expected_parent_revision: Hex64


class TrashEntry(Model, frozen=True, kw_only=True, tag_field="type", tag="trash"):
    """Into the trash, after a recovery copy; `expectedEntryRevision` is the disk or the directory revision."""

    relative_path: RelativePath
    kind: EntryKind
    expected_entry_revision: Hex64
    expected_parent_revision: Hex64


FileOperation = CreateEntry | RenameFile | MoveFile | RenameDirectory | MoveDirectory | TrashEntry


class FilesMutateInput(RevisedInput, frozen=True, kw_only=True):
    """One change of one entry. A malformed `expectedRevision` is a revision conflict here."""

    operation: FileOperation
    expected_revision: Annotated[str, decimal(2**64 - 1, code=ErrorCode.REVISION_CONFLICT)]


class FilesMutated(Result, frozen=True, kw_only=True, tag_field="kind", tag="files_mutated"):
    """Where the entry was and is."""

    workspace_id: str
    old_path: str | None
    new_path: str | None
    entry_kind: EntryKind


def _read_rule(given: FilesReadInput) -> None:
    if given.start_utf16 > 0 and given.expected_disk_revision is None:
        raise OutOfBounds("/expectedDiskRevision", "field_needed")


def _mutate_scopes(given: FilesMutateInput) -> tuple[str, ...]:
    match given.operation:
        case CreateEntry():
            return ("files.create",)
        case TrashEntry():
            return ("files.trash",)
        case _:
            return ("files.rename",)


TOOLS = (
    define(
        name="lomi_files_list",
        family="files",
        purpose="List one project directory; its revision is the precondition of a change.",
        input=FilesListInput,
        results=(FilesList,),
        scopes=("files.read",),
        deadline_s=5.0,
        queue="none",
        notes=("At most 10,000 entries; a directory that changes while paged ends the cursor.",),
    ),
    define(
        name="lomi_files_read",
        family="files",
        purpose="Read a page of a text file on disk, line endings kept.",
        input=FilesReadInput,
        results=(FileText,),
        scopes=("files.read",),
        rule=_read_rule,
        deadline_s=5.0,
        queue="none",
        notes=("At most 4 MiB; unsaved editor text is not seen.",),
    ),
    define(
        name="lomi_files_search",
        family="files",
        purpose="Search project files for a text or regular expression.",
        input=FilesSearchInput,
        results=(FilesSearch,),
        scopes=("files.read",),
        deadline_s=15.0,
        queue="none",
        notes=("At most 32 MiB in all, 256 matches; lines over 32 KiB are skipped.", ".gitignore is not applied."),
    ),
    define(
        name="lomi_files_mutate",
        family="files",
        purpose="Create, rename, move or trash one entry; never overwrites.",
        input=FilesMutateInput,
        results=(FilesMutated,),
        scopes=("files.read", "files.mutate"),
        more_scopes=_mutate_scopes,
        more_scopes_text=("create: files.create", "rename, move: files.rename", "trash: files.trash"),
        mutation=True,
        destructive=True,
        open_world=True,
        deadline_s=120.0,
        decision_s=120.0,
        queue="none",
        notes=(
            "A person decides only where unsaved text would be trashed.",
            "New files are 0600, directories 0700; trashing keeps a recovery copy.",
        ),
    ),
)

_C = ErrorCode
REASONS = (
    Reason("not_text", _C.UNSUPPORTED_CAPABILITY, "The file is binary or its encoding is not one of the four known."),
    Reason("file_over_limit", _C.RESOURCE_EXHAUSTED, "The file is over 4 MiB."),
    Reason("directory_over_limit", _C.RESOURCE_EXHAUSTED, "The directory has more than 10,000 entries."),
    Reason("inside_character", _C.RESOURCE_EXHAUSTED, "Start a page where the last one ended: nextUtf16."),
    Reason("past_the_end", _C.RESOURCE_EXHAUSTED, "The text is shorter than that; see totalUtf16."),
    Reason("bad_regex", _C.RESOURCE_EXHAUSTED, "The regular expression is malformed."),
    Reason("search_too_long", _C.DEADLINE_EXCEEDED, "Search a smaller directory, or use a simpler expression."),
    Reason("file_changed", _C.REVISION_CONFLICT, "The file changed; read it again."),
    Reason("directory_changed", _C.REVISION_CONFLICT, "The directory changed; list it again."),
    Reason("directory_into_itself", _C.SCOPE_DENIED, "A directory can't be moved into itself."),
    Reason("other_volume", _C.UNSUPPORTED_CAPABILITY, "Entries can't be moved or trashed across volumes."),
    Reason("trash_full", _C.RESOURCE_EXHAUSTED, "128 recovery copies are kept; ask the owner to clear some."),
    Reason("readers_busy", _C.RESOURCE_EXHAUSTED, "Two reads run at once; wait for one to end."),
)
