"""The folder that a terminal starts in. It is a starting point, not a wall: a shell goes where its user may."""

import os
from pathlib import Path

from lomi.contract.codes import ErrorCode
from lomi.core.port import Project
from lomi.core.refusal import Refusal
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.root import PinnedRoot


def folder_in_project(project: Project, relative: str) -> Path:
    """The absolute path of a folder of the project; blocking.

    Raises:
        Refusal: TARGET_NOT_FOUND when it does not exist, SCOPE_DENIED when it leads out of the project,
            REVISION_CONFLICT when another folder lies where the project was opened.
    """
    try:
        with PinnedRoot.open(Path(project.path)) as root:
            if (root.identity.device, root.identity.inode) != (project.device, project.inode):
                raise Refusal(ErrorCode.REVISION_CONFLICT, "folder_replaced", field="/workspaceId")
            os.close(root.open_directory(relative))
    except DiskRefusedError as refused:
        if refused.reason in (Reason.NOT_FOUND, Reason.NOT_DIRECTORY):
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/cwdRelative") from refused
        raise Refusal(ErrorCode.SCOPE_DENIED, "path_refused", field="/cwdRelative") from refused
    return Path(project.path) / relative
