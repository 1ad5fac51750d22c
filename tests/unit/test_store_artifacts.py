"""Artifacts: quotas with reservations, producers, pins, expiry, imports, and who may still use one."""

import asyncio
import contextlib
import hashlib
import os
import sqlite3
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from harness.waiting import until
from store_values import NOW_S, StillClock, descriptors, store_at
from test_store_apk import apk

from lomi.contract.artifact import (
    AndroidGeometry,
    AndroidSource,
    Artifact,
    BrowserSource,
    ProjectSource,
)
from lomi.contract.codes import ErrorCode
from lomi.contract.model import Input
from lomi.core.artifact_rules import image_to_hardware
from lomi.core.grant import Grant
from lomi.core.ids import ProjectId, SessionId, WorkspaceId
from lomi.core.port import Artifacts, Call, StoredArtifact, TakenImage, Workspace
from lomi.core.refusal import Refusal
from lomi.store import Store
from lomi.store.artifacts import ArtifactStore
from lomi.store.blobs import Blobs

PHONE = AndroidSource(workspace_id="w1", panel_id="p1", device_id="d1", generation="g1")
PAGE = BrowserSource(
    workspace_id="w1",
    panel_id="p2",
    browser_generation="b1",
    profile_id="f1",
    navigation_id="b1:1",
    origin="https://example.com",
    required_scope="browser.capture_composite",
)
GRANT = Grant(
    scopes=frozenset({"android.capture", "browser.capture_composite", "files.read"}),
    workspaces=frozenset({"w1"}),
    devices=frozenset({"d1"}),
    origins=frozenset({"https://example.com"}),
)
KIB = 1024


def call(session: str = "s1", grant: Grant = GRANT, project: str = "p1") -> Call[Input]:
    """A call of a session."""
    workspace = Workspace(id=WorkspaceId("w1"), project_id=ProjectId(project), name="main")
    return Call(tool="t", input=Input(), session_id=SessionId(session), grant=grant, workspace=workspace)


