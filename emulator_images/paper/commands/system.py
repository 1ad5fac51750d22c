"""System commands: properties, settings, services, processes, time."""

import time

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.phone import KEYBOARD, SERVICES, TEXT_BRIDGE


async def _getprop(call: Call) -> int:
    properties = call.phone.properties()
    words = [word for word in call.args if word != "-T"]
    if words:
        await call.out(properties.get(words[0]) or (words[1] if len(words) > 1 else ""))
        await call.out("\n")
    else:
        await call.out("".join(f"[{key}]: [{value}]\n" for key, value in sorted(properties.items())))
    return 0


async def _setprop(call: Call) -> int:
    if len(call.args) != 2:
        return await call.fail("usage: setprop NAME VALUE")
    name, value = call.args
    if name.startswith("ro.") and name in call.phone.properties():
        return await call.fail(f"Failed to set property '{name}' to '{value}'.\nSee dmesg for error reason.")
    call.phone.changed_properties[name] = value
    if name == "sys.powerctl":
        call.phone.reboot_asked.set()
    return 0


async def _settings(call: Call) -> int:
    words = list(call.args)
    if words[:1] == ["--user"]:
        words = words[2:]
    verb, space, key, value = (words + [""] * 4)[:4]
    table = call.phone.settings
    if space not in {"system", "secure", "global"}:
        return await call.fail(f"Invalid namespace '{space}'", 255)
    if verb == "get":
        await call.out(table.get((space, key), "null") + "\n")
    elif verb == "put":
        table[(space, key)] = value
        if (space, key) in {("system", "user_rotation"), ("system", "accelerometer_rotation")}:
            follow_rotation(call)
    elif verb == "delete":
        await call.out(f"Deleted {int(table.pop((space, key), None) is not None)} rows\n")
    elif verb == "list":
        await call.out("".join(f"{name}={held}\n" for (kind, name), held in sorted(table.items()) if kind == space))
    else:
        return await call.fail(f"Invalid command: {verb}", 255)
    return 0


def follow_rotation(call: Call) -> None:
    """Turn the display to the rotation the settings ask for."""
    settings = call.phone.settings
    if settings.get(("system", "accelerometer_rotation"), "0") == "0":
        wanted = settings.get(("system", "user_rotation"), "0")
        call.phone.stage.rotate(int(wanted) % 4 if wanted.isdecimal() else 0)


async def _content(call: Call) -> int:
    words = list(call.args)
    options = {words[n]: words[n + 1] for n in range(1, len(words) - 1) if words[n].startswith("--")}
    binds = [words[n + 1] for n in range(len(words) - 1) if words[n] == "--bind"]
    bound = {name: value for name, _, value in (bind.split(":", 2) for bind in binds if bind.count(":") >= 2)}
    uri = options.get("--uri", "")
    space = uri.rstrip("/").rsplit("/", 1)[-1]
    if "content://settings/" not in uri:
        return await call.fail(f"[ERROR] Unsupported content provider: {uri}")
    if words[0] in {"insert", "update"} and "name" in bound:
        return await _settings(call.called("settings", "put", space, bound["name"], bound.get("value", "")))
    if words[0] == "query":
        rows = [(key, value) for (kind, key), value in sorted(call.phone.settings.items()) if kind == space]
        await call.out("".join(f"Row: {n} _id={n}, name={key}, value={value}\n" for n, (key, value) in enumerate(rows)))
    return 0


async def _service(call: Call) -> int:
    phone = call.phone
    if call.args[:1] == ("check",) and len(call.args) > 1:
        name = call.args[1]
        await call.out(f"Service {name}: {'found' if phone.service_found(name) else 'not found'}\n")
        return 0
    if call.args[:1] == ("list",):
        names = [name for name in SERVICES if phone.service_found(name)]
        await call.out(f"Found {len(names)} services:\n")
        await call.out("".join(f"{n}\t{name}: [android.os.I{name}]\n" for n, name in enumerate(names)))
        return 0
    if call.args[:1] == ("call",):
        await call.out("Result: Parcel(00000000    '....')\n")
        return 0
    return await call.fail("service: No service specified for call", 10)


async def _id(call: Call) -> int:
    root = call.phone.files.root
    name, number, domain = ("root", 0, "su") if root else ("shell", 2000, "shell")
    if call.args[:1] == ("-u",):
        await call.out(f"{number}\n")
    elif call.name == "whoami":
        await call.out(f"{name}\n")
    else:
        await call.out(
            f"uid={number}({name}) gid={number}({name}) groups={number}({name}),1007(log),3003(inet) "
            f"context=u:r:{domain}:s0\n"
        )
    return 0


async def _date(call: Call) -> int:
    moment = call.phone.clock.local()
    form = next((word[1:] for word in call.args if word.startswith("+")), "%a %b %e %H:%M:%S %Z %Y")
    await call.out(moment.strftime(form.replace("%s", str(int(call.phone.clock.now())))) + "\n")
    return 0


async def _uptime(call: Call) -> int:
    stamp = time.strftime("%H:%M:%S", time.gmtime(call.phone.clock.now()))
    await call.out(f" {stamp} up {int(call.phone.uptime() // 60)} min,  0 users,  load average: 0.10, 0.05, 0.01\n")
    return 0


def _processes(call: Call) -> list[tuple[str, int, str]]:
    rows = [("root", 1, "init"), ("shell", 320, "adbd")]
    for name, pid in sorted(call.phone.processes.items(), key=lambda pair: pair[1]):
        package = call.phone.packages.get(name)
        rows.append((f"u0_a{package.uid - 10000}" if package else "system", pid, name))
    return rows


