"""`cmd lomi_agent`: what paper alone has, so that tests can move time, set the clipboard and plan faults.

* `clipboard set-base64 TEXT`, `clipboard get-base64`: the clipboard as UTF-8, exact (paste it with KEYCODE_PASTE, 279)
* `clock advance SECONDS`, `clock run RATE`, `clock now`
* `fault add NAME [after=N] [times=N] [seconds=S] [value=N] [text=...]`, `fault clear [NAME]`
* `notify PACKAGE TITLE TEXT`, `crash PACKAGE`, `anr PACKAGE`
"""

import base64
import binascii

import msgspec

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.faults import Fault
from emulator_images.paper.screen.state import Notification


async def _agent(call: Call) -> int:
    topic = call.args[0] if call.args else ""
    run = _TOPICS.get(topic)
    if run is None:
        return await call.fail(f"lomi_agent: unknown command '{topic}'; one of {', '.join(_TOPICS)}", 255)
    return await run(call.called(topic, *call.args[1:]))


async def _clipboard(call: Call) -> int:
    stage = call.phone.stage
    if call.args[:1] == ("get-base64",):
        await call.out(base64.b64encode(stage.clipboard.encode("utf-8")) + b"\n")
        return 0
    if call.args[:1] != ("set-base64",) or len(call.args) > 2:
        return await call.fail("lomi_agent: clipboard set-base64 TEXT | get-base64", 255)
    try:
        payload = base64.b64decode(call.args[1] if len(call.args) > 1 else "", validate=True)
        stage.clipboard = payload.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        return await call.fail(f"lomi_agent: not base64 of UTF-8: {error}", 255)
    call.phone.record("clipboard", text=stage.clipboard)
    return 0


async def _clock(call: Call) -> int:
    verb = call.args[0] if call.args else ""
    clock = call.phone.clock
    if verb == "advance" and len(call.args) == 2:
        clock.advance(float(call.args[1]))
    elif verb == "run" and len(call.args) == 2:
        clock.run(float(call.args[1]))
    elif verb == "now":
        await call.out(f"{clock.now():.3f}\n")
    else:
        return await call.fail("lomi_agent: clock advance SECONDS | run RATE | now", 255)
    call.phone.tick()
    return 0


async def _fault(call: Call) -> int:
    verb = call.args[0] if call.args else ""
    if verb == "clear":
        call.phone.faults.clear(call.args[1] if len(call.args) > 1 else "")
        return 0
    if verb != "add" or len(call.args) < 2:
        return await call.fail("lomi_agent: fault add NAME [key=value]... | clear [NAME]", 255)
    fields = dict(word.split("=", 1) for word in call.args[2:] if "=" in word)
    try:
        fault = msgspec.convert({"name": call.args[1], **fields}, Fault, strict=False)
    except msgspec.ValidationError as error:
        return await call.fail(f"lomi_agent: {error}", 255)
    call.phone.faults.add(fault)
    return 0


async def _notify(call: Call) -> int:
    package, title, text = (*call.args, "", "", "")[:3]
    call.phone.stage.notifications.insert(0, Notification(package, title, text))
    return 0


async def _crash(call: Call) -> int:
    package = call.args[0] if call.args else call.phone.stage.activity.app.package
    call.phone.stage.crash(package, "paper was told to crash")
    return 0


async def _anr(call: Call) -> int:
    call.phone.stage.freeze(call.args[0] if call.args else call.phone.stage.activity.app.package)
    return 0


_TOPICS: dict[str, Command] = {
    "clipboard": _clipboard, "clock": _clock, "fault": _fault, "notify": _notify, "crash": _crash, "anr": _anr,
}  # fmt: skip


async def _statusbar(call: Call) -> int:
    verb = call.args[0] if call.args else ""
    call.phone.stage.shade_open = verb.startswith("expand")
    return 0


async def _post(call: Call) -> int:
    options, words = call.options("-t -S")
    tag, text = (*words, "", "")[:2]
    call.phone.stage.notifications.insert(0, Notification("com.android.shell", options.get("-t") or tag, text))
    await call.out(f"posting:\n  Notification(channel=shell_cmd tag={tag})\n")
    return 0


COMMANDS: dict[str, Command] = {"lomi_agent": _agent, "statusbar_control": _statusbar, "notification_post": _post}
