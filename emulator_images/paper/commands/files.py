"""File commands, as toybox has them."""

import fnmatch
import hashlib
import stat
import time
from collections.abc import Callable

from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.files import Entry
from emulator_images.paper.shell.flow import read_all
from emulator_images.paper.shell.interpreter import FileError


async def _ls(call: Call) -> int:
    options, names = call.options()
    code = 0
    for name in names or ["."]:
        path = call.shell.path(name)
        entry = call.phone.files.find(path)
        if entry is None:
            code = await call.fail(f"ls: {name}: No such file or directory")
            continue
        if not stat.S_ISDIR(entry.mode) or "-d" in options:
            await call.out(_listed(name, entry, long="-l" in options))
            continue
        try:
            children = call.phone.files.children(path)
        except FileError as error:
            code = await call.fail(f"ls: {name}: {error}")
            continue
        if len(names) > 1:
            await call.out(f"{name}:\n")
        if "-l" in options:
            await call.out(f"total {len(children) * 4}\n")
        for child in children:
            if child.startswith(".") and not options.keys() & {"-a", "-A"}:
                continue
            found = call.phone.files.find(f"{path.rstrip('/')}/{child}")
            if found is not None:
                await call.out(_listed(child, found, long="-l" in options))
    return code


def _listed(name: str, entry: Entry, *, long: bool) -> str:
    if not long:
        return name + "\n"
    stamp = time.strftime("%Y-%m-%d %H:%M", time.gmtime(entry.modified))
    return f"{stat.filemode(entry.mode)} 1 shell shell {entry.size:>8} {stamp} {name}\n"


async def _cat(call: Call) -> int:
    _, names = call.options()
    if not names or names == ["-"]:
        while chunk := await call.streams.stdin.read():
            await call.out(chunk)
        return 0
    code = 0
    for name in names:
        try:
            await call.out(call.phone.files.read(call.shell.path(name)))
        except FileError as error:
            code = await call.fail(f"cat: {name}: {error}")
    return code


async def _rm(call: Call) -> int:
    options, names = call.options()
    code = 0
    recursive = bool(options.keys() & {"-r", "-R"})
    for name in names:
        path = call.shell.path(name)
        if call.phone.files.find(path) is None and "-f" in options:
            continue
        try:
            call.phone.files.remove(path, recursive=recursive)
        except FileError as error:
            code = await call.fail(f"rm: {name}: {error}")
    return code


async def _mv(call: Call) -> int:
    _, names = call.options()
    if len(names) != 2:
        return await call.fail("mv: Needs 2 arguments")
    try:
        call.phone.files.rename(call.shell.path(names[0]), call.shell.path(names[1]))
    except FileError as error:
        return await call.fail(f"mv: bad '{names[0]}': {error}")
    return 0


async def _cp(call: Call) -> int:
    options, names = call.options()
    if len(names) != 2:
        return await call.fail("cp: Needs 2 arguments")
    files = call.phone.files
    source, target = call.shell.path(names[0]), call.shell.path(names[1])
    try:
        if files.is_directory(source):
            if not options.keys() & {"-r", "-R", "-a"}:
                return await call.fail(f"cp: Skipped dir '{names[0]}'")
            root = files.resolve(source)
            for path in list(files.below(source)):
                copy = target + path[len(root) :]
                if files.is_directory(path):
                    files.make_directory(copy, parents=True)
                else:
                    files.write(copy, files.read(path))
        else:
            if files.is_directory(target):
                target = f"{target.rstrip('/')}/{source.rsplit('/', 1)[1]}"
            files.write(target, files.read(source))
    except FileError as error:
        return await call.fail(f"cp: bad '{names[0]}': {error}")
    return 0


async def _mkdir(call: Call) -> int:
    options, names = call.options("-m")
    code = 0
    for name in names:
        try:
            call.phone.files.make_directory(call.shell.path(name), parents="-p" in options)
        except FileError as error:
            code = await call.fail(f"mkdir: '{name}': {error}")
    return code


async def _touch(call: Call) -> int:
    _, names = call.options("-d -t -r")
    for name in names:
        try:
            call.phone.files.write(call.shell.path(name), b"", append=True)
        except FileError as error:
            return await call.fail(f"touch: '{name}': {error}")
    return 0


