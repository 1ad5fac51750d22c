"""What the controller's calls do to the phone; bytes in, bytes out."""

import asyncio
import io
import math
from collections.abc import AsyncIterator

from emulator_images.paper.boot import Stage as BootStage
from emulator_images.paper.commands.capture import picture
from emulator_images.paper.control import messages
from emulator_images.paper.control.messages import Wanted
from emulator_images.paper.phone import Phone
from emulator_images.paper.running import VERSION
from emulator_images.paper.screen.fingers import play, to_rotated
from emulator_images.paper.screen.keys import CTRL_LEFT, NAMES, SHIFT_LEFT, enter, press_keys

_FRAME_SECONDS = 1 / 30
_KEYS = {
    "Enter": NAMES["ENTER"], "Backspace": NAMES["DEL"], "Delete": NAMES["FORWARD_DEL"], "Tab": NAMES["TAB"],
    "Escape": NAMES["ESCAPE"], "ArrowLeft": NAMES["DPAD_LEFT"], "ArrowRight": NAMES["DPAD_RIGHT"],
    "ArrowUp": NAMES["DPAD_UP"], "ArrowDown": NAMES["DPAD_DOWN"], "Home": NAMES["MOVE_HOME"],
    "End": NAMES["MOVE_END"], "GoBack": NAMES["BACK"], "GoHome": NAMES["HOME"], "AppSwitch": NAMES["APP_SWITCH"],
    "Power": NAMES["POWER"], "AudioVolumeUp": NAMES["VOLUME_UP"], "AudioVolumeDown": NAMES["VOLUME_DOWN"],
    "Copy": NAMES["COPY"], "Cut": NAMES["CUT"], "Paste": NAMES["PASTE"],
}  # fmt: skip
_HELD = {"Shift": SHIFT_LEFT, "Control": CTRL_LEFT}


class Controller:
    """One phone's controller."""

    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self._held: list[int] = []

    async def get_status(self, _: bytes) -> bytes:
        """Version, time since the boot and whether it is complete."""
        booted = self._phone.boot.stage >= BootStage.COMPLETED
        return messages.status(VERSION, round(self._phone.uptime() * 1000), booted=booted)

    async def get_screenshot(self, request: bytes) -> bytes:
        """The display; empty while it is off."""
        return self._image(messages.read_wanted(request), sequence=0)

    async def stream_screenshot(self, request: bytes) -> AsyncIterator[bytes]:
        """The display now and after each change."""
        wanted, sequence, shown = messages.read_wanted(request), 0, -1
        while True:
            frames, _ = self._phone.frames.look()
            if frames != shown:
                shown = frames
                yield self._image(wanted, sequence=sequence)
                sequence += 1
            await asyncio.sleep(_FRAME_SECONDS)

    async def send_touch(self, request: bytes) -> bytes:
        """Fingers down, moved or lifted; what they did together happens when the last one is lifted."""
        phone, now = self._phone, self._phone.setup.monotonic()
        ignored = phone.faults.strikes("ignored_input") is not None
        for touch in messages.read_touches(request):
            point = to_rotated(phone.stage, touch.x, touch.y)
            phone.record(
                "motion", kind="grpc", x=point[0], y=point[1], finger=touch.identifier, pressure=touch.pressure
            )
            paths = phone.fingers.touch(touch.identifier, point, pressed=touch.pressure > 0, now=now)
            if paths:
                milliseconds = round((now - phone.fingers.began) * 1000)
                hit = "" if ignored or not phone.serving else play(phone.stage, paths, milliseconds)
                (x, y), (x2, y2) = paths[0][0], paths[0][-1]
                phone.record(
                    "input", kind="touch", x=x, y=y, x2=x2, y2=y2, fingers=len(paths), milliseconds=milliseconds,
                    hit=hit, package=phone.stage.activity.app.package, ignored=ignored,
                )  # fmt: skip
        phone.tick()
        return b""

    async def send_key(self, request: bytes) -> bytes:
        """A key by name, held or pressed, or printable ASCII as keys."""
        key = messages.read_key(request)
        self._phone.record("key_event", key=key.name, text=key.text, kind={0: "down", 1: "up"}.get(key.event, "press"))
        if not self._phone.serving:
            return b""
        typed = key.text or (key.name if len(key.name) == 1 else "")
        if key.name in _HELD and not key.text:
            self._held = [code for code in self._held if code != _HELD[key.name]]
            if key.event == messages.KEY_DOWN:
                self._held.append(_HELD[key.name])
        elif typed and not self._held and (key.text or key.event != messages.KEY_UP):
            self._type(typed)
        elif key.event != messages.KEY_UP and (code := self._code(key.name)) is not None:
            press_keys(self._phone.stage, (*self._held, code))
            self._phone.record("key", codes=[str(code) for code in (*self._held, code)], by="grpc")
        return b""

    async def get_clipboard(self, _: bytes) -> bytes:
        """The clipboard's text."""
        return messages.clip(self._phone.stage.clipboard)

    async def set_clipboard(self, request: bytes) -> bytes:
        """Set the clipboard's text."""
        self._phone.stage.clipboard = messages.read_clip(request)
        self._phone.record("clipboard", text=self._phone.stage.clipboard)
        return b""

    def _code(self, name: str) -> int | None:
        return _KEYS.get(name) if len(name) > 1 else NAMES.get(name.upper())

    def _type(self, text: str) -> None:
        """Keys exist for printable ASCII only; what has none is left out, as on the real one."""
        stage = self._phone.stage
        editor = stage.editor() if stage.awake else None
        kept = "".join(character for character in text if " " <= character <= "~")
        if editor is not None and kept:
            enter(stage, kept)
        self._phone.record("text", text=kept, by="grpc", focused=editor is not None)

    def _image(self, wanted: Wanted, *, sequence: int) -> bytes:
        stage = self._phone.stage
        width, height = stage.size
        data = b""
        if stage.awake and self._phone.serving:
            scale = min((part / whole for part, whole in self._asked(wanted) if part), default=1.0)
            if scale < 1.0:
                width, height = max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
            data = _pixels(picture(self._phone), wanted.kind, (width, height))
        return messages.image(
            Wanted(wanted.kind, width, height),
            data,
            rotation=stage.rotation,
            sequence=sequence,
            microseconds=round(self._phone.clock.now() * 1e6),
        )

    def _asked(self, wanted: Wanted) -> tuple[tuple[int, int], tuple[int, int]]:
        width, height = self._phone.stage.size
        return (wanted.width, width), (wanted.height, height)


def _pixels(png: bytes, kind: int, size: tuple[int, int]) -> bytes:
    """The picture in the wanted form; raw pixels go from left to right and bottom up."""
    from PIL import Image  # noqa: PLC0415 - Pillow is loaded when first needed

    with Image.open(io.BytesIO(png)) as opened:
        if kind == messages.PNG and opened.size == size:
            return png
        image = opened.convert("RGBA" if kind == messages.RGBA8888 else "RGB")
    if image.size != size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    if kind != messages.PNG:
        return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM).tobytes()
    target = io.BytesIO()
    image.save(target, "PNG", compress_level=1)
    return target.getvalue()
