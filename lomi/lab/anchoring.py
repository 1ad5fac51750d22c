"""The hash of a report in the broker's ledger: imported as an artifact, so that its receipt holds the hash."""

import asyncio
import hashlib
import secrets
from pathlib import Path

from lomi.client.aio import Lab
from lomi.client.errors import BrokerFaultError, ToolError
from lomi.contract.artifact import ArtifactImported, ArtifactImportInput

MOST_ANCHORED = 4 << 20
"""Bytes of a file that the broker imports."""


async def anchored(lab: Lab, content: bytes) -> str | None:
    """The operation whose receipt holds the SHA-256 of the content; None where the broker refuses.

    Raises:
        OSError: the project's folder can't be written.
    """
    if len(content) > MOST_ANCHORED:
        return None
    session = lab.session  # its acts are to be among the session's receipts
    path = Path(session.workspace.project_path) / f"lomi-lab-{secrets.token_hex(8)}.json"
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        await asyncio.to_thread(path.write_bytes, content)
        act = await session.act(
            "lomi_artifact_import",
            lambda: ArtifactImportInput(
                **session.revised(),
                relative_path=path.name,
                kind="file",
                expected_byte_length=len(content),
                expected_sha256=sha256,
            ),
            ArtifactImported,
        )
    except (ToolError, BrokerFaultError):
        return None
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)
    return act.operation_id
