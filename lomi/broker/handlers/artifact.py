"""Artifacts: import a project file by hash, read what is stored."""

import asyncio
import os
from pathlib import Path

from lomi.broker.handlers.project_files import opened_project
from lomi.contract.artifact import (
    ArtifactFound,
    ArtifactImported,
    ArtifactImportInput,
    ArtifactReadInput,
    ProjectSource,
)
from lomi.core.port import Act, Artifacts, Call, Outcome, Permit, Picture, Project, Read, Reply, StoredArtifact
from lomi.core.refusal import EffectFailed, Refusal
from lomi.disk.root import Protected


def open_in_project(project: Project, relative_path: str, protected: Protected) -> int:
    """Open a project file hardened; blocking. The project's folder must still be the one that was opened.

    Raises:
        Refusal: TARGET_NOT_FOUND, or SCOPE_DENIED (`secret_path`, `path_refused`).
    """
    with opened_project(project, protected) as root:
        return root.open_file(relative_path)


def _piece(path: Path, offset: int, most: int) -> bytes:
    """Bytes of a stored file; none behind its end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, most, offset)
    finally:
        os.close(descriptor)


class ArtifactHandlers:
    """Imports and reads."""

    def __init__(self, artifacts: Artifacts, protected: Protected) -> None:
        self._artifacts = artifacts
        self._protected = protected

    def handlers(self) -> tuple[Read | Act, ...]:
        """The handlers, for the broker's table."""
        return (
            Act(tool="lomi_artifact_import", act=self.import_file),
            Read(tool="lomi_artifact_read", read=self.read),
        )

    async def import_file(self, call: Call[ArtifactImportInput], permit: Permit) -> Outcome:
        """Copy one file of the project, if its bytes are the ones that the caller hashed."""
        given, project = call.input, call.project
        assert project is not None
        source = ProjectSource(kind=given.kind, workspace_id=given.workspace_id, relative_path=given.relative_path)
        descriptor = await asyncio.to_thread(open_in_project, project, given.relative_path, self._protected)
        try:
            async with permit.effect():
                stored = await self._import(call, descriptor, source)
        finally:
            os.close(descriptor)
        return Outcome(
            result=ArtifactImported(
                workspace_id=given.workspace_id,
                artifact_id=stored.id,
                sha256=stored.sha256,
                byte_length=stored.byte_length,
            )
        )

    async def _import(self, call: Call[ArtifactImportInput], descriptor: int, source: ProjectSource) -> StoredArtifact:
        """Copy and check. What the store refuses, it has removed again."""
        given = call.input
        try:
            return await self._artifacts.import_file(
                call,
                descriptor,
                source,
                expected_length=given.expected_byte_length,
                expected_sha256=given.expected_sha256,
                large=given.large,
            )
        except Refusal as refused:
            raise EffectFailed(refused, partial=False) from refused

    async def read(self, call: Call[ArtifactReadInput]) -> Reply:
        """Metadata, and the picture of a capture or the piece of the bytes that was asked for."""
        given = call.input
        async with self._artifacts.open(call, given.artifact_id) as stored:
            wire = stored.wire
            pictures: tuple[Picture, ...] = ()
            if given.offset is not None:
                piece = await asyncio.to_thread(_piece, stored.path, given.offset, given.max_bytes)
                pictures = (Picture("application/octet-stream", piece),)
            elif wire.image is not None:
                content = await asyncio.to_thread(stored.path.read_bytes)
                pictures = (Picture(wire.media_type, content),)
            return Reply(data=ArtifactFound(artifact=wire), pictures=pictures)
