"""`pm` and `cmd`: the package manager and other framework services."""

from emulator_images.paper.commands import installing
from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.packages import Installed
from emulator_images.paper.phone import SERVICES

MISSING_SERVICE = 20


async def missing_service(call: Call, name: str) -> int | None:
    """The failure of a command whose service is not up; None when it is."""
    if call.phone.service_found(name):
        return None
    return await call.fail(f"cmd: Can't find service: {name}", MISSING_SERVICE)


async def _pm(call: Call) -> int:
    if (failure := await missing_service(call, "package")) is not None:
        return failure
    verb = call.args[0] if call.args else ""
    run = _VERBS.get(verb)
    if run is None:
        return await call.fail(f"Unknown command: {verb}\nuse 'pm help' for help", 255)
    return await run(call.called("pm", *call.args[1:]))


async def _list(call: Call) -> int:
    kind = call.args[0] if call.args else ""
    if kind in {"packages", "package"}:
        return await _list_packages(call.called("pm", *call.args[1:]))
    if kind == "features":
        for name in ("reqGlEsVersion=0x30000", "android.hardware.touchscreen", "android.hardware.wifi",
                     "android.software.input_methods", "lomi.simulated"):  # fmt: skip
            await call.out(f"feature:{name}\n")
        return 0
    if kind == "users":
        await call.out("Users:\n\tUserInfo{0:Owner:4c13} running\n")
        return 0
    if kind == "instrumentation":
        return 0
    return await call.fail(f"Error: unknown list type '{kind}'", 1)


async def _list_packages(call: Call) -> int:
    options, filters = call.options("--user --uid")
    for package in call.phone.packages.all():
        if ("-3" in options and not package.third_party) or ("-s" in options and package.third_party):
            continue
        if any(text not in package.name for text in filters):
            continue
        line = f"package:{package.path}={package.name}" if "-f" in options else f"package:{package.name}"
        if "--show-versioncode" in options:
            line += f" versionCode:{package.app.version_code}"
        if "-U" in options:
            line += f" uid:{package.uid}"
        await call.out(line + "\n")
    return 0


async def _path(call: Call) -> int:
    _, names = call.options("--user")
    package = call.phone.packages.get(names[0]) if names else None
    if package is None:
        return 1
    await call.out(f"package:{package.path}\n")
    return 0


async def _uninstall(call: Call) -> int:
    options, names = call.options("--user")
    package = call.phone.packages.get(names[0]) if names else None
    if package is None:
        await call.out("Failure [DELETE_FAILED_INTERNAL_ERROR]\n")
        return 1
    if not package.third_party:
        await call.out("Failure [DELETE_FAILED_INTERNAL_ERROR]\n")
        return 1
    call.phone.packages.remove(package.name)
    call.phone.files.remove_system(package.path.rsplit("/", 1)[0])
    call.phone.died(package.name)
    call.phone.stage.remove(package.name)
    call.phone.record("uninstall", package=package.name, kept_data="-k" in options)
    await call.out("Success\n")
    return 0


async def _clear(call: Call) -> int:
    _, names = call.options("--user")
    package = call.phone.packages.get(names[0]) if names else None
    if package is None:
        await call.out("Failed\n")
        return 1
    call.phone.died(package.name)
    call.phone.stage.remove(package.name)
    package.permissions = dict.fromkeys(package.permissions, False)
    call.phone.record("clear", package=package.name)
    await call.out("Success\n")
    return 0


async def _permission(call: Call) -> int:
    _, names = call.options("--user")
    package = call.phone.packages.get(names[0]) if names else None
    if package is None or len(names) < 2:
        reason = f"java.lang.IllegalArgumentException: Unknown package: {names[0] if names else ''}"
        return await call.fail(f"Exception occurred while executing '{call.name}':\n{reason}", 255)
    package.permissions[names[1]] = call.name == "grant"
    return 0


async def _grant(call: Call) -> int:
    return await _permission(call.called("grant", *call.args))


