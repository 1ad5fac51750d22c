"""Git tools: status, diff, history, commit details, remotes, open a view, mutate."""

from typing import Annotated, Literal

from lomi.contract.bounds import (
    NO_NUL,
    CommitHash,
    Hex64,
    RelativeDirectory,
    RelativePath,
    items,
    number,
    page_cursor,
    says,
    text,
)
from lomi.contract.definition import define
from lomi.contract.files import PageChars
from lomi.contract.git_rules import REASONS as _REASONS
from lomi.contract.git_rules import diff_rule, history_rule, mutate_rule, mutate_scopes
from lomi.contract.model import Data, Model, Result, RevisedInput, WorkspaceInput

Comparison = Literal["worktree", "staged", "commit"]
GitOperation = Literal["stage", "unstage", "commit", "fetch", "push", "discard", "pull"]
PullMode = Literal["ff_only", "rebase"]
Remote = Annotated[
    str, text(64, shortest=1, pattern=r"(?!.*\.\.)(?!.*(?:\.|\.lock)$)[A-Za-z0-9][A-Za-z0-9._-]*", shown=False)
]
Branch = Annotated[
    str,
    text(
        1024, pattern=r"(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$))refs/heads/[^\x00-\x20\x7f~^:?*\[\\]+", shown=False
    ),
    says("refs/heads/..."),
]


class RepositoryInput(WorkspaceInput, frozen=True, kw_only=True):
    """Arguments that name a repository by its directory; empty is the project's root."""

    repository_relative: RelativeDirectory = ""


class GitStatusInput(RepositoryInput, frozen=True, kw_only=True):
    """A page of changes."""

    limit: Annotated[int, number(1, 200)] = 100
    cursor: Annotated[str, page_cursor(96)] | None = None


class GitChange(Model, frozen=True, kw_only=True):
    """One changed path; `index` and `worktree` are git's own letters."""

    relative_path: str
    original_path: str | None
    index: str
    worktree: str
    directory: bool


class GitStatus(Data, frozen=True, kw_only=True, tag_field="kind", tag="git_status"):
    """A page of changes; `omittedEntries` counts secret and unsafe paths."""

    workspace_id: str
    repository_relative: str
    source: Literal["git"] = "git"
    consistency: Literal["per_command_snapshot"] = "per_command_snapshot"
    git_version: str
    observation_revision: str
    changes: tuple[GitChange, ...]
    omitted_entries: int
    next_cursor: str | None


class GitDiffInput(RepositoryInput, frozen=True, kw_only=True):
    """A page of one file's patch; `commit` goes with that comparison only."""

    relative_path: RelativePath
    comparison: Comparison
    commit: CommitHash | None = None
    start_utf16: Annotated[int, number(0, 2_097_152)] = 0
    max_chars: PageChars = 4096
    expected_observation_revision: Hex64 | None = None


class GitDiff(Data, frozen=True, kw_only=True, tag_field="kind", tag="git_diff"):
    """A page of a patch; `notice` says why there is none."""

    workspace_id: str
    repository_relative: str
    relative_path: str
    comparison: Comparison
    patch: str
    start_utf16: int
    total_utf16: int
    next_utf16: int | None
    notice: Literal["binary", "untracked"] | None
    observation_revision: str


class GitHistoryInput(RepositoryInput, frozen=True, kw_only=True):
    """A page of history from `commit` or HEAD; past the first page `commit` is needed."""

    commit: CommitHash | None = None
    skip: Annotated[int, number(0, 10_000)] = 0
    limit: Annotated[int, number(1, 100)] = 20


class CommitSummary(Model, frozen=True, kw_only=True):
    """One commit in a list."""

    commit: str
    parents: tuple[str, ...]
    author: str
    authored_at: str
    subject: str


class GitHistory(Data, frozen=True, kw_only=True, tag_field="kind", tag="git_history"):
    """A page of commits."""

    workspace_id: str
    repository_relative: str
    start_commit: str
    commits: tuple[CommitSummary, ...]
    skip: int
    next_skip: int | None


