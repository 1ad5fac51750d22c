"""`input`: touches, keys and text."""

import asyncio

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.commands.package import missing_service
from emulator_images.paper.screen.keys import code_of, editor_action, enter, press_keys
from emulator_images.paper.screen.touch import LONG_PRESS_MILLISECONDS, gesture

_SOURCES = frozenset({
    "keyboard", "dpad", "gamepad", "touchscreen", "mouse", "touchpad", "trackball", "joystick", "stylus",
    "touchnavigation",
})  # fmt: skip
_FOR_EVER = 86400.0
_STEPS = 10  # points of a swipe's path


async def _input(call: Call) -> int:
    if (failure := await missing_service(call, "input")) is not None:
        return failure
    words = list(call.args)
    if words and words[0] in _SOURCES:
        words.pop(0)
    if words[:1] == ["-d"]:
        words = words[2:]
    verb = words[0] if words else ""
    run = _VERBS.get(verb)
    if run is None:
        return await call.fail(
            f"Error: Unknown command: {verb}\nUsage: input [<source>] [-d DISPLAY_ID] <command>", 255
        )
    slow = call.phone.faults.strikes("slow_input")
    await call.phone.latency.spend("input")
    if slow is not None:
        await asyncio.sleep(slow.seconds)
    ignored = call.phone.faults.strikes("ignored_input") is not None
    try:
        code = await run(call.called(verb, *words[1:]), ignored)
    except ValueError as error:
        return await call.fail(f"Error: Invalid arguments for command: {verb}\n{error}", 255)
    call.phone.tick()
    if (lost := call.phone.faults.strikes("lost_reply")) is not None:
        await asyncio.sleep(lost.seconds or _FOR_EVER)
    return code


def _numbers(call: Call, least: int, most: int) -> list[int]:
    if not least <= len(call.args) <= most:
        raise ValueError(f"java.lang.IllegalArgumentException: Invalid arguments for command: {call.name}")
    return [round(float(word)) for word in call.args]


def _play(call: Call, path: tuple[tuple[int, int], ...], milliseconds: int, *, ignored: bool) -> None:
    hit = "" if ignored else gesture(call.phone.stage, path, milliseconds)
    (x, y), (x2, y2) = path[0], path[-1]
    package = call.phone.stage.activity.app.package
    kind = call.name
    if (late := call.phone.faults.strikes("late_change")) is not None:
        item, _, words = late.text.partition("=")
        texts, frames = call.phone.stage.activity.texts, call.phone.frames
        frames.announce()

        def change() -> None:
            texts[item] = words
            frames.made()

        asyncio.get_running_loop().call_later(late.seconds, change)
    call.phone.record(
        "input", kind=kind, x=x, y=y, x2=x2, y2=y2, milliseconds=milliseconds, hit=hit, package=package, ignored=ignored
    )


async def _tap(call: Call, ignored: bool) -> int:
    x, y = _numbers(call, 2, 2)
    _play(call, ((x, y),), 50, ignored=ignored)
    return 0


async def _swipe(call: Call, ignored: bool) -> int:
    numbers = _numbers(call, 4, 5)
    x, y, x2, y2 = numbers[:4]
    milliseconds = numbers[4] if len(numbers) == 5 else 300
    path = tuple((x + (x2 - x) * step // _STEPS, y + (y2 - y) * step // _STEPS) for step in range(_STEPS + 1))
    _play(call, path, max(milliseconds, LONG_PRESS_MILLISECONDS if call.name == "draganddrop" else 0), ignored=ignored)
    return 0


async def _motion(call: Call, ignored: bool) -> int:
    if not call.args:
        raise ValueError("java.lang.IllegalArgumentException: motionevent needs DOWN, UP, MOVE or CANCEL")
    verb, path = call.args[0].upper(), call.phone.touch_path
    x, y = (round(float(word)) for word in call.args[1:3]) if len(call.args) > 2 else path[-1] if path else (0, 0)
    call.phone.record("motion", kind=verb, x=x, y=y, ignored=ignored)
    if verb == "DOWN":
        path[:] = [(x, y)]
        call.phone.touch_down_at = call.phone.setup.monotonic()
    elif verb == "MOVE":
        path.append((x, y))
    elif verb == "UP" and path:
        held = round((call.phone.setup.monotonic() - call.phone.touch_down_at) * 1000)
        _play(call.called("motionevent"), (*path, (x, y)), held, ignored=ignored)
        path.clear()
    elif verb == "CANCEL":
        path.clear()
    return 0


async def _text(call: Call, ignored: bool) -> int:
    if not call.args:
        raise ValueError("java.lang.IllegalArgumentException: text needs an argument")
    text = call.args[0].replace("%s", " ")
    if not text.isascii():
        # The key character map has no keys for these, and Android falls over its own null answer.
        return await call.fail(
            "\nException occurred while executing 'text':\n"
            "java.lang.NullPointerException: Attempt to get length of null array\n"
            "\tat com.android.server.input.InputShellCommand.sendText(InputShellCommand.java:321)",
            255,
        )
    stage = call.phone.stage
    focused = stage.awake and stage.editor() is not None
    if not ignored and focused:
        await _type(call, text)
    call.phone.record("text", text=text, by="input", ignored=ignored, focused=focused)
    return 0


async def _type(call: Call, text: str) -> None:
    """Type key by key; the keyboard may swallow some, and something else may take the focus meanwhile."""
    stage, faults = call.phone.stage, call.phone.faults
    dropped, moved, slow = faults.strikes("dropped_keys"), faults.strikes("moved_focus"), faults.strikes("slow_typing")
    for number, character in enumerate(text, 1):
        if dropped is not None and number % max(dropped.value, 1) == 0:
            continue
        if character == "\n":
            editor_action(stage)
        else:
            enter(stage, character)
        if moved is not None and number == moved.value:
            stage.activity.focused = moved.text
        if slow is not None and number == slow.value:
            await faults.last(slow)


async def _keys(call: Call, ignored: bool) -> int:
    words = [word for word in call.args if not word.startswith("--")]
    codes = [code_of(word) for word in words]
    if not codes or None in codes:
        raise ValueError(f"java.lang.IllegalArgumentException: Unknown keycode: {' '.join(words)}")
    known = tuple(code for code in codes if code is not None)
    together = call.name == "keycombination"
    if not ignored:
        for group in [known] if together else [(code,) for code in known]:
            press_keys(call.phone.stage, group)
    call.phone.record(
        "key", codes=[str(code) for code in known], together=together, long="--longpress" in call.args, ignored=ignored
    )
    return 0


_VERBS = {
    "tap": _tap, "swipe": _swipe, "draganddrop": _swipe, "motionevent": _motion, "text": _text, "keyevent": _keys,
    "keycombination": _keys,
}  # fmt: skip

COMMANDS: dict[str, Command] = {"input": _input}