async def _chmod(call: Call) -> int:
    words = [word for word in call.args if word != "-R"]
    if len(words) < 2:
        return await call.fail("chmod: Needs 2 arguments")
    code = 0
    for name in words[1:]:
        path = call.shell.path(name)
        entry = call.phone.files.find(path)
        mode = int(words[0], 8) if words[0].isdecimal() else ((entry.mode if entry else 0) & 0o777) | 0o111
        try:
            call.phone.files.set_mode(path, mode)
        except FileError as error:
            code = await call.fail(f"chmod: '{name}': {error}")
    return code


async def _stat(call: Call) -> int:
    options, names = call.options("-c")
    for name in names:
        entry = call.phone.files.find(call.shell.path(name))
        if entry is None:
            return await call.fail(f"stat: '{name}': No such file or directory")
        form = options.get("-c") or "  File: %n\n  Size: %s\n  Modify: %Y"
        values = {"%n": name, "%s": str(entry.size), "%Y": str(entry.modified), "%a": f"{entry.mode & 0o7777:o}",
                  "%A": stat.filemode(entry.mode), "%U": "shell", "%u": "2000"}  # fmt: skip
        for key, value in values.items():
            form = form.replace(key, value)
        await call.out(form + "\n")
    return 0


def _digest(algorithm: str) -> Command:
    async def run(call: Call) -> int:
        options, names = call.options()
        if not names:
            payload = await read_all(call.streams.stdin)
            await call.out(f"{hashlib.new(algorithm, payload, usedforsecurity=False).hexdigest()}  -\n")
            return 0
        for name in names:
            try:
                payload = call.phone.files.read(call.shell.path(name))
            except FileError as error:
                return await call.fail(f"{call.name}: {name}: {error}")
            value = hashlib.new(algorithm, payload, usedforsecurity=False).hexdigest()
            await call.out(f"{value}\n" if "-b" in options else f"{value}  {name}\n")
        return 0

    return run


async def _df(call: Call) -> int:
    used, room = call.phone.files.used() // 1024, call.phone.files.room // 1024
    if not call.phone.files.has_room(0):
        used = room
    share = 100 * used // max(1, room)
    await call.out("Filesystem     1K-blocks    Used Available Use% Mounted on\n")
    await call.out(f"/dev/block/dm-5 {room:>9} {used:>7} {room - used:>9} {share:>3}% /data\n")
    return 0


async def _find(call: Call) -> int:
    options, names = call.options("-name -type -maxdepth")
    root = names[0] if names else "."
    path = call.shell.path(root)
    if call.phone.files.find(path) is None:
        return await call.fail(f"find: '{root}': No such file or directory")
    matches = _name_matcher(options.get("-name", "*"))
    real = call.phone.files.resolve(path)
    for found in call.phone.files.below(path):
        kind = "d" if call.phone.files.is_directory(found) else "f"
        if options.get("-type", kind) == kind and matches(found.rsplit("/", 1)[1]):
            await call.out(root + found[len(real) :] + "\n")
    return 0


def _name_matcher(pattern: str) -> Callable[[str], bool]:
    return lambda name: fnmatch.fnmatchcase(name, pattern)


async def _readlink(call: Call) -> int:
    _, names = call.options()
    for name in names:
        await call.out(call.phone.files.resolve(call.shell.path(name)) + "\n")
    return 0


async def _base(call: Call) -> int:
    if not call.args:
        return await call.fail(f"{call.name}: Needs 1 argument")
    path = call.args[0].rstrip("/") or "/"
    head, _, tail = path.rpartition("/")
    await call.out((tail if call.name == "basename" else head or ("/" if path.startswith("/") else ".")) + "\n")
    return 0


COMMANDS: dict[str, Command] = {
    "ls": _ls, "cat": _cat, "rm": _rm, "rmdir": _rm, "mv": _mv, "cp": _cp, "mkdir": _mkdir, "touch": _touch,
    "chmod": _chmod, "stat": _stat, "md5sum": _digest("md5"), "sha1sum": _digest("sha1"),
    "sha256sum": _digest("sha256"), "df": _df, "find": _find, "readlink": _readlink, "realpath": _readlink,
    "basename": _base, "dirname": _base,
}  # fmt: skip
