"""`wm` and `dumpsys`: sizes, windows, focus, displays, packages and the other services' dumps."""

import hashlib

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.commands.package import missing_service
from emulator_images.paper.packages import Installed
from emulator_images.paper.phone import KEYBOARD, Phone

DISPLAY_ID = "4619827259835644672"


async def _wm(call: Call) -> int:
    if (failure := await missing_service(call, "window")) is not None:
        return failure
    verb = call.args[0] if call.args else ""
    run = _SIZES.get(verb)
    if run is None:
        return await call.fail(f"Unknown command: {verb}", 255)
    return await run(call.called(verb, *call.args[1:]))


async def _size(call: Call) -> int:
    phone = call.phone
    value = call.args[0] if call.args else ""
    if not value:
        await call.out(f"Physical size: {phone.avd.width}x{phone.avd.height}\n")
        if phone.size_override:
            await call.out("Override size: {}x{}\n".format(*phone.size_override))
        return 0
    across, _, down = value.partition("x")
    if value != "reset" and not (across.isdecimal() and down.isdecimal()):
        return await call.fail(f"Error: bad size {value}", 255)
    phone.size_override = None if value == "reset" else (int(across), int(down))
    phone.stage.width, phone.stage.height = phone.size_override or (phone.avd.width, phone.avd.height)
    return 0


async def _density(call: Call) -> int:
    phone = call.phone
    value = call.args[0] if call.args else ""
    if not value:
        await call.out(f"Physical density: {phone.avd.density}\n")
        if phone.density_override:
            await call.out(f"Override density: {phone.density_override}\n")
        return 0
    if value != "reset" and not value.isdecimal():
        return await call.fail(f"Error: bad number {value}", 255)
    phone.density_override = None if value == "reset" else int(value)
    phone.stage.density = phone.density_override or phone.avd.density
    return 0


async def _dismiss_keyguard(call: Call) -> int:
    call.phone.stage.locked = False
    return 0


async def _user_rotation(call: Call) -> int:
    words = call.args
    settings = call.phone.settings
    if not words:
        mode = "lock" if settings[("system", "accelerometer_rotation")] == "0" else "free"
        await call.out(f"{mode} {call.phone.stage.rotation}\n")
        return 0
    settings[("system", "accelerometer_rotation")] = "0" if words[0] == "lock" else "1"
    if words[0] == "lock" and len(words) > 1 and words[-1].isdecimal():
        settings[("system", "user_rotation")] = words[-1]
        call.phone.stage.rotate(int(words[-1]) % 4)
    return 0


_SIZES: dict[str, Command] = {
    "size": _size,
    "density": _density,
    "user-rotation": _user_rotation,
    "set-user-rotation": _user_rotation,
    "dismiss-keyguard": _dismiss_keyguard,
}


def _hash(title: str) -> str:
    return hashlib.sha256(title.encode()).hexdigest()[:7]


def focus_lines(phone: Phone) -> str:
    """The lines that say which window and app have the focus."""
    stage = phone.stage
    if not stage.awake:
        return "  mCurrentFocus=null\n  mFocusedApp=null\n"
    title = stage.focused_window().title
    component = stage.activity.component
    package, _, name = component.partition("/")
    short = name.removeprefix(package) if name.startswith(package + ".") else name
    task = len(stage.tasks) + 1
    return (
        f"  mCurrentFocus=Window{{{_hash(title)} u0 {title}}}\n"
        f"  mFocusedApp=ActivityRecord{{{_hash(component)} u0 {package}/{short} t{task}}}\n"
    )


def _windows(phone: Phone) -> str:
    stage = phone.stage
    out = ["WINDOW MANAGER WINDOWS (dumpsys window windows)\n"]
    windows = [stage.focused_window()]
    if stage.dialog is not None or stage.shade_open:
        windows.append(stage.app_window())
    for number, window in enumerate(windows):
        flags = "LAYOUT_IN_SCREEN SPLIT_TOUCH HARDWARE_ACCELERATED" + (
            " SECURE" if window.secure or phone.secure_picture else ""
        )
        out.append(
            f"  Window #{number} Window{{{_hash(window.title)} u0 {window.title}}}:\n"
            f"    mDisplayId=0 rootTaskId=1 mSession=Session{{1 2:u0a1}}\n"
            f"    mOwnerUid=10000 showForAllUsers=false package={window.package} appop=NONE\n"
            f"    mAttrs={{(0,0)(fillxfill) ty=BASE_APPLICATION\n      fl={flags}}}\n"
            "    mHasSurface=true isReadyForDisplay()=true\n"
        )
    return "".join(out)


