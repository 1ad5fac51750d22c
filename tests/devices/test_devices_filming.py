"""Pictures over one kept stream: what opens it, what drops it, and that no picture gets another one's bytes."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from device_rig import a_fleet, a_phone, journal, on_device, spec_for, until

from devices.adb.wire import AdbClient, AdbStream
from devices.faults import ChannelLost, DeviceFault

FORM = "lomi.paper.form"


class Opened(list[str]):
    """The services that were opened on devices, in order; `living` counts those that are open now."""

    living = 0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Every service that our client opens is noted on its way through."""
    services, real = Opened(), AdbClient.open

    @asynccontextmanager
    async def noting(self: AdbClient, serial: str, service: str) -> AsyncIterator[AdbStream]:
        services.append(service)
        async with real(self, serial, service) as stream:
            services.living += 1
            try:
                yield stream
            finally:
                services.living -= 1

    monkeypatch.setattr(AdbClient, "open", noting)
    return services


OLD_ADB = Path(os.environ.get("LOMI_TEST_OLD_ADB") or "/usr/lib/android-sdk/platform-tools/adb")
no_old_adb = pytest.mark.skipif(
    not OLD_ADB.is_file(), reason=f"no older adb at {OLD_ADB} (LOMI_TEST_OLD_ADB names one)"
)


@pytest.mark.parametrize("binary", [None, pytest.param(OLD_ADB, marks=no_old_adb)], ids=["wheel", "older"])
async def test_fifty_pictures_open_one_stream(tmp_path: Path, opened: Opened, binary: Path | None) -> None:
    """The first picture opens the stream, the next ones use it, and each is whole and the present screen."""
    async with a_fleet(tmp_path, adb=binary) as fleet:
        phone = fleet.phone(spec_for(tmp_path))
        await phone.start()
        before = len(opened)
        for number in range(50):
            await on_device(phone, f"input tap {10 + number} 20")
            capture = await phone.eyes.capture()
            assert (capture.full.width, capture.full.height) == (720, 1280)
        streams = [service for service in opened[before:] if not service.endswith(" 20")]
        assert streams == ["shell,v2,raw:"]


async def test_a_cancelled_picture_leaves_nothing_to_the_next(tmp_path: Path, opened: Opened) -> None:
    """Its stream is closed with it: the next picture shows what is on the screen then, over a stream of its own."""
    async with a_phone(tmp_path) as phone:
        await phone.hands.navigate("home")
        home = (await phone.eyes.capture()).full.png
        await on_device(phone, "cmd lomi_agent fault add slow_picture seconds=20 times=1")
        living, before = opened.living, len(opened)
        late = asyncio.ensure_future(phone.eyes.capture(within=30))
        await until(lambda: len(journal(phone, "half_picture")) == 1)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert opened.living < living
        await phone.packages.launch(FORM)
        form = (await phone.eyes.capture()).full.png
        assert form != home
        fresh = len(opened)
        assert fresh > before
        await phone.hands.navigate("home")
        assert (await phone.eyes.capture()).full.png != form
        assert len(opened) == fresh


async def test_a_silent_picture_meets_its_deadline(tmp_path: Path, opened: Opened) -> None:
    """A phone that says nothing costs the time that was given; the next picture comes over a fresh stream."""
    async with a_phone(tmp_path) as phone:
        await phone.eyes.capture()
        await on_device(phone, "cmd lomi_agent fault add slow_picture seconds=60")
        with pytest.raises(ChannelLost) as told:
            await phone.eyes.capture(within=1.0)
        assert told.value.reason == "adb_timeout"
        await on_device(phone, "cmd lomi_agent fault clear slow_picture")
        before = len(opened)
        assert (await phone.eyes.capture()).full.width == 720
        assert set(opened[before:]) == {"shell,v2,raw:"}


async def test_a_stream_that_the_phone_closes_is_told_and_replaced(tmp_path: Path, opened: Opened) -> None:
    """The phone's shell ends under a picture: that one fails by name, the next has a stream of its own."""
    async with a_phone(tmp_path) as phone:
        await phone.eyes.capture()
        await on_device(phone, "cmd lomi_agent fault add cut_picture times=1")
        before = len(opened)
        with pytest.raises(ChannelLost) as told:
            await phone.eyes.capture()
        assert told.value.reason == "channel_lost"
        assert (await phone.eyes.capture()).full.width == 720
        assert opened[before:] == ["shell,v2,raw:"]


async def test_no_frame_of_an_earlier_life_is_shown_in_the_next(tmp_path: Path) -> None:
    """The phone reboots while someone lingers over a frame: whoever watches next sees the new life from the first."""
    async with a_phone(tmp_path) as phone:
        assert phone.running is not None
        life = phone.running.identity.generation
        await phone.packages.launch(FORM)
        async with phone.frames.watch() as lingering:
            old = await anext(lingering)
            with suppress(DeviceFault):
                await on_device(phone, "reboot")
            await until(lambda: phone.running is not None and phone.running.identity.generation != life)
            async with phone.frames.watch() as frames:
                assert (await anext(frames)).png != old.png


async def test_pictures_asked_for_together_are_each_whole(tmp_path: Path, opened: Opened) -> None:
    """Twenty at once share the stream one after the other; descriptors are as before."""
    async with a_phone(tmp_path) as phone:
        await phone.eyes.capture()
        before, held = len(opened), len(os.listdir("/proc/self/fd"))
        taken = await asyncio.gather(*(phone.eyes.capture() for _ in range(20)))
        assert {(one.full.width, one.full.height) for one in taken} == {(720, 1280)}
        assert opened[before:] == []
        assert len(os.listdir("/proc/self/fd")) == held
