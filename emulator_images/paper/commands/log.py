"""`logcat` and `log`."""

import re
from collections.abc import Callable

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.logbook import LEVELS, Line

_BUFFERS = ("main", "system", "crash")


async def _logcat(call: Call) -> int:
    options, filters = call.options("-b --buffer -v --format -t -T -s --pid -e --regex -m --max-count -r -n -f --uid")
    wanted = options.get("-b") or options.get("--buffer") or "default"
    buffers = (
        (*_BUFFERS, "events") if wanted == "all" else _BUFFERS if wanted == "default" else tuple(wanted.split(","))
    )
    book = call.phone.log
    if "-c" in options:
        book.clear(buffers)
        return 0
    if "-g" in options:
        for buffer in buffers:
            await call.out(f"{buffer}: ring buffer is 256 KiB (1 KiB consumed, 50 KiB readable)\n")
        return 0
    form, _, extra = (options.get("-v") or options.get("--format") or "threadtime").partition(" ")
    year = "year" in {form, extra} or "year" in call.args
    form = "threadtime" if form == "year" else form
    keep = _filter(call, options, filters)
    lines = [line for line in book.lines if line.buffer in buffers and keep(line)]
    count = options.get("-t") or options.get("-T") or ""
    if count.isdecimal():
        lines = lines[-int(count) :]
    seen: set[str] = set()

    async def show(line: Line) -> None:
        if line.buffer not in seen:
            seen.add(line.buffer)
            await call.out(f"--------- beginning of {line.buffer}\n")
        await call.out(line.rendered(form, year=year) + "\n")

    for line in lines:
        await show(line)
    if "-d" in options or "-t" in options:
        return 0
    last = book.count
    async for line in book.follow(last):
        if line.buffer in buffers and keep(line):
            await show(line)
    return 0


def _filter(call: Call, options: dict[str, str], filters: list[str]) -> Callable[[Line], bool]:
    specs = dict(word.rpartition(":")[::2] for word in filters if ":" in word)
    silent = "-s" in options
    if options.get("-s"):
        tag, _, level = options["-s"].partition(":")
        specs[tag] = level or "V"
    fallback = specs.pop("*", "S" if silent else "V")
    pattern = options.get("-e") or options.get("--regex")
    pid = options.get("--pid")
    uid = options.get("--uid")

    def keep(line: Line) -> bool:
        level = specs.get(line.tag, fallback) or "V"
        if level == "S" or LEVELS.index(line.level) < LEVELS.find(level[:1].upper()):
            return False
        if pid is not None and str(line.pid) != pid:
            return False
        if uid is not None and uid != _uid(call, line):
            return False
        return pattern is None or re.search(pattern, line.text) is not None

    return keep


def _uid(call: Call, line: Line) -> str:
    name = next((name for name, pid in call.phone.processes.items() if pid == line.pid), "")
    package = call.phone.packages.get(name)
    return str(package.uid if package else 1000)


async def _log(call: Call) -> int:
    options, words = call.options("-p -t")
    call.phone.log.write((options.get("-p") or "I").upper()[:1], options.get("-t") or "log", " ".join(words), pid=3000)
    return 0


COMMANDS: dict[str, Command] = {"logcat": _logcat, "log": _log}