class GitCommitInput(RepositoryInput, frozen=True, kw_only=True):
    """The commit, and a page of its files."""

    commit: CommitHash
    files_skip: Annotated[int, number(0, 4096)] = 0
    files_limit: Annotated[int, number(1, 200)] = 100


class CommitFile(Model, frozen=True, kw_only=True):
    """One file of a commit; modes in octal."""

    relative_path: str
    status: str
    old_mode: str
    new_mode: str


class GitCommit(Data, frozen=True, kw_only=True, tag_field="kind", tag="git_commit"):
    """One commit with a page of its files."""

    commit: str
    parents: tuple[str, ...]
    author: str
    author_email: str
    authored_at: str
    committer: str
    committer_email: str
    committed_at: str
    message: str
    files: tuple[CommitFile, ...]
    files_skip: int
    next_files_skip: int | None
    omitted_entries: int
    source: Literal["git"] = "git"


class GitRemotesInput(RepositoryInput, frozen=True, kw_only=True):
    """The repository."""


class RemoteView(Model, frozen=True, kw_only=True):
    """One remote without credentials and paths."""

    name: str
    role: Literal["fetch", "push"]
    transport: str
    host: str | None
    port: int | None
    location_redacted: str


class GitRemotes(Data, frozen=True, kw_only=True, tag_field="kind", tag="git_remotes"):
    """At most 64 remotes."""

    remotes: tuple[RemoteView, ...]


