"""Artifacts out into a project: a new file of the same bytes, in a folder that is as the caller last saw it."""

import asyncio
import hashlib
import os
from pathlib import Path

from lomi.broker.handlers.project_files import opened_project, path_refusal
from lomi.contract.artifact import ArtifactExported, ArtifactExportInput
from lomi.contract.codes import Details, ErrorCode
from lomi.core.port import Act, Artifacts, Call, Outcome, Permit, Project, StoredArtifact
from lomi.core.refusal import EffectFailed, Refusal
from lomi.disk.placing import place_new, revision_of
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.root import Protected
from lomi.store.failure import failure_reason

MOST_BYTES = 4 << 20


class ArtifactExports:
    """The handler of the export tool."""

    def __init__(self, artifacts: Artifacts, protected: Protected) -> None:
        self._artifacts = artifacts
        self._protected = protected

    def handlers(self) -> tuple[Act, ...]:
        """The handlers, for the broker's table."""
        return (Act(tool="lomi_artifact_export", act=self.export),)

    async def export(self, call: Call[ArtifactExportInput], permit: Permit) -> Outcome:
        """Write an artifact that this session may use; nothing is ever replaced."""
        given, project = call.input, call.project
        assert project is not None
        async with self._artifacts.open(call, given.artifact_id) as stored:
            content = await asyncio.to_thread(_content, stored, given.expected_sha256)
            directory, name = await asyncio.to_thread(_parent, project, given.relative_path, self._protected)
            try:
                # A folder that has changed is told before anything begins, with what it is now.
                await asyncio.to_thread(_check_revision, directory, given.expected_parent_revision)
                async with permit.effect():
                    await asyncio.to_thread(_placed, directory, name, content, given.expected_parent_revision)
            finally:
                os.close(directory)
        exported = ArtifactExported(
            workspace_id=given.workspace_id, relative_path=given.relative_path, artifact=stored.wire
        )
        return Outcome(result=exported)


def _content(stored: StoredArtifact, expected_sha256: str) -> bytes:
    """The bytes, which are still what was stored and what the caller means."""
    if stored.sha256 != expected_sha256:
        raise Refusal(ErrorCode.REVISION_CONFLICT, "other_bytes", field="/expectedSha256")
    if stored.byte_length > MOST_BYTES:
        details = Details(limit=MOST_BYTES, need=stored.byte_length)
        raise Refusal(ErrorCode.ARTIFACT_TOO_LARGE, "not_exportable", field="/artifactId", details=details)
    content = stored.path.read_bytes()
    if hashlib.sha256(content).hexdigest() != stored.sha256:
        raise Refusal(ErrorCode.ARTIFACT_INVALID, "artifact_corrupt", field="/artifactId")
    return content


def _parent(project: Project, relative_path: str, protected: Protected) -> tuple[int, str]:
    """The open folder of the new file, and the file's name. The project's folder must still be the one of its opening.

    Raises:
        Refusal: TARGET_NOT_FOUND, SCOPE_DENIED (`secret_path`, `path_refused`), REVISION_CONFLICT (`folder_replaced`).
    """
    with opened_project(project, protected) as root:
        return root.open_parent(relative_path)


def _check_revision(directory: int, expected: str) -> None:
    if (now := revision_of(directory)) != expected:
        raise _changed(now)


def _placed(directory: int, name: str, content: bytes, expected_revision: str) -> None:
    try:
        place_new(directory, name, content, expected_revision=expected_revision)
    except DiskRefusedError as refused:
        refusal = _changed(revision_of(directory)) if refused.reason is Reason.CHANGED else path_refusal(refused.reason)
        raise EffectFailed(refusal, partial=False) from refused
    except OSError as error:
        reason = failure_reason(error, Path(f"/proc/self/fd/{directory}"))
        raise EffectFailed(Refusal(ErrorCode.STORAGE_UNAVAILABLE, reason), partial=_there(directory, name)) from error


def _there(directory: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _changed(now: str) -> Refusal:
    details = Details(current=now)
    return Refusal(ErrorCode.REVISION_CONFLICT, "parent_changed", field="/expectedParentRevision", details=details)