def png(size: int = 200, width: int = 1, height: int = 1) -> bytes:
    """A PNG of exactly `size` bytes, as far as its header goes."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return start + bytes(size - len(start))


async def put(store: Store, size: int = 200, session: str = "s1", project: str = "p1") -> StoredArtifact:
    """Store a picture of a phone."""
    return await store.artifacts.put_image(call(session, project=project), png(size), PHONE, None)


async def refused(awaited: object) -> Refusal:
    """The refusal that awaiting ends in."""
    with pytest.raises(Refusal) as refusal:
        await awaited  # type: ignore[misc]
    return refusal.value


async def opens(store: Store, artifact_id: str, session: str = "s1", grant: Grant = GRANT) -> str | None:
    """The code with which opening an artifact is refused, None when it opens."""
    try:
        async with store.artifacts.open(call(session, grant), artifact_id):
            return None
    except Refusal as refusal:
        return refusal.code


@contextlib.contextmanager
def opened_file(path: Path, content: bytes) -> Iterator[int]:
    """A file with that content, open for reading."""
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def files(home: Path) -> set[str]:
    """Names in the directory of artifacts."""
    return {path.name for path in (home / "agent-control" / "artifacts").iterdir()}


def as_port(artifacts: ArtifactStore) -> Artifacts:
    """The port that adapters see; a type check."""
    return artifacts


async def test_a_picture_comes_back_with_its_facts(tmp_path: Path) -> None:
    """Hash, length, times, source and geometry are stored; the file is private; it survives a restart."""
    geometry = AndroidGeometry(
        width=360,
        height=640,
        hardware_width=720,
        hardware_height=1280,
        rotation=0,
        image_to_hardware=image_to_hardware(0, (720, 1280), (360, 640)),
    )
    content = png(500, 360, 640)
    async with store_at(tmp_path) as store:
        stored = await as_port(store.artifacts).put_image(call(), content, PHONE, geometry)
    async with (
        store_at(tmp_path, instance="i2") as store,
        store.artifacts.open(call(), stored.id) as found,
    ):
        assert found == stored
        assert found.wire == Artifact(
            id=stored.id,
            media_type="image/png",
            byte_length=500,
            sha256=hashlib.sha256(content).hexdigest(),
            created_at_seconds=NOW_S,
            expires_at_seconds=NOW_S + 86_400,
            source=PHONE,
            image=geometry,
        )
        assert await store.artifacts.content(found) == content
        assert found.path.stat().st_mode & 0o777 == 0o600
        assert files(tmp_path) == {f"{stored.id}.png"}


def stages(home: Path) -> list[tuple[str, int]]:
    """Stage and reserved bytes of every durable row."""
    with contextlib.closing(sqlite3.connect(home / "agent-control" / "control.sqlite3")) as connection:
        return connection.execute("SELECT stage, reserved_bytes FROM artifacts").fetchall()


async def reserved(home: Path) -> None:
    """Wait until a row is reserved."""
    await until(lambda: asyncio.to_thread(stages, home))


async def test_the_row_of_a_picture_is_durable_while_the_picture_is_taken(tmp_path: Path) -> None:
    """Row and name are there before the bytes, and it turns ready with them; a restart finds it as any other."""
    content = png(500)

    async def taking() -> TakenImage:
        await reserved(tmp_path)
        assert await asyncio.to_thread(stages, tmp_path) == [("reserved", 0)]
        assert all(not path.stat().st_size for path in (tmp_path / "agent-control" / "artifacts").iterdir())
        return TakenImage(content, PAGE, None)

    async with store_at(tmp_path) as store:
        stored = await as_port(store.artifacts).put_taken(call(), "w1", taking)
        assert {row.name: row.used for row in store.usage()}["artifact_bytes"] == 500
    async with store_at(tmp_path, instance="i2") as store, store.artifacts.open(call(), stored.id) as found:
        assert found == stored
        assert (found.byte_length, found.wire.created_at_seconds) == (500, NOW_S)
        assert found.wire.expires_at_seconds == NOW_S + 86_400
        assert await store.artifacts.content(found) == content


@pytest.mark.parametrize("early", [True, False], ids=["with a row", "before there is a row"])
async def test_a_picture_that_can_not_be_taken_leaves_nothing(tmp_path: Path, early: bool) -> None:
    """What the taking raises is raised as it is, and neither row, file nor count stays; nor does no PNG leave one."""

    async def failing() -> TakenImage:
        if early:
            await reserved(tmp_path)
        raise KeyError("gone")

    async def wrong() -> TakenImage:
        if early:
            await reserved(tmp_path)
        return TakenImage(b"GIF89a" + bytes(100), PAGE, None)

    async with store_at(tmp_path) as store:
        with pytest.raises(KeyError):
            await store.artifacts.put_taken(call(), "w1", failing)
        assert (await refused(store.artifacts.put_taken(call(), "w1", wrong))).code is ErrorCode.ARTIFACT_INVALID
        assert (store.artifacts.usage()[0].used, files(tmp_path)) == (0, set())
    assert stages(tmp_path) == []


@pytest.mark.parametrize("limits", [{"artifacts": 1}, {"image_bytes": 600}], ids=["count", "bytes"])
async def test_a_picture_that_does_not_fit_once_it_is_taken_is_refused(tmp_path: Path, limits: dict[str, int]) -> None:
    """The bounds are the same as for a picture that was there before; the old one stays, and makes room if it may."""

    async def taking() -> TakenImage:
        await asyncio.sleep(0.02)
        return TakenImage(png(500), PAGE, None)

    async with store_at(tmp_path / "full", **limits) as store:
        old = await put(store)
        refusal = await refused(store.artifacts.put_taken(call(), "w1", taking))
        assert (refusal.code, refusal.reason) == (ErrorCode.RESOURCE_EXHAUSTED, "quota_full")
        assert files(tmp_path / "full") == {f"{old.id}.png"}
        assert store.artifacts.usage()[0].used == 1
    async with store_at(tmp_path / "giving", release_unpinned_images=True, **limits) as store:
        await put(store)
        new = await store.artifacts.put_taken(call(), "w1", taking)
        assert files(tmp_path / "giving") == {f"{new.id}.png"}
        assert store.artifacts.usage()[0].used == 1
    assert [stage for stage, _ in stages(tmp_path / "giving")] == ["ready"]


async def test_an_artifact_belongs_to_its_session(tmp_path: Path) -> None:
    """A foreign session gets the same answer as for an id that never existed."""
    async with store_at(tmp_path) as store:
        stored = await put(store)
        assert await opens(store, stored.id) is None
        assert await opens(store, stored.id, session="s2") == ErrorCode.TARGET_NOT_FOUND
        assert await opens(store, "0" * 32) == ErrorCode.TARGET_NOT_FOUND


async def test_an_artifact_outside_the_grant_is_not_usable_though_owned(tmp_path: Path) -> None:
    """Dropping the scope, workspace, phone or origin that an artifact came from ends its use."""
    without = msgspec.structs.replace
    async with store_at(tmp_path) as store:
        phone = await put(store)
        page = await store.artifacts.put_image(call(), png(), PAGE, None)
        for artifact in (phone, page):
            assert await opens(store, artifact.id) is None
        expected = {
            (phone.id, ErrorCode.SCOPE_DENIED): without(GRANT, scopes=GRANT.scopes - {"android.capture"}),
            (phone.id, ErrorCode.TARGET_NOT_FOUND): without(GRANT, devices=frozenset()),
            (page.id, ErrorCode.SCOPE_DENIED): without(GRANT, scopes=GRANT.scopes - {"browser.capture_composite"}),
            (page.id, ErrorCode.TARGET_NOT_FOUND): without(GRANT, origins=frozenset({"https://example.com:444"})),
        }
        for (artifact_id, code), grant in expected.items():
            assert await opens(store, artifact_id, grant=grant) == code
        assert await opens(store, page.id, grant=without(GRANT, workspaces=frozenset({"w2"}))) is not None


async def test_a_picture_over_its_bound_or_no_picture_is_refused(tmp_path: Path) -> None:
    """Exactly 3 MiB fits, one byte more does not, and bytes that are no PNG are no image."""
    async with store_at(tmp_path) as store:
        await put(store, 3 << 20)
        assert (await refused(put(store, (3 << 20) + 1))).code is ErrorCode.ARTIFACT_TOO_LARGE
        wrong = store.artifacts.put_image(call(), b"GIF89a" + bytes(100), PHONE, None)
        assert (await refused(wrong)).code is ErrorCode.ARTIFACT_INVALID


@pytest.mark.parametrize(
    ("limits", "fits", "over"),
    [
        ({"artifacts": 3}, [(200, "s1", "p1"), (200, "s2", "p2"), (200, "s3", "p3")], (200, "s4", "p4")),
        ({"artifact_bytes": 1000}, [(500, "s1", "p1"), (500, "s2", "p2")], (100, "s3", "p3")),
        ({"artifact_owner_bytes": 600}, [(400, "s1", "p1"), (400, "s2", "p2")], (300, "s1", "p3")),
        ({"artifact_owner_bytes": 600}, [(400, "s1", "p1"), (400, "s2", "p2")], (300, "s3", "p1")),
        ({"image_bytes": 1000}, [(500, "s1", "p1"), (500, "s2", "p2")], (100, "s3", "p3")),
        ({"image_owner_bytes": 600}, [(400, "s1", "p1"), (400, "s2", "p1")], (300, "s1", "p2")),
    ],
    ids=["count", "bytes", "bytes of a session", "bytes of a project", "images", "images of a session"],
)
async def test_each_quota_refuses_what_does_not_fit_and_keeps_what_is_there(
    tmp_path: Path, limits: dict[str, int], fits: list[tuple[int, str, str]], over: tuple[int, str, str]
) -> None:
    """Up to the bound artifacts are stored; past it quota_full, with nothing lost, also after a restart."""
    async with store_at(tmp_path, **limits) as store:
        for size, session, project in fits:
            await put(store, size, session, project)
    async with store_at(tmp_path, instance="i2", **limits) as store:
        refusal = await refused(put(store, *over))
        assert (refusal.code, refusal.reason) == (ErrorCode.RESOURCE_EXHAUSTED, "quota_full")
        assert refusal.details is not None
        assert refusal.details.need is not None
        assert refusal.details.limit is not None
        assert refusal.details.need > refusal.details.limit
        assert len(files(tmp_path)) == len(fits)


async def test_reservations_count_so_that_concurrent_pictures_never_pass_the_quota(tmp_path: Path) -> None:
    """Twenty pictures at once into room for seven: exactly seven are stored."""
    async with store_at(tmp_path, image_owner_bytes=7 * KIB) as store:
        outcomes = await asyncio.gather(*(put(store, KIB) for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(outcome, StoredArtifact) for outcome in outcomes) == 7
        assert sum(isinstance(outcome, Refusal) for outcome in outcomes) == 13
        assert len(files(tmp_path)) == 7


async def test_a_failed_artifact_gives_its_reservation_back(tmp_path: Path) -> None:
    """After a wrong hash, and after a caller that gave up, the whole quota is free again."""
    content = bytes(KIB)
    source = ProjectSource(kind="file", workspace_id="w1", relative_path="f")
    async with store_at(tmp_path / "home", artifacts=1) as store:
        with opened_file(tmp_path / "f", content) as descriptor:
            for _ in range(3):
                imported = store.artifacts.import_file(
                    call(), descriptor, source, expected_length=KIB, expected_sha256="0" * 64
                )
                assert (await refused(imported)).reason == "hash_mismatch"
        for delay in range(6):
            task = asyncio.ensure_future(put(store))
            for _ in range(delay):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert files(tmp_path / "home") == set()
        await put(store)
        assert {row.name: row.used for row in store.usage()}["artifacts"] == 1
    async with store_at(tmp_path / "home", instance="i2") as store:
        assert store.recovered.artifacts_removed == 0
        assert len(files(tmp_path / "home")) == 1


@pytest.mark.parametrize("kind", ["bytes", "stream", "taken"])
@pytest.mark.parametrize("times", [1, 3])
async def test_no_cancellation_leaves_while_a_thread_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, times: int
) -> None:
    """Cancelled, and again while that waits for the disk: no file and no descriptor is left, and nothing is counted."""
    begun, go, begin, name = threading.Event(), threading.Event(), Blobs.begin, Blobs.name

    def slowly(self: Blobs, artifact_id: str) -> int:
        begun.set()
        go.wait(10)
        return begin(self, artifact_id)

    def named_slowly(self: Blobs, artifact_id: str, artifact_class: str) -> int:
        begun.set()
        go.wait(10)
        return name(self, artifact_id, artifact_class)

    monkeypatch.setattr(Blobs, "begin", slowly)
    monkeypatch.setattr(Blobs, "name", named_slowly)

    async def taking() -> TakenImage:
        await asyncio.to_thread(begun.wait, 10)
        return TakenImage(png(), PAGE, None)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * KIB

    async with store_at(tmp_path) as store:
        work = {
            "bytes": lambda: put(store),
            "stream": lambda: store.artifacts.put_stream(call(), pieces(), PAGE, most=KIB),
            "taken": lambda: store.artifacts.put_taken(call(), "w1", taking),
        }[kind]
        held, putting = descriptors(), asyncio.ensure_future(work())
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(times):
            putting.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await putting
        assert (files(tmp_path), descriptors()) == (set(), held)
        assert store.artifacts.usage()[0].used == 0


async def test_a_cancelled_picture_that_does_not_fit_makes_no_other_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while its early row is given up: it ends there, and does not go on to take an older one's room."""
    begun, go, name = threading.Event(), threading.Event(), Blobs.name

    def named_slowly(self: Blobs, artifact_id: str, artifact_class: str) -> int:
        begun.set()
        go.wait(10)
        return name(self, artifact_id, artifact_class)

    monkeypatch.setattr(Blobs, "name", named_slowly)

    async def taking() -> TakenImage:
        await asyncio.to_thread(begun.wait, 10)
        return TakenImage(png(500), PAGE, None)

    async with store_at(tmp_path, image_bytes=600, release_unpinned_images=True) as store:
        old, held = await put(store, 500), descriptors()
        putting = asyncio.ensure_future(store.artifacts.put_taken(call(), "w1", taking))
        await asyncio.to_thread(begun.wait, 10)
        await asyncio.wait({putting}, timeout=0.05)
        putting.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await putting
        assert (files(tmp_path), descriptors()) == ({f"{old.id}.png"}, held)
        assert {row.name: row.used for row in store.usage()}["image_bytes"] == 500


