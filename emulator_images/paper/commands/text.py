"""Text filters, as toybox has them."""

import base64
import binascii
import re

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.shell.flow import read_all
from emulator_images.paper.shell.interpreter import FileError


async def _input(call: Call, names: list[str]) -> str:
    if not names:
        return (await read_all(call.streams.stdin)).decode("utf-8", "surrogateescape")
    return "".join(call.phone.files.read(call.shell.path(name)).decode("utf-8", "surrogateescape") for name in names)


async def _grep(call: Call) -> int:
    options, operands = call.options("-e -m -A -B")
    pattern = options.get("-e") or (operands.pop(0) if operands else "")
    if "-F" in options or call.name == "fgrep":
        pattern = re.escape(pattern)
    elif "-E" not in options and call.name != "egrep":
        pattern = _basic(pattern)
    try:
        matcher = re.compile(pattern, re.IGNORECASE if "-i" in options else 0)
        text = await _input(call, operands)
    except re.error:
        return await call.fail(f"grep: bad regex '{pattern}'", 2)
    except FileError as error:
        return await call.fail(f"grep: {operands[0]}: {error}", 2)
    kept: list[str] = []
    for line in text.splitlines():
        match = matcher.fullmatch(line) if "-x" in options else matcher.search(line)
        if (match is None) == ("-v" in options):
            kept.append(match.group() if "-o" in options and match else line)
    if options.get("-m", "").isdecimal():
        kept = kept[: int(options["-m"])]
    if "-c" in options:
        await call.out(f"{len(kept)}\n")
    elif "-q" not in options:
        await call.out("".join(line + "\n" for line in kept))
    return 0 if kept else 1


def _basic(pattern: str) -> str:
    swapped = {"\\|": "|", "\\(": "(", "\\)": ")", "\\+": "+", "\\?": "?", "\\{": "{", "\\}": "}", "|": "\\|",
               "(": "\\(", ")": "\\)", "+": "\\+", "?": "\\?", "{": "\\{", "}": "\\}"}  # fmt: skip
    return re.sub(r"\\[|()+?{}]|[|()+?{}]", lambda match: swapped[match.group()], pattern)


async def _head(call: Call) -> int:
    options, names = call.options("-n -c")
    short = next((word[1:] for word in options if word[1:].isdecimal()), None)
    try:
        text = await _input(call, names)
    except FileError as error:
        return await call.fail(f"{call.name}: {names[0]}: {error}")
    if "-c" in options:
        count = int(options["-c"])
        payload = text.encode("utf-8", "surrogateescape")
        await call.out(payload[:count] if call.name == "head" else payload[-count:])
        return 0
    count = int(options.get("-n") or short or 10)
    lines = text.splitlines(keepends=True)
    chosen = lines[:count] if call.name == "head" else lines[len(lines) - count if count < len(lines) else 0 :]
    await call.out("".join(chosen))
    return 0


async def _wc(call: Call) -> int:
    options, names = call.options()
    try:
        text = await _input(call, names)
    except FileError as error:
        return await call.fail(f"wc: {names[0]}: {error}")
    counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(text.encode("utf-8", "surrogateescape"))}
    chosen = [str(count) for flag, count in counts.items() if flag in options] or [str(n) for n in counts.values()]
    await call.out(" ".join(chosen + names) + "\n")
    return 0


async def _sort(call: Call) -> int:
    options, names = call.options("-k -t")
    lines = (await _input(call, names)).splitlines()
    lines = sorted(set(lines) if "-u" in options else lines, reverse="-r" in options)
    if "-n" in options:
        lines.sort(key=lambda line: int(re.match(r"\s*(-?\d*)", line)[1] or 0), reverse="-r" in options)  # type: ignore[index]
    await call.out("".join(line + "\n" for line in lines))
    return 0


async def _cut(call: Call) -> int:
    options, names = call.options("-d -f -c")
    first, _, last = (options.get("-f") or options.get("-c") or "1").partition("-")
    start, end = int(first or 1) - 1, int(last or first or 1)
    for line in (await _input(call, names)).splitlines():
        if "-c" in options:
            await call.out(line[start:end] + "\n")
        else:
            mark = options.get("-d", "\t")
            await call.out(mark.join(line.split(mark)[start:end]) + "\n")
    return 0


async def _sed(call: Call) -> int:
    options, operands = call.options("-e")
    script = options.get("-e") or (operands.pop(0) if operands else "")
    if len(script) < 2 or script[0] != "s":
        return await call.fail(f"sed: bad pattern '{script}'")
    _, pattern, replacement, flags = (*script.split(script[1]), "", "", "")[:4]
    count = 0 if "g" in flags else 1
    expression = pattern if options.keys() & {"-E", "-r"} else _basic(pattern)
    for line in (await _input(call, operands)).splitlines():
        await call.out(re.sub(expression, replacement.replace("&", r"\g<0>"), line, count=count) + "\n")
    return 0


async def _tr(call: Call) -> int:
    options, sets = call.options()
    text = (await read_all(call.streams.stdin)).decode("utf-8", "surrogateescape")
    first = sets[0].encode().decode("unicode_escape") if sets else ""
    if "-d" in options:
        await call.out("".join(c for c in text if c not in first))
        return 0
    second = sets[1].encode().decode("unicode_escape") if len(sets) > 1 else first
    table = {ord(c): second[min(n, len(second) - 1)] for n, c in enumerate(first)}
    await call.out(text.translate(table))
    return 0


async def _xargs(call: Call) -> int:
    words = (await read_all(call.streams.stdin)).decode("utf-8", "surrogateescape").split()
    return await call.shell.run_command(call.shell, [*(call.args or ("echo",)), *words], call.streams)


async def _base64(call: Call) -> int:

    options, names = call.options("-w")
    payload = (await _input(call, names)).encode("utf-8", "surrogateescape")
    if "-d" not in options:
        await call.out(base64.b64encode(payload) + b"\n")
        return 0
    try:
        await call.out(base64.b64decode(payload))
    except binascii.Error:
        return await call.fail("base64: bad input")
    return 0


COMMANDS: dict[str, Command] = {
    "grep": _grep, "egrep": _grep, "fgrep": _grep, "head": _head, "tail": _head, "wc": _wc, "sort": _sort, "cut": _cut,
    "sed": _sed, "tr": _tr, "xargs": _xargs, "base64": _base64,
}  # fmt: skip
