"""The emulator's own gRPC against a stand-in server (contract test), and live frames from both kinds of source."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio
import pytest
from device_rig import a_phone, journal, on_device, open_app
from PIL import Image

from devices.engine import codec
from devices.engine.channel import open_channel
from devices.engine.codec import Finger
from devices.engine.discovery import Announced
from devices.faults import ChannelLost, InputFailed, NotRunning
from devices.frames import Frame
from devices.hands import PointAt, RefAt

TOKEN = "sesame"
VECTORS = {
    "touch": (
        codec.touch_event((Finger(1, 5, 1200, 1), Finger(0, 7, 0, 0))),
        "0a09080510b009180120010a020807",
    ),
    "key": (codec.key_event("keypress", key="Enter", text="é"), "10022205456e7465722a02c3a9"),
    "format": (codec.image_format(codec.RGB888, width=640, height=1280), "080218800520800a"),
    "clip": (codec.clip("שלום"), "0a08d7a9d79cd795d79d"),
}
IMAGE = "0a13120b080111000000000000f83f18ac0220c801220489504e47280930cec2f105"


@pytest.mark.parametrize("name", VECTORS)
def test_messages_are_what_protoc_makes_of_them(name: str) -> None:
    """Each message we send equals the bytes of Google's own code for the published proto."""
    made, expected = VECTORS[name]
    assert made.hex() == expected


def test_messages_are_read_and_junk_is_refused() -> None:
    """A picture, a status and a clip are read past unknown fields; truncated and wild bytes are refused."""
    image = codec.read_image(bytes.fromhex(IMAGE))
    assert (image.data, image.width, image.height, image.rotation, image.sequence) == (b"\x89PNG", 300, 200, 1, 9)
    assert codec.read_booted(bytes.fromhex("0a023336100c1801"))
    assert codec.read_clip(codec.clip("a\u0301")) == "a\u0301"
    for raw in (b"\x0a\xff", b"\x0b", b"\xff" * 12, b"\x0a\x05ab"):
        with pytest.raises(ValueError, match=r"."):
            codec.read_clip(raw)


@dataclass
class StandIn:
    """What the stand-in was told, and the frames it is to send."""

    touches: list[list[dict[int, int]]] = field(default_factory=list)
    clipboard: str = "before"
    clips: list[str] = field(default_factory=list)
    frames: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    port: int = 0


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (72, 128), (shade, 0, 0)).save(out, "PNG")
    return out.getvalue()


def image(shade: int, sequence: int) -> bytes:
    data = png(shade)
    head = bytes.fromhex("0a0518482080" + "01")
    size = len(data)
    assert 127 < size < 16384
    return head + bytes((0x22, size & 0x7F | 0x80, size >> 7)) + data + bytes((0x28, sequence))