async def test_at_most_two_producers_work_at_once(tmp_path: Path) -> None:
    """Of many concurrent pictures two are being written together, never more."""
    async with store_at(tmp_path) as store:
        most = 0
        write = store.artifacts._blobs.write
        working: list[str] = []
        pair = threading.Barrier(2, timeout=20)

        def watched(artifact_id: str, content: bytes) -> None:
            nonlocal most
            working.append(artifact_id)
            most = max(most, len(working))
            pair.wait()
            write(artifact_id, content)
            working.remove(artifact_id)

        store.artifacts._blobs.write = watched  # type: ignore[method-assign]
        await asyncio.gather(*(put(store, 100 * KIB) for _ in range(12)))
        assert most == 2


async def test_a_pinned_artifact_outlives_its_expiry_and_then_makes_room(tmp_path: Path) -> None:
    """A reader keeps an expired blob; new readers don't get it; when it is let go, a reservation reclaims it."""
    clock = StillClock()
    async with store_at(tmp_path, clock=clock, artifacts=1) as store:
        old = await put(store)
        async with store.artifacts.open(call(), old.id) as pinned:
            clock.now_s += 86_401
            assert await opens(store, old.id) == ErrorCode.TARGET_NOT_FOUND
            assert (await refused(put(store))).reason == "quota_full"
            assert await store.artifacts.content(pinned) == png()
        new = await put(store)
        assert files(tmp_path) == {f"{new.id}.png"}