class DiffView(Model, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    """One file's changes."""

    relative_path: RelativePath
    staged: bool


class CommitView(Model, frozen=True, kw_only=True, tag_field="type", tag="commit"):
    """One commit."""

    commit: CommitHash


GitView = DiffView | CommitView


class GitOpenInput(RevisedInput, frozen=True, kw_only=True):
    """The view to open."""

    repository_relative: RelativeDirectory = ""
    view: GitView


class GitOpened(Result, frozen=True, kw_only=True, tag_field="kind", tag="git_opened"):
    """A panel with a read-only view."""

    workspace_id: str
    panel_id: str
    repository_relative: str
    view: GitView
    observation_revision: str


class GitMutateInput(RevisedInput, frozen=True, kw_only=True):
    """One change. Which of the optional fields it needs depends on `operation`."""

    repository_relative: RelativeDirectory = ""
    operation: GitOperation
    paths: Annotated[tuple[RelativePath, ...], items(64), says("empty for fetch, push, pull")]
    message: Annotated[str, text(most_bytes=16_384, shortest=1, pattern=NO_NUL), says("commit")] | None = None
    remote: Annotated[Remote, says("fetch, push, pull")] | None = None
    reference: Branch | None = None
    source_commit: Annotated[CommitHash, says("push, pull")] | None = None
    expected_remote_commit: Annotated[CommitHash, says("pull; push: null creates the branch")] | None = None
    pull_mode: PullMode | None = None


class ChangedFile(Model, frozen=True, kw_only=True):
    """One file as it was planned; `sha256` is null where it is gone."""

    relative_path: str
    sha256: str | None
    byte_length: int


class Identity(Model, frozen=True, kw_only=True):
    """Who made a commit."""

    name: str
    email: str


class CommitDone(Model, frozen=True, kw_only=True):
    """The commit that was made."""

    message_sha256: str
    author: Identity
    committer: Identity


class FetchDone(Model, frozen=True, kw_only=True):
    """The branch that was fetched to its tracking ref."""

    remote: str
    reference: str
    destination: str
    commit: str


class PushTarget(Model, frozen=True, kw_only=True):
    """What was pushed where; a null `expectedRemoteCommit` created the branch."""

    remote: str
    reference: str
    source_commit: str
    expected_remote_commit: str | None


class PushDone(Model, frozen=True, kw_only=True):
    """What the server acknowledged."""

    target: PushTarget
    changed: bool
    verification: Literal["server_acknowledgement"] = "server_acknowledgement"


class PullTarget(Model, frozen=True, kw_only=True):
    """What was pulled, and how."""

    remote: str
    reference: str
    source_commit: str
    expected_remote_commit: str
    mode: PullMode


class PullDone(Model, frozen=True, kw_only=True):
    """How the pull ended."""

    target: PullTarget
    fetched_commit: str
    outcome: Literal["applied", "remote_changed", "conflicted"]


class GitMutated(Result, frozen=True, kw_only=True, tag_field="kind", tag="git_mutated"):
    """A change that was made, with the revisions before and after."""

    workspace_id: str
    repository_relative: str
    operation: GitOperation
    plan_hash: str
    before_revision: str
    after_revision: str
    head: str | None
    index_revision: str
    files: tuple[ChangedFile, ...]
    selected_files_changed: bool
    commit: CommitDone | None
    fetch: FetchDone | None
    push: PushDone | None
    pull: PullDone | None


_READ_NOTES = ("One git process at a time; no hooks, filters or network; at most 10 s.",)

TOOLS = (
    define(
        name="lomi_git_status",
        family="git",
        purpose="List the changes in a repository's working tree and index.",
        input=GitStatusInput,
        results=(GitStatus,),
        scopes=("files.read", "git.read"),
        deadline_s=10.0,
        queue="none",
        notes=_READ_NOTES,
    ),
    define(
        name="lomi_git_diff",
        family="git",
        purpose="Read the patch of one file in the worktree, the index or a commit.",
        input=GitDiffInput,
        results=(GitDiff,),
        scopes=("files.read", "git.read"),
        rule=diff_rule,
        deadline_s=10.0,
        queue="none",
        notes=_READ_NOTES,
    ),
    define(
        name="lomi_git_history",
        family="git",
        purpose="List commits from HEAD or a commit.",
        input=GitHistoryInput,
        results=(GitHistory,),
        scopes=("files.read", "git.read"),
        rule=history_rule,
        deadline_s=10.0,
        queue="none",
        notes=_READ_NOTES,
    ),
    define(
        name="lomi_git_commit",
        family="git",
        purpose="Read one commit's details and files (makes no commit).",
        input=GitCommitInput,
        results=(GitCommit,),
        scopes=("files.read", "git.read"),
        deadline_s=10.0,
        queue="none",
        notes=_READ_NOTES,
    ),
    define(
        name="lomi_git_remotes",
        family="git",
        purpose="List the remotes, without credentials and paths.",
        input=GitRemotesInput,
        results=(GitRemotes,),
        scopes=("files.read", "git.read"),
        deadline_s=10.0,
        queue="none",
        notes=_READ_NOTES,
    ),
    define(
        name="lomi_git_open",
        family="git",
        purpose="Open a read-only diff or commit panel.",
        input=GitOpenInput,
        results=(GitOpened,),
        scopes=("files.read", "git.read", "panel.create", "panel.focus"),
        mutation=True,
        queue="layout",
        notes=("A view is good for 15 minutes.",),
    ),
    define(
        name="lomi_git_mutate",
        family="git",
        purpose="Stage, unstage, commit, fetch, push, discard or pull, after a decision on the exact plan.",
        input=GitMutateInput,
        results=(GitMutated,),
        scopes=("files.read", "git.read", "git.write", "git.execute"),
        more_scopes=mutate_scopes,
        more_scopes_text=(
            "fetch, push, pull: git.network",
            "push: git.push",
            "pull: git.pull",
            "discard: git.discard",
        ),
        rule=mutate_rule,
        mutation=True,
        destructive=True,
        open_world=True,
        deadline_s=120.0,
        decision_s=120.0,
        queue="none",
        notes=(
            "Commit takes the whole staged set and runs hooks.",
            "Discard and pull need saved editor text in the files that they touch.",
            "A pull that met a changed remote or a conflict is failed/partial.",
        ),
    ),
)
REASONS = _REASONS
