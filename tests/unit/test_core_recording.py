"""A recording's own bounds: its duration, pictures that never come or can't be read, and the end of the broker."""

import asyncio
import io
import struct
import zlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from broker_room import Room, open_room
from PIL import Image

from lomi.contract.artifact import BrowserSource
from lomi.contract.codes import ErrorCode
from lomi.core import recording
from lomi.core.port import Call, ResourceKey
from lomi.core.recording import Recordings
from lomi.core.refusal import Refusal

SOURCE = BrowserSource(
    workspace_id="w",
    panel_id="p",
    browser_generation="b",
    profile_id="c",
    navigation_id="n",
    origin="http://127.0.0.1:9",
    required_scope="browser.capture_composite",
)


async def call_of(room: Room, name: str = "p900") -> Call[Any]:
    """A call of the room's session, which holds the lease of a target."""
    ledger = room.broker.ledger
    generation = await ledger.begin_generation(ResourceKey("browser", name))
    ledger.grant_lease(generation, room.session.id)
    return Call(
        tool="lomi_browser_screenshot",
        input=cast("Any", None),
        session_id=room.session.id,
        grant=room.session.grant,
        generation=generation,
    )


def png(number: int) -> bytes:
    """A picture unlike the one before."""
    kept = io.BytesIO()
    Image.new("RGB", (8, 8), (number * 16 % 256, 255 - number * 16 % 256, 0)).save(kept, "PNG")
    return kept.getvalue()


class Pictures:
    """Pictures that go on for ever; `asked` counts them."""

    def __init__(self, *broken: bytes) -> None:
        self.broken = list(broken)
        self.asked = 0
        self.over = asyncio.Event()

    async def come(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                self.asked += 1
                yield self.broken.pop(0) if self.broken else png(self.asked)
        finally:
            self.over.set()


class Reluctant:
    """A source that takes its time to end once it is told to."""

    def __init__(self) -> None:
        self.asked, self.leaving, self.leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.left = False

    async def come(self) -> AsyncGenerator[bytes, None]:
        try:
            self.asked.set()
            await asyncio.Event().wait()
            yield b""
        finally:
            self.leaving.set()
            await self.leave.wait()
            self.left = True


def sized(width: int, height: int) -> bytes:
    """A PNG whose header says this size."""
    whole = bytearray(png(0))
    whole[16:24] = struct.pack(">2I", width, height)
    whole[29:33] = struct.pack(">I", zlib.crc32(whole[12:29]))
    return bytes(whole)


async def failing() -> AsyncGenerator[bytes, None]:
    """One picture, then an error that nobody documents."""
    yield png(1)
    await asyncio.sleep(0)
    raise RuntimeError("surprise")


async def nothing() -> AsyncGenerator[bytes, None]:
    """No picture, and no end."""
    await asyncio.Event().wait()
    yield b""


async def test_it_records_no_longer_than_its_bound_and_is_still_had_afterwards(tmp_path: Path) -> None:
    """When its time is over no picture is asked for any more; whoever began it has what there was, later."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        recordings, pictures, call = (
            Recordings(room.broker.ledger, tasks, seconds=3.0),
            Pictures(),
            await call_of(room),
        )
        begun = await recordings.start(call, lambda: SOURCE, pictures.come)
        await asyncio.wait_for(pictures.over.wait(), 20)
        assert 2 <= pictures.asked <= 31
        stored = await recordings.stop(call, None)
        assert (stored.id, stored.byte_length > 0) == (begun.id, True)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that waits for the first picture that can be read as long as it takes."""
    monkeypatch.setattr(recording, "_FIRST_S", 40.0)


@pytest.mark.usefixtures("patient")
async def test_broken_pictures_are_passed_over(tmp_path: Path) -> None:
    """Bytes that are no picture, and a picture cut off in the middle, cost nothing but themselves."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        recordings, call = Recordings(room.broker.ledger, tasks), await call_of(room)
        pictures = Pictures(b"no picture", png(1)[:40], b"")
        await recordings.start(call, lambda: SOURCE, pictures.come)
        assert (await recordings.stop(call, None)).byte_length > 0


@pytest.mark.usefixtures("patient")
async def test_a_picture_of_too_many_pixels_is_passed_over(tmp_path: Path) -> None:
    """A few bytes that claim 400 million pixels, and 49 million that are within Pillow's own bound."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        recordings, call = Recordings(room.broker.ledger, tasks), await call_of(room)
        pictures = Pictures(sized(20_000, 20_000), sized(7_000, 7_000))
        await recordings.start(call, lambda: SOURCE, pictures.come)
        assert (await recordings.stop(call, None)).byte_length > 0
        assert pictures.broken == []


async def test_a_source_that_fails_costs_the_rest_of_its_video(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By an error that it does not document: what came before is kept, the failure is logged, all else goes on."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        recordings, call = Recordings(room.broker.ledger, tasks), await call_of(room)
        begun = await recordings.start(call, lambda: SOURCE, failing)
        await asyncio.wait({one for one in asyncio.all_tasks() if one.get_name() == f"video {call.generation}"})
        assert list(tmp_path.rglob(f"{begun.id}*"))
    assert "a video ended early" in caplog.text


async def test_what_ends_a_recordings_owner_ends_all_that_it_began(tmp_path: Path) -> None:
    """Cancelled twice while its source is slow to let go: nothing of it outlives the recording."""
    source = Reluctant()
    async with open_room(tmp_path / "h") as room:
        before = asyncio.all_tasks()
        async with asyncio.TaskGroup() as tasks:
            known = asyncio.all_tasks()
            recordings = Recordings(room.broker.ledger, tasks)
            starting = tasks.create_task(recordings.start(await call_of(room), lambda: SOURCE, source.come))
            await source.asked.wait()
            (recorder,) = [one for one in asyncio.all_tasks() - known if one.get_name().startswith("video")]
            recorder.cancel()
            await source.leaving.wait()
            recorder.cancel()
            starting.cancel()
            source.leave.set()
            await asyncio.wait({recorder})
            assert source.left
            assert asyncio.all_tasks() <= known
        assert asyncio.all_tasks() <= before


async def test_a_target_that_shows_nothing_has_no_video(tmp_path: Path) -> None:
    """Its stop says so, and leaves neither an artifact nor a recording."""
    async with open_room(tmp_path / "h") as room, asyncio.TaskGroup() as tasks:
        recordings, call = Recordings(room.broker.ledger, tasks), await call_of(room)
        await recordings.start(call, lambda: SOURCE, nothing)
        for code, reason in (
            (ErrorCode.DEADLINE_EXCEEDED, "video_empty"),
            (ErrorCode.TARGET_NOT_FOUND, "no_such_video"),
        ):
            with pytest.raises(Refusal) as said:
                await recordings.stop(call, None)
            assert (said.value.code, said.value.reason) == (code, reason)


async def test_a_closing_broker_waits_for_none(tmp_path: Path) -> None:
    """Recordings of targets that never end are over at once, and nothing of them is stored."""
    async with open_room(tmp_path / "h") as room:
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            recordings = Recordings(room.broker.ledger, tasks)
            begun = await recordings.start(await call_of(room), lambda: SOURCE, Pictures().come)
            recordings.close()
        assert list(tmp_path.rglob(f"{begun.id}*")) == []