def _displays(phone: Phone) -> str:
    avd, stage = phone.avd, phone.stage
    width, height = stage.size
    short, long = min(width, height), max(width, height)
    return (
        "WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)\n"
        "  Display: mDisplayId=0 (organized)\n"
        f"    init={avd.width}x{avd.height} {avd.density}dpi mMinSizeOfResizeableTaskDp=220 cur={width}x{height} "
        f"app={width}x{height} rng={short}x{short}-{long}x{long}\n"
        f"    mRotation=ROTATION_{stage.rotation * 90} mLastOrientation=-1\n"
    )


async def _dump_window(call: Call) -> int:
    phone = call.phone
    part = call.args[0] if call.args else ""
    if part in {"", "-a", "windows", "w", "all"}:
        await call.out(_windows(phone))
    if part in {"", "-a", "displays", "d", "all"}:
        await call.out(_displays(phone))
    if part in {"policy", "p", "", "-a"}:
        shown = str(phone.stage.awake).lower()
        await call.out(
            f"    mAwake={shown} mScreenOnFully={shown} mShowingLockscreen={str(phone.stage.locked).lower()}\n"
        )
        await call.out(f"    mDreamingLockscreen={str(phone.stage.locked).lower()}\n")
    await call.out(focus_lines(phone))
    return 0


async def _dump_display(call: Call) -> int:
    phone, stage = call.phone, call.phone.stage
    width, height = stage.size
    state = "ON" if stage.awake else "OFF"
    if "--brief" in call.args:
        await call.out(
            f'Displays:\nDisplay id 0: DisplayInfo{{"Built-in Screen", displayId 0, state {state}, '
            f"real {width} x {height}, rotation {stage.rotation}, density {stage.density}, "
            f'uniqueId "local:{DISPLAY_ID}"}}, uniqueId "local:{DISPLAY_ID}"\n'
        )
        return 0
    await call.out(
        f"DISPLAY MANAGER (dumpsys display)\n  mViewports=[DisplayViewport{{type=INTERNAL, valid=true, isActive=true, "
        f"displayId=0, uniqueId='local:{DISPLAY_ID}', physicalPort=0, orientation={stage.rotation}, "
        f"logicalFrame=Rect(0, 0 - {width}, {height}), physicalFrame=Rect(0, 0 - {width}, {height}), "
        f"deviceWidth={width}, deviceHeight={height}}}]\n"
        f"  mScreenState={state}\n    mCurrentOrientation={stage.rotation}\n"
        f'    mBaseDisplayInfo=DisplayInfo{{"Built-in Screen", displayId 0, state {state}, '
        f"real {phone.avd.width} x {phone.avd.height}, rotation {stage.rotation}}}\n"
    )
    return 0


async def _dump_input(call: Call) -> int:
    stage = call.phone.stage
    width, height = stage.size
    await call.out(
        "INPUT MANAGER (dumpsys input)\n\nEvent Hub State:\n  Devices:\n    1: lomi_paper_touch\n"
        f"  Viewport INTERNAL: displayId=0, uniqueId=local:{DISPLAY_ID}, port=0, orientation={stage.rotation}, "
        f"logicalFrame=[0, 0, {width}, {height}], physicalFrame=[0, 0, {width}, {height}], "
        f"deviceSize=[{width}, {height}], isActive=[1]\n"
        f"      SurfaceOrientation: {stage.rotation}\n"
        f"  FocusedWindows:\n    displayId=0, name='{stage.focused_window().title}'\n"
    )
    return 0


async def _dump_input_method(call: Call) -> int:
    phone = call.phone
    shown = str(phone.stage.keyboard_shown).lower()
    method = phone.settings.get(("secure", "default_input_method"), KEYBOARD)
    await call.out(
        f"Current Input Method Manager state:\n  mCurMethodId={method}\n  mInputShown={shown}\n"
        f"  mServedView={'editor' if phone.stage.editor() is not None else 'null'}\n"
    )
    return 0


async def _dump_activity(call: Call) -> int:
    phone = call.phone
    package, _, name = phone.stage.activity.component.partition("/")
    short = name.removeprefix(package) if name.startswith(package + ".") else name
    record = f"ActivityRecord{{{_hash(name)} u0 {package}/{short} t{len(phone.stage.tasks) + 1}}}"
    part = call.args[0] if call.args else ""
    if part == "top":
        pid = phone.processes.get(package, 0)
        await call.out(f"TASK {package} id=1 userId=0\n  ACTIVITY {package}/{short} {_hash(name)} pid={pid}\n")
        return 0
    await call.out(
        "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\n"
        f"  topResumedActivity={record}\n  ResumedActivity: {record}\n  mFocusedApp={record}\n"
    )
    for process, pid in phone.processes.items():
        await call.out(f"    Proc # 0: fg {pid}:{process}/u0\n")
    return 0