async def test_an_expired_artifact_is_reclaimed_at_the_next_opening(tmp_path: Path) -> None:
    """After a day the row and the file are gone, and files that belong to nobody too."""
    clock = StillClock()
    async with store_at(tmp_path, clock=clock) as store:
        await put(store)
    (tmp_path / "agent-control" / "artifacts" / "stray.stage").write_bytes(b"x")
    clock.now_s += 86_400
    async with store_at(tmp_path, clock=clock, instance="i2") as store:
        assert (store.recovered.artifacts_expired, store.recovered.files_removed) == (1, 2)
        assert files(tmp_path) == set()


@pytest.mark.parametrize("left", [0, 150])
async def test_a_picture_whose_file_was_cut_is_reclaimed_at_the_next_opening(tmp_path: Path, left: int) -> None:
    """A row that promises more bytes than there are goes with its file, and nothing else does."""
    async with store_at(tmp_path) as store:
        cut, kept = await put(store), await put(store)
    os.truncate(cut.path, left)
    async with store_at(tmp_path, instance="i2") as store:
        assert files(tmp_path) == {kept.path.name}
        assert store.recovered.files_removed == 1
        assert await opens(store, cut.id) == "TARGET_NOT_FOUND"
        assert await opens(store, kept.id) is None
        assert next(usage.used for usage in store.usage() if usage.name == "artifacts") == 1


