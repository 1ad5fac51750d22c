"""Bring an APK to the broker: by its hash, from inside the project."""

import asyncio
import hashlib
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lomi.client.acts import Act
from lomi.client.aio.session import Session
from lomi.contract.artifact import ArtifactImported, ArtifactImportInput
from lomi.contract.model import Result

_IMPORT_S = 200.0


async def imported_apk(session: Session, apk: Path, keep: Callable[[Act[Result]], None]) -> ArtifactImported:
    """The broker's own immutable copy of an APK.

    Raises:
        OSError: it can't be read, or not be copied into the project.
        ToolError: refused.
    """
    async with _inside(Path(session.workspace.project_path), apk) as (folder, path):
        length, sha256 = await asyncio.to_thread(_measured, folder / path)
        act = await session.act(
            "lomi_artifact_import",
            lambda: ArtifactImportInput(
                **session.revised(),
                relative_path=path.as_posix(),
                kind="android_apk",
                expected_byte_length=length,
                expected_sha256=sha256,
            ),
            ArtifactImported,
            timeout_s=_IMPORT_S,
            keep=keep,
        )
    assert act.result is not None
    return act.result


@asynccontextmanager
async def _inside(project: Path, apk: Path) -> AsyncIterator[tuple[Path, Path]]:
    """The project and a path in it that holds the file: its own, or that of a copy that is removed afterwards."""
    folder = await asyncio.to_thread(project.resolve)
    found = await asyncio.to_thread(apk.resolve, strict=True)
    if found.is_relative_to(folder) and found.suffix == ".apk":
        yield folder, found.relative_to(folder)
        return
    copy = folder / f"lomi-import-{secrets.token_hex(8)}.apk"
    try:
        await asyncio.to_thread(shutil.copyfile, found, copy)
        yield folder, copy.relative_to(folder)
    finally:
        await asyncio.to_thread(copy.unlink, missing_ok=True)


def _measured(path: Path) -> tuple[int, str]:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        return content.tell(), digest
