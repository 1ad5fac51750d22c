"""Git tools: which fields go together, which scopes an operation needs, and the reasons of refusals."""

from typing import TYPE_CHECKING

from lomi.contract.bounds import OutOfBounds
from lomi.contract.codes import ErrorCode, Reason

if TYPE_CHECKING:
    from lomi.contract.git import GitDiffInput, GitHistoryInput, GitMutateInput

_NETWORK = frozenset({"fetch", "push", "pull"})


def _want(field: str, value: object, *, wanted: bool, optional: bool = False) -> None:
    if value is not None and not wanted:
        raise OutOfBounds(field, "variant_unclear")
    if value is None and wanted and not optional:
        raise OutOfBounds(field, "field_needed")


def diff_rule(given: "GitDiffInput") -> None:
    """Hold `commit` to its comparison, and the pages of a patch to one observation.

    Raises:
        OutOfBounds: a field is missing or does not belong.
    """
    _want("/commit", given.commit, wanted=given.comparison == "commit")
    if given.start_utf16 > 0 and given.expected_observation_revision is None:
        raise OutOfBounds("/expectedObservationRevision", "field_needed")


def history_rule(given: "GitHistoryInput") -> None:
    """Hold the pages of a history to one start.

    Raises:
        OutOfBounds: `commit` is missing past the first page.
    """
    if given.skip > 0 and given.commit is None:
        raise OutOfBounds("/commit", "field_needed")


def mutate_rule(given: "GitMutateInput") -> None:
    """Hold the optional fields to their operation.

    Raises:
        OutOfBounds: a field is missing or does not belong.
    """
    operation = given.operation
    network = operation in _NETWORK
    if network and given.paths:
        raise OutOfBounds("/paths", "variant_unclear")
    if not network and not given.paths:
        raise OutOfBounds("/paths", "field_needed")
    _want("/message", given.message, wanted=operation == "commit")
    _want("/remote", given.remote, wanted=network)
    _want("/reference", given.reference, wanted=network)
    _want("/sourceCommit", given.source_commit, wanted=operation in ("push", "pull"))
    _want(
        "/expectedRemoteCommit",
        given.expected_remote_commit,
        wanted=operation in ("push", "pull"),
        optional=operation == "push",
    )
    _want("/pullMode", given.pull_mode, wanted=operation == "pull")


def mutate_scopes(given: "GitMutateInput") -> tuple[str, ...]:
    """The scopes that an operation adds."""
    match given.operation:
        case "fetch":
            return ("git.network",)
        case "push":
            return ("git.network", "git.push")
        case "pull":
            return ("git.network", "git.pull")
        case "discard":
            return ("git.discard",)
        case _:
            return ()


_C = ErrorCode
REASONS = (
    Reason("not_a_repository", _C.TARGET_NOT_FOUND, "Give a directory that holds a real .git directory."),
    Reason("git_busy", _C.TARGET_BUSY, "Another git process works on this repository; try again."),
    Reason("git_complained", _C.UNSUPPORTED_CAPABILITY, "git wrote an error; the repository needs a person."),
    Reason("git_missing", _C.HOST_UNQUALIFIED, "No usable git is installed; ask the owner to run `lomi doctor`."),
    Reason("git_output_over_limit", _C.RESOURCE_EXHAUSTED, "The output is over 2 MiB; ask for one file."),
    Reason(
        "repository_unsupported",
        _C.UNSUPPORTED_CAPABILITY,
        "Worktrees, submodules, shallow and grafted are not offered.",
    ),
    Reason("observation_changed", _C.REVISION_CONFLICT, "The repository changed; observe it again."),
    Reason("no_such_commit", _C.TARGET_NOT_FOUND, "Give a commit of this repository, in full."),
    Reason("no_such_path", _C.TARGET_NOT_FOUND, "That path has no change; see lomi_git_status."),
    Reason("plan_over_limit", _C.RESOURCE_EXHAUSTED, "The change is over its bounds; take fewer or smaller files."),
    Reason("plan_stale", _C.REVISION_CONFLICT, "The repository changed after the decision; send a new request."),
    Reason(
        "not_whole_staged_set", _C.REVISION_CONFLICT, "A commit takes exactly the staged paths; see lomi_git_status."
    ),
    Reason("nothing_to_do", _C.REVISION_CONFLICT, "There is nothing to change."),
    Reason(
        "hook_failed", _C.UNSUPPORTED_CAPABILITY, "A hook of the repository refused; details.exitCode is its answer."
    ),
    Reason("no_such_remote", _C.TARGET_NOT_FOUND, "See lomi_git_remotes."),
    Reason("remote_refused", _C.SCOPE_DENIED, "The server refused the credentials or the update."),
    Reason("remote_changed", _C.REVISION_CONFLICT, "The remote branch moved; fetch, then look again."),
    Reason("remote_unreachable", _C.OUTCOME_UNKNOWN, "The server did not answer; fetch to see what it has."),
    Reason("not_fast_forward", _C.REVISION_CONFLICT, "The branches have parted; pull with rebase."),
    Reason("conflicted", _C.REVISION_CONFLICT, "The pull met a conflict; a person must resolve it."),
    Reason("ignored_in_the_way", _C.TARGET_BUSY, "An ignored file is where the pull would write; move it away."),
)