async def test_the_lab_releases_unpinned_images_oldest_first(tmp_path: Path) -> None:
    """Where the limits say so, a full quota takes the oldest unpinned images instead of refusing; never files."""
    source = ProjectSource(kind="file", workspace_id="w1", relative_path="f")
    async with store_at(tmp_path / "home", artifacts=4, release_unpinned_images=True) as store:
        with opened_file(tmp_path / "f", b"12345") as descriptor:
            file = await store.artifacts.import_file(
                call(), descriptor, source, expected_length=5, expected_sha256=hashlib.sha256(b"12345").hexdigest()
            )
        first, second, third = [await put(store) for _ in range(3)]
        async with store.artifacts.open(call(), first.id):
            fourth = await put(store)
        assert files(tmp_path / "home") == {f"{kept.id}.png" for kept in (first, third, fourth)} | {f"{file.id}.bin"}
        assert await opens(store, second.id) == ErrorCode.TARGET_NOT_FOUND


async def test_a_damaged_or_lost_blob_is_said_to_be_corrupt(tmp_path: Path) -> None:
    """Changed bytes fail by their hash, a changed length or a link at opening; a lost one goes at a restart."""
    async with store_at(tmp_path) as store:
        stored = await put(store)
        with stored.path.open("r+b") as file:
            file.seek(100)
            file.write(b"x")
        async with store.artifacts.open(call(), stored.id) as opened:
            assert (await refused(store.artifacts.content(opened))).reason == "artifact_corrupt"
        os.truncate(stored.path, 10)
        assert await opens(store, stored.id) == ErrorCode.ARTIFACT_INVALID
        stored.path.unlink()
        stored.path.symlink_to("/etc/hostname")
        assert await opens(store, stored.id) == ErrorCode.ARTIFACT_INVALID
        stored.path.unlink()
    async with store_at(tmp_path, instance="i2") as store:
        assert await opens(store, stored.id) == ErrorCode.TARGET_NOT_FOUND
        assert {row.name: row.used for row in store.usage()}["artifacts"] == 0


@contextlib.asynccontextmanager
async def importing(tmp_path: Path, content: bytes) -> AsyncIterator[tuple[Store, int]]:
    """An open store and an opened project file."""
    async with store_at(tmp_path / "home") as store:
        with opened_file(tmp_path / "file", content) as descriptor:
            yield store, descriptor


async def test_an_apk_is_imported_whole_and_checked(tmp_path: Path) -> None:
    """The copy has the expected length and hash, is an .apk, and leaks no descriptor."""
    content = bytes(apk())
    digest = hashlib.sha256(content).hexdigest()
    source = ProjectSource(kind="android_apk", workspace_id="w1", relative_path="app/a.apk")
    async with importing(tmp_path, content) as (store, descriptor):
        before = descriptors()
        stored = await store.artifacts.import_file(
            call(), descriptor, source, expected_length=len(content), expected_sha256=digest
        )
        assert (stored.sha256, stored.byte_length, stored.wire.source) == (digest, len(content), source)
        assert stored.wire.media_type == "application/vnd.android.package-archive"
        assert stored.path.read_bytes() == content
        assert stored.path.suffix == ".apk"
        assert descriptors() == before


