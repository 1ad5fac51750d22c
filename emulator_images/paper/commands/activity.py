"""`am` and `monkey`: starting, stopping and telling apps."""

import base64
import binascii

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.commands.package import missing_service
from emulator_images.paper.packages import Installed
from emulator_images.paper.phone import TEXT_BRIDGE

_WITH_VALUE = (
    "-a -d -t -c -n -p -f -e --es --ei --el --ef --eu --ez --esn --user --display --windowingMode -i --activity-brought"
)
_MAIN, _LAUNCHER = "android.intent.action.MAIN", "android.intent.category.LAUNCHER"


async def _am(call: Call) -> int:
    if (failure := await missing_service(call, "activity")) is not None:
        return failure
    verb = call.args[0] if call.args else ""
    run = _VERBS.get(verb)
    if run is None:
        return await call.fail(f"Unknown command: {verb}", 255)
    return await run(call.called("am", *call.args[1:]))


def _intent(options: dict[str, str], operands: list[str], *, flags: str = "") -> str:
    component = options.get("-n") or next((word for word in operands if "/" in word and "://" not in word), "")
    uri = _uri(options, operands)
    parts = [f"act={options['-a']}"] if "-a" in options else []
    if "-c" in options:
        parts.append(f"cat=[{options['-c']}]")
    if uri:
        parts.append(f"dat={uri.partition(':')[0]}://...")
    if flags:
        parts.append(flags)
    package = options.get("-p") or next((word for word in operands if "/" not in word and "://" not in word), "")
    if package and not component:
        parts.append(f"pkg={package}")
    if component:
        parts.append(f"cmp={component}")
    if options.keys() & {"--es", "--ei", "--ez", "-e"}:
        parts.append("(has extras)")
    return "Intent { " + " ".join(parts) + " }"


async def _start(call: Call) -> int:
    options, operands = call.options(_WITH_VALUE)
    phone = call.phone
    component = options.get("-n") or next((word for word in operands if "/" in word and "://" not in word), "")
    await call.out(f"Starting: {_intent(options, operands)}\n")
    name, _, activity = component.partition("/")
    wanted = name or options.get("-p") or next((word for word in operands if "://" not in word), "")
    package = phone.packages.get(wanted)
    if component and (package is None or not _has_activity(package, activity)):
        await call.err(f"Error type 3\nError: Activity class {{{name}/{_full(name, activity)}}} does not exist.\n")
        return 1
    if not component and package is None:
        package = _resolved(call, options, operands)
        if package is None:
            await call.err(
                f"Error: Activity not started, unable to resolve {_intent(options, operands, flags='flg=0x10000000')}\n"
            )
            return 1
    assert package is not None
    if package.launcher is None and not component and package.name != "com.android.launcher3":
        await call.err(
            f"Error: Activity not started, unable to resolve {_intent(options, operands, flags='flg=0x10000000')}\n"
        )
        return 1
    if "-S" in options:
        phone.died(package.name)
        phone.stage.remove(package.name)
    uri = _uri(options, operands)
    cold = package.name not in phone.processes
    phone.record("launch", package=package.name, activity=activity, uri=uri, by="am")
    made = phone.stage.start(package.app, activity)
    if uri:
        phone.stage.activity.texts["url"] = uri
    if not made:
        await call.err(
            "Warning: Activity not started, intent has been delivered to currently running top-most instance.\n"
        )
    if "-W" in options:
        state = "COLD" if cold else "WARM" if made else "HOT"
        front = phone.stage.activity.component
        await call.out(
            f"Status: ok\nLaunchState: {state}\nActivity: {front}\nTotalTime: 123\nWaitTime: 130\nComplete\n"
        )
    return 0


def _uri(options: dict[str, str], operands: list[str]) -> str:
    return options.get("-d") or next((word for word in operands if "://" in word), "")


def _resolved(call: Call, options: dict[str, str], operands: list[str]) -> Installed | None:
    """The package that answers an intent which names none."""
    packages = call.phone.packages
    if options.get("-a", "").startswith("android.settings."):
        return packages.get("com.android.settings")
    if options.get("-c") == "android.intent.category.HOME":
        return packages.get("com.android.launcher3")
    scheme = _uri(options, operands).partition(":")[0]
    return next((package for package in packages.all() if scheme and scheme in package.app.schemes), None)