@asynccontextmanager
async def stand_in() -> AsyncIterator[StandIn]:
    """A server with the emulator's method names that wants the bearer token."""
    state = StandIn()

    async def check(context: grpc.aio.ServicerContext) -> None:
        if ("authorization", f"Bearer {TOKEN}") not in [(key, value) for key, value in context.invocation_metadata()]:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")

    async def status(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await check(context)
        return bytes.fromhex("1801")

    async def touch(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await check(context)
        state.touches.append([dict(codec.fields(one)) for _, one in codec.fields(request)])  # type: ignore[arg-type]
        return b""

    async def set_clip(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await check(context)
        state.clipboard = codec.read_clip(request)
        state.clips.append(state.clipboard)
        return b""

    async def get_clip(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await check(context)
        return codec.clip(state.clipboard)

    async def shot(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await check(context)
        return image(9, 1)

    async def stream(_: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        await check(context)
        while True:
            yield await state.frames.get()

    unary = grpc.unary_unary_rpc_method_handler
    handlers = {
        "getStatus": unary(status),
        "sendTouch": unary(touch),
        "setClipboard": unary(set_clip),
        "getClipboard": unary(get_clip),
        "getScreenshot": unary(shot),
        "streamScreenshot": grpc.unary_stream_rpc_method_handler(stream),
    }
    server = grpc.aio.server()
    name = "android.emulation.control.EmulatorController"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
    state.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield state
    finally:
        await server.stop(None)


async def test_the_channel_wants_its_token() -> None:
    """Without the token nothing opens; with it status, clipboard and touch work."""
    async with stand_in() as state:
        with pytest.raises(ChannelLost) as refused:
            async with open_channel(Announced(state.port, "wrong")):
                pass
        assert refused.value.reason == "adb_refused"
        async with open_channel(Announced(state.port, TOKEN)) as channel:
            assert await channel.booted()
            await channel.set_clipboard("é")
            assert await channel.clipboard() == "é"
            await channel.touch((Finger(0, 1, 2, 1), Finger(1, 3, 4, 1)))
        assert state.touches == [[{1: 1, 2: 2, 4: 1}, {1: 3, 2: 4, 3: 1, 4: 1}]]
        with pytest.raises(ChannelLost):
            async with open_channel(Announced(1, ""), step_s=1.0):
                pass


ZOOM = """
package = "lomi.test.zoom"
label = "Zoom"
[[screens]]
activity = ".Main"
title = "Zoom"
[[screens.items]]
kind = "text"
id = "size"
text = "100 %"
[[screens.items]]
kind = "canvas"
id = "photo"
height = 400
pinch = [{ do = "set", target = "size", value = "{scale} %" }]
"""
TEXTS = ("שלום עולם", "漢字かな交じり文", "👩‍👩‍👧‍👦 and 👍🏽", "e\u0301 a\u0308", "line one\nline two", "$(id) 'é' %s")


async def test_two_fingers_reach_the_screen(tmp_path: Path) -> None:
    """Two fingers pinch over the emulator's own channel, also on a turned display; what is held is lifted."""
    async with a_phone(tmp_path, grpc=True, apps=ZOOM) as phone:
        assert phone.without_engine is None
        for turns in (0, 1):
            await phone.hands.rotate(turns)
            await open_app(phone, "lomi.test.zoom")
            screen = (await phone.eyes.snapshot()).screen
            left, right = (screen.to_hardware(x, 300) for x in (300, 340))
            apart = screen.to_hardware(240, 300), screen.to_hardware(400, 300)
            await phone.hands.touch("down", *left)
            await phone.hands.touch("down", *right, identifier=1)
            await phone.hands.touch("move", *apart[0])
            await phone.hands.touch("move", *apart[1], identifier=1)
            await phone.hands.touch("up", *apart[1], identifier=1)
            await phone.hands.touch("up", *apart[0])
            pinched = journal(phone, "pinch")[-1]
            assert (pinched["package"], pinched["fingers"], pinched["scale"]) == ("lomi.test.zoom", 2, 400)
            assert "400 %" in (await phone.eyes.snapshot()).outline().text
            await on_device(phone, "am force-stop lomi.test.zoom")
        await phone.hands.touch("down", 100, 300)
        await phone.hands.key("ArrowDown", down=True)
        await phone.hands.release()
        assert [row["pressure"] for row in journal(phone, "motion")][-2:] == [1, 0]
        assert [(row["key"], row["kind"]) for row in journal(phone, "key_event")] == [
            ("ArrowDown", "down"),
            ("ArrowDown", "up"),
        ]


async def test_any_text_arrives_by_clipboard_and_the_clipboard_is_put_back(tmp_path: Path) -> None:
    """Text that no key can say is pasted exactly, and what the clipboard held before is in it again (pains 46)."""
    async with a_phone(tmp_path, grpc=True) as phone:
        await on_device(phone, "cmd lomi_agent clipboard set-base64 bWluZQ==")
        for words in TEXTS:
            await on_device(phone, "am force-stop lomi.paper.form")
            await open_app(phone, "lomi.paper.form")
            seen = await phone.eyes.snapshot()
            index = next(node.index for node in seen.tree.nodes if node.resource_id.endswith("/name"))
            await phone.hands.tap(RefAt(seen.id, seen.refs[index]))
            typed = await phone.hands.type_text(words)
            assert (typed.path, typed.confirmed) == ("paste", True)
            field = (await phone.eyes.snapshot()).tree.focused_editable
            assert field is not None
            assert field.text == words
            assert await on_device(phone, "cmd lomi_agent clipboard get-base64") == "bWluZQ==\n"
        assert [row["text"] for row in journal(phone, "clipboard")][1:] == [
            text for words in TEXTS for text in (words, "mine")
        ]


async def test_pictures_come_over_the_channel_and_over_adb_when_it_fails(tmp_path: Path) -> None:
    """The channel's picture is the display's; when the channel fails, or is off, adb is used and the reason is told."""
    async with a_phone(tmp_path, grpc=True) as phone:
        over_channel = await phone.eyes.capture()
        assert (over_channel.full.width, over_channel.full.height) == (720, 1280)
        await on_device(phone, "cmd lomi_agent fault add grpc_fails")
        assert (await phone.eyes.capture()).full.png == over_channel.full.png
        async with phone.frames.watch() as frames, asyncio.timeout(20):
            assert (await anext(frames)).png == over_channel.full.png
        with pytest.raises(ChannelLost, match="UNAVAILABLE"):
            await phone.hands.touch("down", 1, 300)
        await open_app(phone, "lomi.paper.form")
        seen = await phone.eyes.snapshot()
        index = next(node.index for node in seen.tree.nodes if node.resource_id.endswith("/name"))
        await phone.hands.tap(RefAt(seen.id, seen.refs[index]))
        assert (await phone.hands.type_text("é")).confirmed is True
    async with a_phone(tmp_path, grpc=True, name="without", faults='[[fault]]\nname = "grpc_absent"\n') as phone:
        assert phone.without_engine == "grpc_not_announced"
        assert (await phone.eyes.capture()).full.png == over_channel.full.png
        await phone.hands.touch("down", 10, 20)
        with pytest.raises(InputFailed, match="own channel"):
            await phone.hands.touch("down", 30, 40, identifier=1)
        await phone.hands.release()


async def drain(frames: AsyncIterator[Frame]) -> None:
    async for _ in frames:
        pass


@pytest.mark.parametrize("engine", [False, True])
async def test_frames_come_on_change_and_the_last_one_to_late_comers(tmp_path: Path, engine: bool) -> None:
    """A resting screen sends one frame, a change another; a late viewer gets the last; nothing is made unwatched."""
    async with a_phone(tmp_path, grpc=engine) as phone:
        async with phone.frames.watch() as frames, asyncio.timeout(20):
            first = await anext(frames)
            assert max(first.width, first.height) <= 1280
            await phone.hands.swipe(PointAt(360, 10), PointAt(360, 900), duration_ms=50)
            await on_device(phone, "cmd statusbar expand-notifications")
            second = await anext(frames)
            assert second.sequence > first.sequence
            assert second.png != first.png
            async with phone.frames.watch() as late:
                assert (await anext(late)).sequence >= second.sequence
        assert phone.frames._producer is None
        async with phone.frames.watch() as frames, asyncio.timeout(20):
            await anext(frames)
            await phone.stop()
            with pytest.raises((NotRunning, ChannelLost)):
                await drain(frames)