@pytest.mark.parametrize(
    ("kind", "content", "length", "sha256", "code", "reason"),
    [
        ("file", b"abc", 4, None, ErrorCode.ARTIFACT_INVALID, "length_mismatch"),
        ("file", b"abc", 3, "0" * 64, ErrorCode.ARTIFACT_INVALID, "hash_mismatch"),
        ("file", b"abc", (4 << 20) + 1, None, ErrorCode.ARTIFACT_TOO_LARGE, "file_too_large"),
        ("android_apk", b"abcd", 4, None, ErrorCode.ARTIFACT_INVALID, "not_an_apk"),
        ("android_apk", b"abcd", (512 << 20) + 1, None, ErrorCode.ARTIFACT_TOO_LARGE, "file_too_large"),
    ],
)
async def test_an_import_that_does_not_match_is_refused_and_leaves_nothing(
    tmp_path: Path, kind: str, content: bytes, length: int, sha256: str | None, code: ErrorCode, reason: str
) -> None:
    """Each way in which a file is not what was announced has its reason, and no file, row or quota remains."""
    source = ProjectSource(kind=kind, workspace_id="w1", relative_path="f.apk")  # type: ignore[arg-type]
    expected = sha256 or hashlib.sha256(content).hexdigest()
    async with importing(tmp_path, content) as (store, descriptor):
        refusal = await refused(
            store.artifacts.import_file(call(), descriptor, source, expected_length=length, expected_sha256=expected)
        )
        assert (refusal.code, refusal.reason) == (code, reason)
        assert files(tmp_path / "home") == set()
        assert {row.name: row.used for row in store.usage()}["artifacts"] == 0


async def chunks(*pieces: bytes, last: BaseException | None = None) -> AsyncIterator[bytes]:
    """Bytes as they come, and how it ends."""
    for piece in pieces:
        yield piece
    if last is not None:
        raise last


async def test_a_stream_is_stored_whole_and_counts_with_its_own_length(tmp_path: Path) -> None:
    """Room for the bound is reserved while it comes; what it did not need is given back."""
    async with store_at(tmp_path / "h", artifact_owner_bytes=8 * KIB) as store:
        source = msgspec.structs.replace(PAGE, required_scope="browser.download")
        kept = await store.artifacts.put_stream(call(), chunks(b"ab", b"", b"cd"), source, most=6 * KIB)
        assert kept.path.read_bytes() == b"abcd"
        assert (kept.byte_length, kept.sha256) == (4, hashlib.sha256(b"abcd").hexdigest())
        used = {row.name: row.used for row in store.artifacts.usage()}
        assert (used["artifacts"], used["artifact_bytes"]) == (1, 4)
        again = await store.artifacts.put_stream(call(), chunks(bytes(6 * KIB)), source, most=6 * KIB)
        assert again.byte_length == 6 * KIB
        full = await refused(store.artifacts.put_stream(call(), chunks(b"x"), source, most=6 * KIB))
        assert (full.code, full.reason) == (ErrorCode.RESOURCE_EXHAUSTED, "quota_full")


async def test_a_stream_that_fails_or_is_too_long_leaves_nothing(tmp_path: Path) -> None:
    """Over its bound, broken off, cancelled: no file, no reservation, and the error is the caller's own."""
    async with store_at(tmp_path / "h") as store:
        long = await refused(store.artifacts.put_stream(call(), chunks(b"12345", b"6"), PAGE, most=5))
        assert (long.code, long.reason) == (ErrorCode.ARTIFACT_TOO_LARGE, "file_too_large")
        with pytest.raises(LookupError):
            await store.artifacts.put_stream(call(), chunks(b"1", last=LookupError()), PAGE, most=5)
        hanging, come = asyncio.Event(), asyncio.Event()

        async def never() -> AsyncIterator[bytes]:
            yield b"1"
            come.set()
            await hanging.wait()

        putting = asyncio.ensure_future(store.artifacts.put_stream(call(), never(), PAGE, most=5))
        await come.wait()
        assert await put(store)  # a slow sender holds no producer's place
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        assert {row.name: row.used for row in store.artifacts.usage()}["artifact_bytes"] == 200
        assert len(files(tmp_path / "h")) == 1
