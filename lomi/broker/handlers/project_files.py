"""A project's folder as a call may use it: pinned, still the one that was opened, refused in the contract's words."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lomi.contract.codes import ErrorCode
from lomi.core.port import Project
from lomi.core.refusal import Refusal
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.root import PinnedRoot, Protected

_PATH = "/relativePath"
_HIDDEN = frozenset({Reason.RESERVED_NAME, Reason.PROTECTED})


@contextmanager
def opened_project(project: Project, protected: Protected) -> Iterator[PinnedRoot]:
    """The folder of a project; blocking.

    Raises:
        Refusal: REVISION_CONFLICT (`folder_replaced`); what `path_refusal` makes of a refusal of the disk.
    """
    try:
        with PinnedRoot.open(Path(project.path), protected=protected) as root:
            if (root.identity.device, root.identity.inode) != (project.device, project.inode):
                raise Refusal(ErrorCode.REVISION_CONFLICT, "folder_replaced", field="/workspaceId")
            yield root
    except DiskRefusedError as refused:
        raise path_refusal(refused.reason) from refused


def path_refusal(reason: Reason) -> Refusal:
    """TARGET_NOT_FOUND, REVISION_CONFLICT (`already_exists`), or SCOPE_DENIED (`secret_path`, `path_refused`)."""
    if reason is Reason.NOT_FOUND:
        return Refusal(ErrorCode.TARGET_NOT_FOUND, field=_PATH)
    if reason is Reason.EXISTS:
        return Refusal(ErrorCode.REVISION_CONFLICT, "already_exists", field=_PATH)
    return Refusal(ErrorCode.SCOPE_DENIED, "secret_path" if reason in _HIDDEN else "path_refused", field=_PATH)