async def _revoke(call: Call) -> int:
    return await _permission(call.called("revoke", *call.args))


def launchable(call: Call, name: str | None = None) -> list[Installed]:
    """Packages with a launcher activity."""
    return [p for p in call.phone.packages.all() if p.launcher is not None and name in {None, p.name}]


async def _query(call: Call) -> int:
    options, names = call.options("-a -c -d -p --user")
    wanted = options.get("-p") or (names[0] if names else None)
    found = launchable(call, wanted)
    if not found:
        await call.out("No activities found\n")
        return 0
    if "--brief" in options or "--components" in options:
        await call.out("".join(f"{package.name}/{package.launcher}\n" for package in found))
        return 0
    await call.out(f"{len(found)} activities found:\n")
    for number, package in enumerate(found):
        await call.out(
            f"  Activity #{number}:\n    priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n"
            f"    ActivityInfo:\n      name={package.launcher}\n      packageName={package.name}\n"
            f"      labelRes=0x0 nonLocalizedLabel={package.app.label} icon=0x0 banner=0x0\n"
        )
    return 0


async def _resolve(call: Call) -> int:
    options, names = call.options("-a -c -d -p --user")
    found = launchable(call, options.get("-p") or (names[-1] if names else ""))
    if "android.intent.category.HOME" in options.get("-c", ""):
        await call.out("priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n")
        await call.out("com.android.launcher3/.Launcher\n")
        return 0
    if not found:
        await call.out("No activity found\n")
        return 0
    activity = found[0].launcher or ""
    short = activity.removeprefix(found[0].name) if activity.startswith(found[0].name + ".") else activity
    await call.out("priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n")
    await call.out(f"{found[0].name}/{short}\n")
    return 0


async def _dump(call: Call) -> int:
    return await call.shell.run_command(call.shell, ["dumpsys", "package", *call.args], call.streams)


async def _nothing(_call: Call) -> int:
    return 0


_VERBS: dict[str, Command] = {
    "list": _list, "path": _path, "uninstall": _uninstall, "clear": _clear, "grant": _grant, "revoke": _revoke,
    "query-activities": _query, "resolve-activity": _resolve, "install": installing.install, "dump": _dump,
    "install-create": installing.create_session, "install-write": installing.write_session,
    "install-commit": installing.commit_session, "install-abandon": installing.abandon_session,
    "set-install-location": _nothing, "disable-user": _nothing, "enable": _nothing, "compile": _nothing,
    "bg-dexopt-job": _nothing,
}  # fmt: skip


async def _cmd(call: Call) -> int:
    if not call.args:
        return await call.fail("cmd: No service specified; use -l to list all running services", MISSING_SERVICE)
    if call.args[0] == "-l":
        await call.out("Currently running services:\n")
        await call.out("".join(f"  {name}\n" for name in sorted(SERVICES) if call.phone.service_found(name)))
        return 0
    service, rest = call.args[0], call.args[1:]
    if (failure := await missing_service(call, service)) is not None:
        return failure
    runs = {"package": "pm", "activity": "am", "window": "wm", "settings": "settings", "input": "input",
            "input_method": "ime", "lomi_agent": "lomi_agent"}  # fmt: skip
    if service in runs:
        return await call.shell.run_command(call.shell, [runs[service], *rest], call.streams)
    if service == "display" and rest[:1] == ("get-displays",):
        return await call.shell.run_command(call.shell, ["dumpsys", "display", "--brief"], call.streams)
    if service == "statusbar":
        return await call.shell.run_command(call.shell, ["statusbar_control", *rest], call.streams)
    if service == "notification" and rest[:1] == ("post",):
        return await call.shell.run_command(call.shell, ["notification_post", *rest[1:]], call.streams)
    if service == "uimode":
        await call.out("Night mode: no\n")
        return 0
    return await call.fail("No shell command implementation.", 255)


COMMANDS: dict[str, Command] = {"pm": _pm, "cmd": _cmd}