async def _ps(call: Call) -> int:
    await call.out("USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME                       \n")
    for user, pid, name in _processes(call):
        await call.out(f"{user:<12} {pid:>5} {1:>5} {1000000:>7} {50000:>6} {'0':<10} {'0':>10} S {name:<27}\n")
    return 0


async def _pidof(call: Call) -> int:
    _, names = call.options()
    pattern = names[0] if names else ""
    exact = call.name == "pidof"
    found = [str(pid) for _, pid, name in _processes(call) if (name == pattern if exact else pattern in name)]
    await call.out((" " if exact else "\n").join(found) + "\n" if found else "")
    return 0 if found else 1


async def _kill(call: Call) -> int:
    _, operands = call.options("-s")
    code = 0
    for word in operands:
        name = next((name for name, pid in call.phone.processes.items() if str(pid) == word or name == word), None)
        if name is None:
            code = await call.fail(f"{call.name}: {word}: No such process")
        elif call.phone.packages.get(name) is not None:
            call.phone.died(name)
            call.phone.stage.remove(name)
    return code


async def _uname(call: Call) -> int:
    machine = "x86_64" if call.phone.avd.abi.startswith("x86") else "aarch64"
    if "-m" in call.args:
        await call.out(machine + "\n")
    elif "-a" in call.args:
        await call.out(f"Linux localhost 6.6.0-lomi-paper #1 SMP PREEMPT {machine} Toybox\n")
    else:
        await call.out("6.6.0-lomi-paper\n" if "-r" in call.args else "Linux\n")
    return 0


async def _reboot(call: Call) -> int:
    call.phone.record("reboot", reason=call.args[0] if call.args else "")
    call.phone.reboot_asked.set()
    return 0


async def _remount(call: Call) -> int:
    if not call.phone.files.root:
        return await call.fail('Not running as root. Try "adb root" first.')
    await call.out("remount succeeded\n")
    return 0


async def _svc(call: Call) -> int:
    if call.args[:2] == ("power", "stayon"):
        call.phone.settings[("global", "stay_on_while_plugged_in")] = "7"
    elif call.args[:2] == ("power", "reboot"):
        return await _reboot(call.called("reboot"))
    return 0


async def _run_as(call: Call) -> int:
    name = call.args[0] if call.args else ""
    package = call.phone.packages.get(name)
    if package is None:
        return await call.fail(f"run-as: unknown package: {name}")
    if not package.debuggable:
        return await call.fail(f"run-as: package not debuggable: {name}")
    return await call.shell.run_command(call.shell, list(call.args[1:]) or ["true"], call.streams)


async def _ime(call: Call) -> int:
    settings = call.phone.settings
    enabled = settings[("secure", "enabled_input_methods")].split(":")
    known = [KEYBOARD, TEXT_BRIDGE]
    verb, name = call.args[0] if call.args else "", call.args[-1] if call.args else ""
    if verb == "list":
        shown = known if "-a" in call.args else [method for method in known if method in enabled]
        await call.out(
            "".join(f"{method}\n" if "-s" in call.args else f"{method}:\n  mId={method}\n" for method in shown)
        )
        return 0
    if verb == "reset":
        _choose_method(call, KEYBOARD)
        await call.out("Reset current and enabled IMEs for user #0\n")
        return 0
    if name not in known:
        return await call.fail(f"Unknown input method {name} cannot be {verb}d for user #0")
    if verb == "enable":
        settings[("secure", "enabled_input_methods")] = ":".join(dict.fromkeys([*enabled, name]))
        await call.out(f"Input method {name}: now enabled for user #0\n")
    elif verb == "disable":
        settings[("secure", "enabled_input_methods")] = ":".join(method for method in enabled if method != name)
        await call.out(f"Input method {name}: now disabled for user #0\n")
    elif verb == "set":
        _choose_method(call, name)
        await call.out(f"Input method {name} selected for user #0\n")
    return 0


def _choose_method(call: Call, name: str) -> None:
    stage = call.phone.stage
    call.phone.settings[("secure", "default_input_method")] = name
    if name != KEYBOARD:
        stage.hide_keyboard()
    elif stage.editor() is not None:
        stage.show_keyboard()


async def _ifconfig(call: Call) -> int:
    device = call.args[0] if call.args else "wlan0"
    if device not in {"wlan0", "eth0"}:
        return await call.fail(f"ifconfig: {device}: No such device")
    await call.out(
        f"{device}     Link encap:Ethernet  HWaddr 02:00:00:00:00:00\n"
        "          inet addr:10.0.2.16  Bcast:10.0.2.255  Mask:255.255.255.0\n"
        "          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n"
    )
    return 0


async def _ip(call: Call) -> int:
    await call.out(
        "10: wlan0: <BROADCAST,MULTICAST,UP> mtu 1500\n    inet 10.0.2.16/24 brd 10.0.2.255 scope global wlan0\n"
    )
    return 0


async def _bugreportz(call: Call) -> int:
    if call.args[:1] == ("-v",):
        await call.err("1.2\n")
        return 0
    return await call.fail("FAIL:a simulated phone has no bug report")


COMMANDS: dict[str, Command] = {
    "getprop": _getprop, "setprop": _setprop, "settings": _settings, "content": _content, "service": _service,
    "id": _id, "whoami": _id, "date": _date, "uptime": _uptime, "ps": _ps, "pidof": _pidof, "pgrep": _pidof,
    "kill": _kill, "pkill": _kill, "killall": _kill, "uname": _uname, "reboot": _reboot, "svc": _svc,
    "remount": _remount, "run-as": _run_as, "ime": _ime, "ifconfig": _ifconfig, "ip": _ip, "bugreportz": _bugreportz,
}  # fmt: skip
