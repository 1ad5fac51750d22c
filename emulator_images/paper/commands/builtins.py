"""Commands of the shell itself."""

import asyncio
import re
from dataclasses import replace

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.shell.flow import Bytes, read_all
from emulator_images.paper.shell.interpreter import ExitShell, LeaveLoop
from emulator_images.paper.shell.words import unescape

NO_CODE_RUNS = "Aborted"  # what a phone without a runtime says to code pushed onto it


async def _true(_call: Call) -> int:
    return 0


async def _false(_call: Call) -> int:
    return 1


async def _echo(call: Call) -> int:
    args = list(call.args)
    newline, escapes = "\n", False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        flags = args.pop(0)
        newline = "" if "n" in flags else newline
        escapes = "e" in flags or escapes
    text = " ".join(args)
    await call.out((unescape(text) if escapes else text) + newline)
    return 0


async def _printf(call: Call) -> int:
    if not call.args:
        return await call.fail("usage: printf FORMAT [ARGUMENT...]")
    form, values = call.args[0], list(call.args[1:])
    out: list[str] = []
    while True:
        before = len(values)
        out.append(_format_once(form, values))
        if not values or len(values) == before:
            break
    await call.out("".join(out))
    return 0


def _format_once(form: str, values: list[str]) -> str:
    def filled(match: re.Match[str]) -> str:
        flags, kind = match.groups()
        if kind == "%":
            return "%"
        value = values.pop(0) if values else ""
        if kind in "di":
            return f"%{flags}d" % int(value or 0)
        if kind in "xXou":
            return f"%{flags}{kind.replace('u', 'd')}" % int(value or 0)
        if kind == "b":
            return unescape(value)
        return f"%{flags}s" % value

    return re.sub(r"%([-0 #+]*\d*(?:\.\d+)?)([%disxXoubc])", filled, unescape(form))


async def _cd(call: Call) -> int:
    target = call.shell.path(call.args[0]) if call.args else "/"
    if not call.phone.files.is_directory(target):
        return await call.fail(f"/system/bin/sh: cd: {target}: No such file or directory", 2)
    call.shell.directory = call.phone.files.resolve(target)
    return 0


async def _pwd(call: Call) -> int:
    await call.out(call.shell.directory + "\n")
    return 0


async def _export(call: Call) -> int:
    for word in call.args:
        name, equals, value = word.partition("=")
        if equals:
            call.shell.variables[name] = value
    return 0


async def _unset(call: Call) -> int:
    for name in call.args:
        call.shell.variables.pop(name, None)
        call.shell.functions.pop(name, None)
    return 0


async def _set(call: Call) -> int:
    if call.args[:1] == ("--",):
        call.shell.arguments = call.args[1:]
    elif not call.args:
        await call.out("".join(f"{name}={value}\n" for name, value in sorted(call.shell.variables.items())))
    return 0


async def _shift(call: Call) -> int:
    call.shell.arguments = call.shell.arguments[int(call.args[0]) if call.args else 1 :]
    return 0


async def _exit(call: Call) -> int:
    word = call.args[0] if call.args else str(call.shell.code)
    raise ExitShell(int(word) & 255 if word.lstrip("-").isdecimal() else 1)


async def _break(call: Call) -> int:
    raise LeaveLoop(again=call.name == "continue")


async def _exec(call: Call) -> int:
    if not call.args:
        return 0
    raise ExitShell(await call.shell.run_command(call.shell, list(call.args), call.streams))


async def _run_words(call: Call) -> int:
    if not call.args:
        return 0
    return await call.shell.run_command(call.shell, list(call.args), call.streams)


async def _nohup(call: Call) -> int:
    return await _run_words(call)


async def _env(call: Call) -> int:
    words = list(call.args)
    shell = call.shell.child()
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        name, _, value = words.pop(0).partition("=")
        shell.variables[name] = value
    if words:
        return await shell.run_command(shell, words, call.streams)
    await call.out("".join(f"{name}={value}\n" for name, value in sorted(shell.variables.items())))
    return 0


async def _command(call: Call) -> int:
    if call.args[:1] in {("-v",), ("-V",)}:
        from emulator_images.paper.commands import COMMANDS  # noqa: PLC0415 - the table holds this very function

        name = call.args[1] if len(call.args) > 1 else ""
        if name not in COMMANDS:
            return 1
        await call.out(f"/system/bin/{name}\n")
        return 0
    return await _run_words(call)


