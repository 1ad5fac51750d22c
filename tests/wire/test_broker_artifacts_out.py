"""An artifact's bytes out of the broker, over the wire: in pieces to its client, and as a new file of a project."""

import base64
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, opened_world, policy_text

from lomi.core.backend import ToolReply
from lomi.core.port import Picture
from lomi.disk.placing import revision_of
from lomi.mcp.rendering import call_parts

CONTENT = bytes(range(256)) * 5_000
ZEROS = "0" * 64


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker with two clients that may do everything, and one that may not export."""
    fewer = tuple(scope for scope in ALL_SCOPES if scope != "artifact.export")
    clients = (("qa", ALL_SCOPES), ("other", ALL_SCOPES), ("reader", fewer))
    entries = [ClientEntry(label=label, scopes=scopes) for label, scopes in clients]
    with opened_world(policy_text(*entries)) as made:
        yield made


@pytest_asyncio.fixture
async def qa(world: World) -> AsyncIterator[Agent]:
    """A client."""
    async with agent(world) as made:
        yield made


async def project_of(qa: Agent) -> Path:
    """The folder of the client's project."""
    (listed, *_) = (await qa.ask("lomi_workspace_list")).data["items"]
    return Path(listed["projectPath"])


async def imported(qa: Agent, content: bytes, name: str) -> dict[str, Any]:
    """An artifact of these bytes."""
    (await project_of(qa) / name).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    given = {"relativePath": name, "kind": "file", "expectedByteLength": len(content), "expectedSha256": sha256}
    return (await qa.do("lomi_artifact_import", await qa.revised(**given, large=True))).result


def now(folder: Path) -> str:
    """The folder's revision, as whoever may read it can work it out."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return revision_of(descriptor)
    finally:
        os.close(descriptor)


async def piece(qa: Agent, artifact_id: str, **more: int) -> bytes:
    """A piece of an artifact's bytes."""
    given = msgspec.json.encode({"workspaceId": qa.workspace, "artifactId": artifact_id, **more})
    (found,) = (await qa.client.call_raw("lomi_artifact_read", given)).pictures
    assert found.media_type == "application/octet-stream"
    return found.content


async def export(qa: Agent, made: dict[str, Any], path: str, revision: str, **more: Any) -> Any:
    """Export an artifact and wait for the receipt."""
    named = {"artifactId": made["artifactId"], "expectedSha256": made["sha256"], "waitMs": 15000}
    given = await qa.revised(**named, relativePath=path, expectedParentRevision=revision)
    return await qa.call("lomi_artifact_export", {**given, **more})


async def test_bytes_come_in_pieces_of_the_size_that_was_asked_for(qa: Agent, world: World) -> None:
    """Together they are the artifact; behind its end there are none, and another session sees none of it."""
    made = await imported(qa, CONTENT, "pieces.bin")
    pieces, offset = [], 0
    while found := await piece(qa, made["artifactId"], offset=offset, maxBytes=300_000):
        pieces.append(found)
        offset += len(found)
    assert [len(one) for one in pieces] == [300_000] * 4 + [80_000]
    assert b"".join(pieces) == CONTENT
    plain = {"workspaceId": qa.workspace, "artifactId": made["artifactId"]}
    assert (await qa.client.call_raw("lomi_artifact_read", msgspec.json.encode(plain))).pictures == ()
    async with agent(world, "other") as other:
        said = await other.call("lomi_artifact_read", {**plain, "workspaceId": other.workspace, "offset": 0})
        assert said.short == "TARGET_NOT_FOUND"


def test_a_model_gets_a_piece_as_a_resource_of_its_hash() -> None:
    """Over MCP bytes of no picture are an embedded resource, named by what they are."""
    reply = ToolReply(
        structured=b"{}", text="", pictures=(Picture("application/octet-stream", b"bytes"),), is_error=False
    )
    _, block = msgspec.json.decode(call_parts(reply)["content"])
    assert (block["type"], base64.b64decode(block["resource"]["blob"])) == ("resource", b"bytes")
    assert block["resource"]["uri"] == f"urn:sha256:{hashlib.sha256(b'bytes').hexdigest()}"


async def test_an_export_is_a_new_file_of_the_same_bytes(qa: Agent) -> None:
    """A folder whose state is not the one meant is told with its present one; the file is whole, and never replaced."""
    made = await imported(qa, CONTENT, "out.bin")
    folder = await project_of(qa) / "out"
    folder.mkdir()
    blind = await export(qa, made, "out/copy.bin", ZEROS)
    assert blind.short == "receipt failed/none REVISION_CONFLICT (parent_changed)"
    assert list(folder.iterdir()) == []
    current = blind.result["details"]["current"]
    assert current == now(folder)
    done = await export(qa, made, "out/copy.bin", current)
    assert done.short == "receipt succeeded/complete"
    assert (done.result["kind"], done.result["relativePath"]) == ("artifact_exported", "out/copy.bin")
    assert (folder / "copy.bin").read_bytes() == CONTENT
    assert [one.name for one in folder.iterdir()] == ["copy.bin"]
    (folder / "copy.bin").write_bytes(b"of a person")
    again = await export(qa, made, "out/copy.bin", now(folder))
    assert again.short == "receipt failed/none REVISION_CONFLICT (already_exists)"
    assert (folder / "copy.bin").read_bytes() == b"of a person"


@pytest.mark.parametrize(
    ("path", "more", "said"),
    [
        (".env", {}, "SCOPE_DENIED (secret_path)"),
        ("link/copy.bin", {}, "SCOPE_DENIED (path_refused)"),
        ("nowhere/copy.bin", {}, "TARGET_NOT_FOUND"),
        ("copy.bin", {"expectedSha256": "1" * 64}, "REVISION_CONFLICT (other_bytes)"),
        ("copy.bin", {"artifactId": "1" * 32}, "TARGET_NOT_FOUND"),
    ],
)
async def test_what_is_not_offered_is_not_written(
    qa: Agent, tmp_path: Path, path: str, more: dict[str, Any], said: str
) -> None:
    """Secrets, links, folders that are not there, other bytes: refused with proof that nothing was done."""
    made = await imported(qa, b"small", "small.bin")
    folder = await project_of(qa)
    link = folder / "link"
    if not link.is_symlink():
        link.symlink_to(tmp_path)
    refused = await export(qa, made, path, now(folder), **more)
    assert refused.short in (f"receipt failed/none {said}", said)
    assert list(tmp_path.iterdir()) == []
    assert not (folder / path).exists()


async def test_more_than_four_mebibytes_are_read_and_not_exported(qa: Agent) -> None:
    """The bound of the contract: the large one is told by its size, and nothing is written."""
    made = await imported(qa, b"\0" * ((4 << 20) + 1), "large.bin")
    folder = await project_of(qa)
    refused = await export(qa, made, "large-copy.bin", now(folder))
    assert refused.short == "receipt failed/none ARTIFACT_TOO_LARGE (not_exportable)"
    assert not (folder / "large-copy.bin").exists()
    assert len(await piece(qa, made["artifactId"], offset=4 << 20)) == 1


async def test_an_export_needs_its_scope(world: World) -> None:
    """Who may import and read may not export."""
    async with agent(world, "reader") as reader:
        made = await imported(reader, b"read me", "read.bin")
        folder = await project_of(reader)
        assert (await export(reader, made, "exported.bin", now(folder))).short == "SCOPE_DENIED (scope_missing)"
        assert not (folder / "exported.bin").exists()
