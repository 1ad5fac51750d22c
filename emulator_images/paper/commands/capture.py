"""`screencap` and `uiautomator`: the picture and the hierarchy."""

import asyncio
import struct

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.phone import Phone
from emulator_images.paper.screen.nodes import dump
from emulator_images.paper.shell.flow import BrokenPipe
from emulator_images.paper.shell.interpreter import FileError


def picture(phone: Phone) -> bytes:
    """The display as PNG bytes; black while it is off, shows a secure window, or draws nothing."""
    from emulator_images.paper.screen.draw import Painter, black  # noqa: PLC0415 - Pillow is loaded when first needed

    stage = phone.stage
    width, height = stage.size
    app = stage.app_window()
    if phone.drawing_disabled() or not stage.awake or app.secure:
        return black(width, height)
    painter = Painter(width, height, stage.density)
    painter.window(app.root)
    painter.strokes(stage.activity.strokes)
    board = stage.keyboard_window()
    if board is not None:
        painter.window(board)
    if stage.dialog is not None or stage.shade_open:
        painter.window(stage.focused_window().root)
    painter.status_bar(phone.clock_text(), notifications=len(stage.notifications))
    if stage.toast:
        painter.toast(stage.toast)
    return painter.png()


async def _screencap(call: Call) -> int:
    phone = call.phone
    if not phone.serving:
        return await call.fail("SurfaceFlinger is not available")
    options, names = call.options("-d")
    phone.tick()
    await phone.latency.spend("screencap")
    phone.stage.spinner += 1
    if phone.faults.strikes("failed_picture"):
        return await call.fail("screencap: Failed to take screenshot. Status: -22")
    payload, noise = _faulty(phone, picture(phone))
    if "-p" not in options and not any(name.endswith(".png") for name in names):
        payload = _raw(phone)
    if names:
        try:
            phone.files.write(call.shell.path(names[0]), payload)
        except FileError as error:
            return await call.fail(f"Error opening file: {names[0]} ({error})")
        return 0
    await _sent(call, noise + payload)
    return 0


async def _sent(call: Call, payload: bytes) -> None:
    slow, cut = call.phone.faults.strikes("slow_picture"), call.phone.faults.strikes("cut_picture")
    if slow is not None or cut is not None:
        await call.out(payload[: len(payload) // 2])
        payload = payload[len(payload) // 2 :]
        call.phone.record("half_picture")
    if slow is not None:
        await asyncio.sleep(slow.seconds)
    if cut is not None:
        raise BrokenPipe
    await call.out(payload)


def _faulty(phone: Phone, payload: bytes) -> tuple[bytes, bytes]:
    noise = b""
    width, height = phone.stage.size
    if (fault := phone.faults.strikes("text_before_png")) is not None:
        text = fault.text or (
            "[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display "
            "found, however this default is not guaranteed to be consistent across captures.\n"
        )
        noise = text.encode()
    phone.secure_picture = phone.faults.strikes("black_secure") is not None
    if phone.secure_picture or phone.faults.strikes("black_picture"):
        from emulator_images.paper.screen.draw import black  # noqa: PLC0415

        payload = black(width, height)
    if phone.faults.strikes("empty_png"):
        payload = b""
    if (fault := phone.faults.strikes("truncated_png")) is not None:
        payload = payload[: fault.value or len(payload) // 2]
    return payload, noise


def _raw(phone: Phone) -> bytes:
    """The raw form: width, height, format RGBA_8888 and colour space, then four bytes a pixel."""
    import io  # noqa: PLC0415

    from PIL import Image  # noqa: PLC0415

    with Image.open(io.BytesIO(picture(phone))) as image:
        return struct.pack("<IIII", image.width, image.height, 1, 1) + image.convert("RGBA").tobytes()


async def _uiautomator(call: Call) -> int:
    phone = call.phone
    if call.args[:1] != ("dump",):
        return await call.shell.run_command(call.shell, ["app_process", *call.args], call.streams)
    if not phone.serving:
        return await call.fail("ERROR: null root node returned by UiTestAutomationBridge.")
    names = [word for word in call.args[1:] if not word.startswith("--")]
    phone.tick()
    slow = phone.faults.strikes("slow_dump")
    await phone.latency.spend("dump")
    if slow is not None:
        await asyncio.sleep(slow.seconds)
    if (fault := phone.faults.strikes("failed_dump")) is not None:
        text = fault.text or "ERROR: could not get idle state."
        if fault.value:
            return await call.fail(text, fault.value)
        await call.err(text + "\n")
        return 0
    if not phone.stage.awake:
        await call.err("ERROR: null root node returned by UiTestAutomationBridge.\n")
        return 0
    phone.stage.spinner += 1
    phone.frames.look()
    document = dump(phone.stage.focused_window(), rotation=phone.stage.rotation, api=phone.avd.api)
    if (fault := phone.faults.strikes("dump_noise")) is not None:
        await call.out((fault.text or "WARNING: linker: libdvm.so has text relocations") + "\n")
    target = names[0] if names else "/sdcard/window_dump.xml"
    if target in {"/dev/tty", "/dev/stdout", "/proc/self/fd/1"}:
        await call.out(document)
    else:
        try:
            phone.files.write(call.shell.path(target), document.encode("utf-8", "replace"))
        except FileError as error:
            return await call.fail(f"java.io.FileNotFoundException: {target}: open failed: {error}")
    await call.out(f"UI hierchary dumped to: {target}\n")
    return 0


COMMANDS: dict[str, Command] = {"screencap": _screencap, "uiautomator": _uiautomator}