async def _sh(call: Call) -> int:
    shell = call.shell.child()
    if call.args[:1] == ("-c",) and len(call.args) > 1:
        shell.arguments = call.args[3:]
        return await shell.run_text(call.args[1], call.streams)
    if call.args:
        payload = call.phone.files.find(shell.path(call.args[0]))
        if payload is None:
            return await call.fail(f"sh: {call.args[0]}: No such file or directory", 127)
        shell.arguments = call.args[1:]
        return await shell.run_text(payload.content().decode("utf-8", "replace"), call.streams)
    script = (await read_all(call.streams.stdin)).decode("utf-8", "surrogateescape")
    return await shell.run_text(script, replace(call.streams, stdin=Bytes()))


async def _eval(call: Call) -> int:
    return await call.shell.run_text(" ".join(call.args), call.streams)


async def _sleep(call: Call) -> int:
    text = call.args[0] if call.args else "0"
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    try:
        await asyncio.sleep(float(number) * (unit or 1))
    except ValueError:
        return await call.fail(f"sleep: bad number '{text}'")
    return 0


async def _wait(call: Call) -> int:
    await call.shell.wait_for_jobs()
    return 0


async def _read(call: Call) -> int:
    _, names = call.options()
    line = bytearray()
    while not line.endswith(b"\n"):
        chunk = await call.streams.stdin.read()
        if not chunk:
            break
        line += chunk
    text = line.split(b"\n")[0].decode("utf-8", "surrogateescape")
    words = text.split(None, max(0, len(names) - 1))
    for position, name in enumerate(names or ["REPLY"]):
        call.shell.variables[name] = words[position] if position < len(words) else ""
    return 0 if line else 1


async def _test(call: Call) -> int:
    words = list(call.args)
    if call.name in {"[", "[["}:
        closing = "]" if call.name == "[" else "]]"
        if not words or words.pop() != closing:
            return await call.fail(f"/system/bin/sh: {call.name}: missing {closing}", 2)
    return 0 if _holds(call, words) else 1


def _holds(call: Call, words: list[str]) -> bool:
    for operator, join in (("-o", any), ("||", any), ("-a", all), ("&&", all)):
        if operator in words[1:-1]:
            place = words.index(operator, 1)
            return join((_holds(call, words[:place]), _holds(call, words[place + 1 :])))
    if words[:1] == ["!"]:
        return not _holds(call, words[1:])
    if len(words) == 1:
        return bool(words[0])
    if len(words) == 2:
        return _unary(call, words[0], words[1])
    return len(words) == 3 and _binary(words[0], words[1], words[2])


def _unary(call: Call, operator: str, value: str) -> bool:
    if operator == "-z":
        return not value
    if operator == "-n":
        return bool(value)
    entry = call.phone.files.find(call.shell.path(value))
    if operator == "-d":
        return call.phone.files.is_directory(call.shell.path(value))
    if operator == "-f":
        return entry is not None and not call.phone.files.is_directory(call.shell.path(value))
    if operator == "-s":
        return entry is not None and entry.size > 0
    return operator in {"-e", "-r", "-w", "-x"} and entry is not None


def _binary(left: str, operator: str, right: str) -> bool:
    if operator in {"=", "=="}:
        return left == right
    if operator == "!=":
        return left != right
    try:
        a, b = int(left), int(right)
    except ValueError:
        return False
    return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}.get(operator, False)


async def _app_process(call: Call) -> int:
    """Device code cannot run: say so as a phone whose runtime aborts does."""
    call.phone.write_log("F", "paper", f"{call.name}: this phone is simulated and runs no device code")
    return await call.fail(NO_CODE_RUNS, 134)


COMMANDS: dict[str, Command] = {
    "true": _true, ":": _true, "false": _false, "echo": _echo, "printf": _printf, "cd": _cd, "pwd": _pwd,
    "export": _export, "unset": _unset, "set": _set, "shift": _shift, "exit": _exit, "return": _exit, "break": _break,
    "continue": _break, "exec": _exec, "nohup": _nohup, "setsid": _run_words, "toybox": _run_words, "time": _run_words,
    "env": _env, "command": _command, "which": lambda call: _command(call.called("command", "-v", *call.args)),
    "sh": _sh, "eval": _eval, "sleep": _sleep, "read": _read, "test": _test, "[": _test, "[[": _test, "wait": _wait,
    "trap": _true, "umask": _true, "sync": _true, "app_process": _app_process,
    "app_process64": _app_process, "app_process32": _app_process, "dalvikvm": _app_process,
}  # fmt: skip