async def _dump_power(call: Call) -> int:
    awake = call.phone.stage.awake
    state = "Awake" if awake else "Asleep"
    await call.out(
        f"POWER MANAGER (dumpsys power)\n  mWakefulness={state}\n  mIsPowered=true\n  mStayOn=false\n"
        f"Display Power: state={'ON' if awake else 'OFF'}\n  mHoldingDisplaySuspendBlocker={str(awake).lower()}\n"
    )
    return 0


async def _dump_battery(call: Call) -> int:
    await call.out(
        "Current Battery Service state:\n  AC powered: true\n  USB powered: false\n  Wireless powered: false\n"
        f"  Dock powered: false\n  Max charging current: 0\n  status: 2\n  health: 2\n  present: true\n"
        f"  level: {call.phone.battery}\n  scale: 100\n  voltage: 5000\n  temperature: 250\n  technology: Li-ion\n"
    )
    return 0


async def _dump_package(call: Call) -> int:
    wanted = call.args[0] if call.args else None
    found = [package for package in call.phone.packages.all() if wanted in {None, package.name}]
    if wanted is not None and not found:
        await call.out(f"Unable to find package: {wanted}\n")
        return 0
    await call.out("Packages:\n")
    for package in found:
        await call.out(_package_text(call.phone, package))
    return 0


def _package_text(phone: Phone, package: Installed) -> str:
    def stamp(second: float) -> str:
        return phone.clock.local(second).strftime("%Y-%m-%d %H:%M:%S")

    signed = f"{_hash(package.signature)} version:2, signatures:[{package.signature[:8]}]"
    stopped = str(package.name in phone.stopped).lower()
    flags = ("" if package.third_party else "SYSTEM ") + ("DEBUGGABLE " if package.debuggable else "")
    lines = [
        f"  Package [{package.name}] ({_hash(package.name)}):",
        f"    appId={package.uid}",
        f"    pkg=Package{{{_hash(package.name)} {package.name}}}",
        f"    codePath={package.path.rsplit('/', 1)[0]}",
        "    primaryCpuAbi=null",
        f"    versionCode={package.app.version_code} minSdk={package.min_sdk} targetSdk={package.target_sdk}",
        f"    versionName={package.app.version_name}",
        "    splits=[base]",
        f"    pkgFlags=[ {flags}HAS_CODE ALLOW_CLEAR_USER_DATA ]",
        f"    timeStamp={stamp(package.updated_at)}",
        f"    lastUpdateTime={stamp(package.updated_at)}",
        f"    signatures=PackageSignatures{{{signed}, past signatures:[]}}",
        f"    firstInstallTime={stamp(package.installed_at)}",
        f"    User 0: ceDataInode=1 installed=true hidden=false suspended=false stopped={stopped} enabled=0",
        "      runtime permissions:",
    ]
    lines += [f"        {name}: granted={str(held).lower()}" for name, held in package.permissions.items()]
    return "\n".join(lines) + "\n"


async def _dump_surfaces(call: Call) -> int:
    if "--display-id" in call.args:
        await call.out(f'Display {DISPLAY_ID} (HWC display 0): port=0 pnpId=GGL displayName="EMU_display_0"\n')
    elif "--events" in call.args:
        count, awaited = call.phone.frames.look()
        state, request = ("VSync", "Single") if awaited else ("Idle", "None")
        await call.out(
            f"app: state={state} VSyncState={{displayId={DISPLAY_ID}, count={count}}}\n  pending events (count=0):\n"
            f"  connections (count=1):\n    Connection{{0x1, VSyncRequest::{request}}}\n"
        )
    else:
        await call.out(f"Layer [{call.phone.stage.focused_window().title}#1]\n")
    return 0


_DUMPS: dict[str, Command] = {
    "window": _dump_window, "display": _dump_display, "input": _dump_input, "input_method": _dump_input_method,
    "activity": _dump_activity, "power": _dump_power, "battery": _dump_battery, "package": _dump_package,
    "SurfaceFlinger": _dump_surfaces,
}  # fmt: skip


async def _dumpsys(call: Call) -> int:
    words = list(call.args)
    if words[:1] == ["-t"]:
        words = words[2:]
    if words[:1] == ["-l"] or not words:
        await call.out("Currently running services:\n" + "".join(f"  {name}\n" for name in sorted(_DUMPS)))
        return 0
    call.phone.tick()
    if not call.phone.service_found(words[0]):
        await call.err(f"Can't find service: {words[0]}\n")
        return 0
    run = _DUMPS.get(words[0])
    return await run(call.called("dumpsys", *words[1:])) if run else 0


COMMANDS: dict[str, Command] = {"wm": _wm, "dumpsys": _dumpsys}
