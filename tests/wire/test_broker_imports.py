"""What may not be imported as an artifact: links, hard links, pipes, secrets, the home of the broker."""

import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import ClientEntry, World, agent, opened_world, policy_text

CONTENT = b"content"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker whose client may open further projects."""
    client = ClientEntry(
        label="qa",
        decide=("lomi_project_open",),
        token_sha256=hashlib.sha256(b"qa").hexdigest(),
    )
    with opened_world(policy_text(client)) as made:
        yield made


def link(path: Path) -> None:
    """A symbolic link to a good file."""
    target = path.with_name("target-" + path.name)
    target.write_bytes(CONTENT)
    path.symlink_to(target)


def hard_link(path: Path) -> None:
    """A second name of a good file."""
    target = path.with_name("target-" + path.name)
    target.write_bytes(CONTENT)
    path.hardlink_to(target)


def pipe(path: Path) -> None:
    """A pipe that nobody writes."""
    os.mkfifo(path)


def listening(path: Path) -> None:
    """A socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def plain(path: Path) -> None:
    """A regular file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CONTENT)


def linked_folder(path: Path) -> None:
    """A file behind a linked folder."""
    real = path.parent.with_name("real")
    real.mkdir()
    (real / path.name).write_bytes(CONTENT)
    path.parent.symlink_to(real)


REFUSED: dict[str, tuple[str, Callable[[Path], None] | None]] = {
    "link": ("link.txt", link),
    "hard link": ("hard.txt", hard_link),
    "pipe": ("pipe.txt", pipe),
    "socket": ("socket.txt", listening),
    "folder": ("folder", lambda path: path.mkdir()),
    "environment file": (".env", plain),
    "environment file of a stage": (".env.production", plain),
    "key": ("server.pem", plain),
    "key in capitals": ("SERVER.KEY", plain),
    "ssh folder": (".ssh/known_hosts", plain),
    "git folder": ("sub/.git/config", plain),
    "linked folder": ("linked/file.txt", linked_folder),
    "device": ("null", lambda path: os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))),
    "missing": ("missing.txt", None),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_an_import_source_that_is_refused(world: World, what: str) -> None:
    """The receipt says failed/none and why; nothing hangs and nothing is stored."""
    name, make = REFUSED[what]
    if make is not None:
        make(world.project / name)
    async with agent(world, token="qa") as qa:
        said = await qa.call("lomi_artifact_import", await qa.revised(**source(name), waitMs=15000))
        assert said.code is None, said.raw
        assert said.state == "failed/none", said.raw
        assert said.result["code"] in ("SCOPE_DENIED", "TARGET_NOT_FOUND"), said.raw
        assert str(world.root) not in said.raw.decode()


@pytest.mark.parametrize("name", ["../policy.toml", "/etc/passwd", "a/../../policy.toml", "", ".", "a//b", "a\\b\x00"])
async def test_a_path_that_leaves_the_project_is_refused(world: World, name: str) -> None:
    """Before anything is opened, or by the hardened opener; never read."""
    async with agent(world, token="qa") as qa:
        said = await qa.call("lomi_artifact_import", await qa.revised(**source(name), waitMs=15000))
        refused = said.code or (said.result["code"] if said.state == "failed/none" else None)
        assert refused in ("SCOPE_DENIED", "TARGET_NOT_FOUND", "RESOURCE_EXHAUSTED"), said.raw


async def test_the_home_of_the_broker_is_no_source(world: World) -> None:
    """A project round LOMI_HOME: its database, keys and policy are refused, by any name that leads there."""
    async with agent(world, token="qa") as qa:
        opening = await qa.revised(projectPath=str(world.root), name="around")
        around = (await qa.do("lomi_project_open", opening)).result["workspaceId"]
        await qa.bind(around)
        for name in (
            "h/agent-control/control.sqlite3",
            "h/agent-control/registration-key.pk8",
        ):
            said = await qa.call("lomi_artifact_import", await qa.revised(**source(name), waitMs=15000))
            assert said.state == "failed/none", (name, said.raw)
            assert said.result["code"] == "SCOPE_DENIED", said.raw
        into = await qa.call(
            "lomi_project_open", {**await qa.revised(projectPath=str(world.home), name="home"), "waitMs": 15000}
        )
        assert into.state == "failed/none", into.raw


async def test_wrong_bytes_are_refused_and_right_ones_are_kept(world: World) -> None:
    """Wrong hash and wrong length are ARTIFACT_INVALID without an artifact; the exact bytes come back by id."""
    plain(world.project / "good.txt")
    async with agent(world, token="qa") as qa:
        wrong = {**source("good.txt"), "expectedSha256": "0" * 64}
        said = await qa.call("lomi_artifact_import", await qa.revised(**wrong, waitMs=15000))
        assert (said.state, said.result["code"]) == ("failed/none", "ARTIFACT_INVALID"), said.raw
        said = await qa.call("lomi_artifact_import", await qa.revised(**source("good.txt", 8), waitMs=15000))
        assert (said.state, said.result["code"]) == ("failed/none", "ARTIFACT_INVALID"), said.raw
        done = await qa.do("lomi_artifact_import", await qa.revised(**source("good.txt")))
        found = await qa.ask("lomi_artifact_read", workspaceId=qa.workspace, artifactId=done.result["artifactId"])
        assert found.data["artifact"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def source(name: str, length: int = len(CONTENT)) -> dict[str, object]:
    """Arguments that would import the usual content."""
    return {
        "relativePath": name,
        "kind": "file",
        "expectedByteLength": length,
        "expectedSha256": hashlib.sha256(CONTENT).hexdigest(),
    }