def _full(package: str, activity: str) -> str:
    return package + activity if activity.startswith(".") else activity


def _has_activity(package: Installed, activity: str) -> bool:
    full = _full(package.name, activity)
    return full in package.activities or package.app.screen(activity) is not None


async def _force_stop(call: Call) -> int:
    call.phone.stopped.update(call.options("--user")[1])
    return await _end_app(call)


async def _end_app(call: Call) -> int:
    _, names = call.options("--user")
    for name in names:
        call.phone.died(name)
        call.phone.stage.remove(name)
        call.phone.record("stop", package=name)
    return 0


async def _broadcast(call: Call) -> int:
    options, operands = call.options(_WITH_VALUE)
    extras = _extras(call.args)
    action = options.get("-a", "")
    await call.out(f"Broadcasting: {_intent(options, operands, flags='flg=0x400000')}\n")
    _bridge_text(call, action, extras)
    await call.out("Broadcast completed: result=0\n")
    return 0


def _extras(words: tuple[str, ...]) -> dict[str, str]:
    taken = {"--es", "-e", "--ei", "--ez", "--el"}
    return {words[n + 1]: words[n + 2] for n, word in enumerate(words[:-2]) if word in taken}


def _bridge_text(call: Call, action: str, extras: dict[str, str]) -> None:
    """The text bridge keyboard's broadcasts; heard only while it is the chosen input method and a field has focus."""
    phone = call.phone
    editor = phone.stage.editor()
    if phone.settings.get(("secure", "default_input_method")) != TEXT_BRIDGE or editor is None:
        return
    message = extras.get("msg", "")
    if action == "ADB_INPUT_TEXT":
        editor.insert(message)
    elif action == "ADB_INPUT_B64":
        try:
            message = base64.b64decode(message, validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return
        editor.insert(message)
    elif action == "ADB_CLEAR_TEXT":
        editor.select_all()
        editor.delete()
    else:
        return
    phone.record("text", text=message, by=action)


async def _stack(call: Call) -> int:
    await call.out(f"  * Task{{1 #1}} topActivity=ComponentInfo{{{call.phone.stage.activity.component}}}\n")
    return 0


async def _current_user(call: Call) -> int:
    await call.out("0\n")
    return 0


async def _instrument(call: Call) -> int:
    return await call.shell.run_command(call.shell, ["app_process", *call.args], call.streams)


async def _crash(call: Call) -> int:
    name = call.args[-1] if call.args else ""
    if name in call.phone.processes:
        call.phone.stage.crash(name, "shell-induced crash")
    return 0


async def _hang(call: Call) -> int:
    call.phone.stage.freeze(call.phone.stage.activity.app.package)
    return 0


async def _nothing(_call: Call) -> int:
    return 0


_VERBS: dict[str, Command] = {
    "start": _start, "start-activity": _start, "force-stop": _force_stop, "stop-app": _end_app, "kill": _end_app,
    "broadcast": _broadcast, "stack": _stack, "get-current-user": _current_user, "instrument": _instrument,
    "crash": _crash, "hang": _hang, "kill-all": _nothing, "startservice": _nothing, "start-service": _nothing,
    "wait-for-broadcast-idle": _nothing, "start-foreground-service": _nothing, "switch-user": _nothing,
}  # fmt: skip


async def _monkey(call: Call) -> int:
    options, _ = call.options("-p -c -s --throttle --pct-syskeys -v")
    package = call.phone.packages.get(options.get("-p", ""))
    if not call.phone.serving:
        return await call.fail("** Error: Unable to connect to activity manager; is the system running?", 255)
    await call.err(f"  bash arg: -p\n  bash arg: {options.get('-p', '')}\n")
    if package is None or package.launcher is None:
        await call.err("** No activities found to run, monkey aborted.\n")
        return 252
    call.phone.record("launch", package=package.name, by="monkey")
    call.phone.stage.start(package.app)
    await call.out(
        "Events injected: 1\n## Network stats: elapsed time=10ms (0ms mobile, 0ms wifi, 10ms not connected)\n"
    )
    return 0


COMMANDS: dict[str, Command] = {"am": _am, "monkey": _monkey}
